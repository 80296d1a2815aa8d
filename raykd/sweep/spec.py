"""The sweep file: a recipe with searchable values, and how to search it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from raykd.figures.pareto import Direction
from raykd.figures.table import Directions, default_objectives
from raykd.identity import PlainObject, PlainValue, identity
from raykd.objectives import Top1
from raykd.recipes.card_config import CardConfig
from raykd.recipes.recipe import Recipe
from raykd.redact import redact
from raykd.spec import Document, Frozen, KeyPath, assignments, dotted, grid_size
from raykd.sweep.early_stopping import StoppingConfig
from raykd.sweep.records import NAME
from raykd.tracking.config import TrackingConfig

# Sections that may differ between two calls of one sweep: they do not change the results of trials.
FREE = frozenset({"budget", "resources", "tracking", "store", "baseline", "card", "teachers_must_learn"})
LATER = ("trials", "confirm")
"""Keys of `search` that may change when a sweep is resumed."""
NOT_STORED = (("store",), ("tracking", "uri"))
"""Keys with URIs that may hold passwords: they are stored only in `sweep.json`, and there without passwords."""
PREPARED = ("corpus", "teachers", "teacher_corpus")
"""Sections that are computed before the search, once for every alternative."""
SEARCHABLE = (*PREPARED, "student", "objective", "stages", "strategy", "schedule", "training")


class ConfirmConfig(Frozen):
    """A second run of the students of the front, after the search, over more seeds.

    Table, page and verdict show the means and standard deviations over these seeds. The front itself stays as the
    search has decided.
    """

    seeds: Annotated[int, Field(ge=2)] = 5
    """Seeds of a student in all, including those of the search; the baseline has as many."""


class SearchConfig(Frozen):
    """The trials of the search. The task's score is that on dev; a student's costs follow from its shape."""

    trials: Annotated[int, Field(ge=1)] = 16
    sampler: Literal["tpe", "gp", "nsga2", "random", "grid"] = "tpe"
    """`tpe` models the alternatives of a choice separately. `gp`, a Gaussian process, models the settings that all
    trials have, and draws those below a choice at random; it takes seconds per trial. `nsga2` evolves generations of
    twelve."""
    objectives: dict[str, Direction] | None = None
    """Figures with `max` or `min`: the task's score and a student's costs, as in `{f1: max, latency_ms: min}`. Costs
    without an ending are those of the export in float32. Further costs are measured if you name them: those of 8 bits
    (`latency_ms_int8`, `bytes_int8`, …), of PyTorch (`latency_ms_torch`, …), and of a GPU (`latency_ms_gpu`,
    `sentences_per_s_gpu_bf16`, …). By default score, latency_ms (for students without an export latency_ms_torch) and
    parameters."""
    constraints: tuple[str, ...] = ()
    """Conditions on the students of the front, written as for `--where`: `["f1 >= 0.95 * teacher", "bytes <= 10e6"]`.
    They guide the sampler. A setting whose costs alone violate a condition is never trained."""
    start_from: (
        Annotated[str, Field(pattern=NAME)] | tuple[dict[str, bool | int | float | str | None], ...]
    ) = ()
    """Settings to try first: a list of settings by dotted key path, `[{student.hidden_dim: 64, objective.kind:
    structural}]`, whose missing values the sampler draws; or the name of an earlier sweep in the store, for the
    students of its front that are in this search space."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the search. The same seed, space and `resources.concurrency` give the same settings."""
    runs_per_setting: Annotated[int, Field(ge=1)] = 1
    """Seeds per setting: `training.seed`, `training.seed` + 1, …; the trial's score is their mean."""
    stopping: StoppingConfig = StoppingConfig()
    confirm: ConfirmConfig | None = None

    @property
    def seeds_in_all(self) -> int:
        """Seeds of a student of the front, including its confirmation."""
        return self.runs_per_setting if self.confirm is None else self.confirm.seeds


class BudgetConfig(Frozen):
    """The budget of one call of `raykd sweep`, which ends with a front within the budget.

    A trial starts only if the baseline and `search.confirm` can still follow in time, judged by the trials so far;
    running trials are finished. The sweep is refused before anything is trained if the budget is too small for the
    teachers and one trial.
    """

    minutes: Annotated[float, Field(gt=0)] | None = None
    hours: Annotated[float, Field(gt=0)] | None = None
    """Wall time in hours, instead of `minutes`."""
    gpu_hours: Annotated[float, Field(gt=0)] | None = None
    """The wall time of the runs of teachers and trials, times the GPUs of a run."""
    trials: Annotated[int, Field(ge=1)] | None = None
    """Most trials of the search, even if `search.trials` or a grid has more."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.minutes is not None and self.hours is not None:
            raise ValueError("minutes and hours are both given; write one of them")
        return self

    @property
    def seconds(self) -> float | None:
        """Seconds of wall time; None: no limit."""
        if self.hours is not None:
            return 3600 * self.hours
        return None if self.minutes is None else 60 * self.minutes


class SweepFile(Recipe):
    """One sweep, with plain values only."""

    name: Annotated[str, Field(min_length=1, pattern=NAME)]
    search: SearchConfig = SearchConfig()
    baseline: Literal["gold", "top_1", "none"] = "none"
    """Also train the students of the front, and the best student for each objective, on labels alone, for as many
    optimiser steps: `gold` on the labelled text, `top_1` also on the unlabelled text with the teacher's best labels."""
    teachers_must_learn: bool = True
    """Stop the sweep, before anything is computed from the teachers, if no teacher predicts more than the most frequent
    label of its language: a dev score of 0, or an accuracy no higher than that label's share. With `false` the sweep
    goes on with a warning. It always goes on with a warning if only some teachers are that bad (one language of
    several), or if dev has fewer than 20 labels."""
    budget: BudgetConfig = BudgetConfig()
    tracking: TrackingConfig = TrackingConfig()
    card: CardConfig = CardConfig()

    def on_labels(self) -> Self:
        """Return the sweep of the baseline's student, trained on labels alone."""
        alone = self.on_gold_labels()
        return alone.model_copy(update={"objective": Top1()}) if self.baseline == "top_1" else alone

    @property
    def objectives(self) -> Directions:
        """Figures searched for by the sweep, with their directions."""
        exported = not self.student.no_export_reason
        return self.search.objectives or default_objectives(self.task_entry.score_name, exported=exported)


def plain_sweep(tree: PlainObject) -> SweepFile:
    """Return the typed sweep of a tree without searches.

    Args:
        tree: A sweep file's tree, all values plain.
    """
    return SweepFile.model_validate_json(json.dumps(tree))


def preparation_trees(tree: PlainObject) -> list[PlainObject]:
    """Return the sections in `PREPARED` of a sweep file's tree, with plain values: one mapping for each alternative.

    Raises:
        ValueError: a `float` without a step is searched, with infinitely many values.
    """
    return list(assignments({section: tree[section] for section in PREPARED if section in tree}))


def searched_tree(tree: PlainObject) -> PlainObject:
    """Return the searchable sections of a sweep file's tree."""
    return {section: tree[section] for section in SEARCHABLE if section in tree}


def search_identity(document: Document) -> str:
    """Return the identity of the search; a sweep is resumed only with the same identity."""
    return identity("sweep", _searched(document.tree))


def differing_keys(tree: PlainObject, other_tree: PlainObject) -> list[str]:
    """Return the dotted keys in which the searches of two sweep files differ."""
    # One of the trees comes from the store, where passwords are removed.
    first, second = (json.loads(redact(json.dumps(_searched(sections)))) for sections in (tree, other_tree))
    return [dotted(path) for path in _differing(first, second, ())]


def _searched(tree: PlainObject) -> PlainObject:
    searched = {key: value for key, value in tree.items() if key not in FREE}
    searched["search"] = {key: value for key, value in searched.get("search", {}).items() if key not in LATER}
    return searched


def _differing(first: PlainValue, second: PlainValue, path: KeyPath) -> Iterator[KeyPath]:
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        if first != second:
            yield path
        return
    for key in dict.fromkeys([*first, *second]):
        if key in first and key in second:
            yield from _differing(first[key], second[key], (*path, key))
        else:
            yield (*path, key)


def planned_trials(tree: PlainObject, search: SearchConfig, limit: int | None = None) -> int:
    """Return the number of trials of a sweep: at most the settings of its space, and the limit of its budget.

    Args:
        tree: The sweep file's tree.
        search: Its section `search`.
        limit: Limit of the budget; None: no limit.
    """
    return min(number for number in (search.trials, grid_size(tree), limit) if number is not None)
