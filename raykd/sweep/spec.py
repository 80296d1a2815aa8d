"""The sweep file: a recipe with searchable values, and how to search it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from raykd.figures.table import (
    Direction,
    Directions,
    default_objectives,
)
from raykd.identity import PlainObject, PlainValue, identity
from raykd.objectives import Top1
from raykd.recipes.card_config import CardConfig
from raykd.recipes.recipe import Recipe
from raykd.redact import redact
from raykd.spec import Document, Frozen, KeyPath, assignments, dotted, grid_size
from raykd.sweep.early_stopping import StoppingConfig
from raykd.sweep.records import NAME
from raykd.tracking.config import TrackingConfig

# What may differ between two calls of one sweep: none of it changes what a trial computes.
FREE = frozenset({"budget", "resources", "tracking", "store", "baseline", "card", "teachers_must_learn"})
LATER = ("trials", "confirm")
"""What of `search` may be other when a sweep is resumed."""
NOT_STORED = (("store",), ("tracking", "uri"))
"""URIs that are connected to, and kept nowhere but in `sweep.json`, without their passwords."""
PREPARED = ("corpus", "teachers", "teacher_corpus")
"""Sections that are computed before the search: where they are searched, once for every alternative."""
SEARCHABLE = (*PREPARED, "student", "objective", "stages", "strategy", "schedule", "training")


class ConfirmConfig(Frozen):
    """After the search the students of the front are run over more seeds. Their means and standard deviations are what
    the table, the page and the verdict show; which students are on the front, the search has decided.
    """

    seeds: Annotated[int, Field(ge=2)] = 5
    """Those of the search among them; a baseline has as many."""


class SearchConfig(Frozen):
    """Which trials are run. The task's score is that on dev; what a student costs follows from its shape."""

    trials: Annotated[int, Field(ge=1)] = 16
    sampler: Literal["tpe", "gp", "nsga2", "random", "grid"] = "tpe"
    """`tpe` models each alternative of a choice by itself. `gp`, a Gaussian process, models the settings that all
    trials have and draws those below a choice at random; it takes seconds a trial. `nsga2` evolves generations of
    twelve."""
    objectives: dict[str, Direction] | None = None
    """Figures with `max` or `min`: the task's score and what a student costs, as in `{f1: max, latency_ms: min}`. Costs
    are those of the export in float32; of 8 bits they are `latency_ms_int8`, `bytes_int8`, …, in PyTorch
    `latency_ms_torch`, …, on a GPU `latency_ms_gpu`, `sentences_per_s_gpu_bf16`, …, which are measured where they are
    asked for. By default the score, latency_ms (of students without an export latency_ms_torch) and parameters."""
    constraints: tuple[str, ...] = ()
    """What every student of the front must meet, written as for `--where`: `["f1 >= 0.95 * teacher", "bytes <= 10e6"]`.
    They lead the sampler. A setting whose costs alone miss one is never trained."""
    start_from: (
        Annotated[str, Field(pattern=NAME)] | tuple[dict[str, bool | int | float | str | None], ...]
    ) = ()
    """What is tried first: settings by dotted key path, `[{student.hidden_dim: 64, objective.kind: structural}]`, of
    which the sampler draws what is left out; or the name of an earlier sweep in the store, of whose front all that this
    space has."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the search. The same seed, space and `resources.concurrency` give the same settings."""
    runs_per_setting: Annotated[int, Field(ge=1)] = 1
    """Seeds per setting: `training.seed`, `training.seed` + 1, …; the trial's score is their mean."""
    stopping: StoppingConfig = StoppingConfig()
    confirm: ConfirmConfig | None = None

    @property
    def seeds_in_all(self) -> int:
        """Seeds of a student of the front, those of its confirmation among them."""
        return self.runs_per_setting if self.confirm is None else self.confirm.seeds


class BudgetConfig(Frozen):
    """Of one call of `raykd sweep`. It ends with a front within it: no trial starts that, by how long trials lasted,
    would end too late for the baseline and `search.confirm` to follow; those that run are finished. It is refused
    before anything is trained where not even the teachers and one trial fit.
    """

    minutes: Annotated[float, Field(gt=0)] | None = None
    hours: Annotated[float, Field(gt=0)] | None = None
    """Of wall time; instead of `minutes`."""
    gpu_hours: Annotated[float, Field(gt=0)] | None = None
    """The wall time of teachers' and trials' runs times the GPUs of a run."""
    trials: Annotated[int, Field(ge=1)] | None = None
    """Most trials of the search, also where `search.trials` or a grid has more."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.minutes is not None and self.hours is not None:
            raise ValueError("minutes and hours are both given; write one of them")
        return self

    @property
    def seconds(self) -> float | None:
        """Of wall time; None: no limit."""
        if self.hours is not None:
            return 3600 * self.hours
        return None if self.minutes is None else 60 * self.minutes


class SweepFile(Recipe):
    """One sweep, every value plain."""

    name: Annotated[str, Field(min_length=1, pattern=NAME)]
    search: SearchConfig = SearchConfig()
    baseline: Literal["gold", "top_1", "none"] = "none"
    """The front's students, and each objective's best, are trained on labels alone as well, for as many optimiser
    steps: `gold` on the labelled text, `top_1` also on the unlabelled text with the teacher's best labels."""
    teachers_must_learn: bool = True
    """Whether the sweep stops, before anything is computed from the teachers, where none of them predicts more than the
    most frequent label of its language: a dev score of 0, or an accuracy no higher than that label's share. `false`:
    it goes on with a warning. Where only some are so bad (one language of several), or dev has fewer than 20 labels,
    it always goes on with a warning."""
    budget: BudgetConfig = BudgetConfig()
    tracking: TrackingConfig = TrackingConfig()
    card: CardConfig = CardConfig()

    def on_labels(self) -> Self:
        """The student of the baseline: trained on labels alone."""
        alone = self.on_gold_labels()
        return alone.model_copy(update={"objective": Top1()}) if self.baseline == "top_1" else alone

    @property
    def objectives(self) -> Directions:
        """What is searched for."""
        exported = not self.student.no_export_reason
        return self.search.objectives or default_objectives(self.task_entry.score_name, exported=exported)


def plain_sweep(tree: PlainObject) -> SweepFile:
    """The typed sweep of a tree without searches."""
    return SweepFile.model_validate_json(json.dumps(tree))


def preparation_trees(tree: PlainObject) -> list[PlainObject]:
    """The sections in `PREPARED` of a sweep file's tree, every value plain: one mapping for each alternative.

    Raises:
        ValueError: they search a `float` without a step, so that there are infinitely many.
    """
    return list(assignments({section: tree[section] for section in PREPARED if section in tree}))


def searched_tree(tree: PlainObject) -> PlainObject:
    """The sections of a sweep file's tree that may be searched."""
    return {section: tree[section] for section in SEARCHABLE if section in tree}


def search_identity(document: Document) -> str:
    """Identity of what is searched; a sweep is resumed only with the same."""
    return identity("sweep", _searched(document.tree))


def differing_keys(tree: PlainObject, other: PlainObject) -> list[str]:
    """The keys that make the search of one sweep file's tree another than that of the other, dotted."""
    # As it is stored.
    own, others = (json.loads(redact(json.dumps(_searched(each)))) for each in (tree, other))
    return [dotted(path) for path in _differing(own, others, ())]


def _searched(tree: PlainObject) -> PlainObject:
    own = {key: value for key, value in tree.items() if key not in FREE}
    own["search"] = {key: value for key, value in own.get("search", {}).items() if key not in LATER}
    return own


def _differing(one: PlainValue, other: PlainValue, path: KeyPath) -> Iterator[KeyPath]:
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        if one != other:
            yield path
        return
    for key in dict.fromkeys([*one, *other]):
        if key in one and key in other:
            yield from _differing(one[key], other[key], (*path, key))
        else:
            yield (*path, key)


def planned_trials(tree: PlainObject, search: SearchConfig, most: int | None = None) -> int:
    """Return how many trials a sweep has: no more than its space has settings, or than its budget has (`most`)."""
    return min(each for each in (search.trials, grid_size(tree), most) if each is not None)
