"""The sweep file: a recipe with searchable values, and how to search it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from raykd.conditions import ConditionError, parse
from raykd.counted import counted
from raykd.errors import Fault, SpecError
from raykd.figures import (
    DEPLOYED,
    TARGET_DEV,
    WALL_S,
    Direction,
    Directions,
    default_objectives,
    objective_fault,
)
from raykd.identity import identity
from raykd.objectives import Top1
from raykd.redact import redacted
from raykd.runs.recipe import Recipe
from raykd.runs.recipe_faults import recipe_faults
from raykd.runs.stated import CardConfig
from raykd.spec import Document, Frozen, KeyPath, assignments, check, dotted, grid_size, is_searched
from raykd.sweep.constraints import constraint_fault
from raykd.sweep.records import NAME
from raykd.sweep.starts import start_fault
from raykd.sweep.stopping import StoppingConfig

# What may differ between two calls of one sweep: none of it changes what a trial computes.
FREE = frozenset({"budget", "resources", "tracking", "store", "baseline", "card"})
LATER = ("trials", "confirm")
"""What of `search` may be other when a sweep is resumed."""
NOT_STORED = (("store",), ("tracking", "uri"))
"""URIs that are connected to, and kept nowhere but in `sweep.json`, without their passwords."""
PREPARED = ("corpus", "teachers", "teacher_corpus")
"""Sections that are computed before the search: where they are searched, once for every alternative."""
SEARCHABLE = (*PREPARED, "student", "objective", "stages", "strategy", "schedule", "training")
# Every corpus is read and every teacher trained before the search.
MOST_PREPARATIONS = 16
# Every student shape is measured before the search; more of them than this is a space written too finely.
MOST_SHAPES = 256


class ConfirmConfig(Frozen):
    """After the search the students of the front are run over more seeds. Their means and standard deviations are what
    the table, the page and the verdict show; which students are on the front, the search has decided."""

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
    """Figures with `max` or `min`: the task's score and what a student costs, as in `{f1: max, latency_ms: min}`; of
    the deployed form `latency_ms_int8`, `bytes_onnx_int8` and others. By default the score, latency_ms and
    parameters."""
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


class BudgetConfig(Frozen):
    """Of one call of `raykd sweep`. It ends with a front within it: no trial starts that, by how long trials lasted,
    would end too late for the baseline and `search.confirm` to follow; those that run are finished. It is refused
    before anything is trained where not even the teachers and one trial fit."""

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


class TrackingConfig(Frozen):
    """Where MLflow writes."""

    uri: Annotated[str, Field(min_length=1)] = "sqlite:///mlflow.db"
    artifacts: Annotated[str, Field(min_length=1)] | None = None
    """Folder or bucket below which MLflow keeps the files of a new experiment. By default a tracking server's own; with
    a database `mlruns`, beside the SQLite file or, of PostgreSQL, in the working directory."""
    models: Literal["front", "none"] = "front"
    """Which students are logged as models that MLflow serves, and registered under the sweep's name."""


class SweepFile(Recipe):
    """One sweep, every value plain."""

    name: Annotated[str, Field(min_length=1, pattern=NAME)]
    search: SearchConfig = SearchConfig()
    baseline: Literal["gold", "top_1", "none"] = "none"
    """The front's students, and each objective's best, are trained on labels alone as well, for as many optimiser
    steps: `gold` on the labelled text, `top_1` also on the unlabelled text with the teacher's best labels."""
    budget: BudgetConfig = BudgetConfig()
    tracking: TrackingConfig = TrackingConfig()
    card: CardConfig = CardConfig()

    def on_labels(self) -> Self:
        """The student of the baseline: trained on labels alone."""
        alone = self.on_gold()
        return alone.model_copy(update={"objective": Top1()}) if self.baseline == "top_1" else alone

    @property
    def objectives(self) -> Directions:
        """What is searched for."""
        return self.search.objectives or default_objectives(self.labels.score_name)


def sweep_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    """Mismatches between sections of a plain sweep."""
    faults = recipe_faults(sweep)
    if sweep.baseline != "none" and not faults:
        faults = [(("baseline",), message) for _, message in recipe_faults(sweep.on_labels())]
    return (
        faults
        + objective_faults(sweep.objectives, sweep.labels.score_name)
        + _target_faults(sweep)
        + _deployed_faults(sweep)
        + _constraint_faults(sweep)
        + _confirm_faults(sweep)
        + _unforeseen(sweep)
    )


def _confirm_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    confirm, runs = sweep.search.confirm, sweep.search.runs_per_setting
    if confirm is None or confirm.seeds > runs:
        return []
    message = f"got {confirm.seeds}, and the search has run {counted(runs, 'seed')} already; ask for more"
    return [(("search", "confirm", "seeds"), message)]


def constrained_figures(sweep: SweepFile) -> frozenset[str]:
    """The names in the sweep's constraints; of what is no condition, none."""
    names: frozenset[str] = frozenset()
    for source in sweep.search.constraints:
        with suppress(ConditionError):
            names |= parse(source, sweep.labels.score_name).names
    return names


def _constraint_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    labelled = [language for language in sweep.corpus.languages if sweep.corpus.role(language) == "labelled"]
    found = [
        (source, constraint_fault(source, sweep.labels.score_name, labelled))
        for source in sweep.search.constraints
    ]
    return [
        (("search", "constraints"), f"{source!r}: {message}")
        for source, message in found
        if message is not None
    ]


def objective_faults(objectives: Directions, score_name: str) -> list[tuple[KeyPath, str]]:
    """What is wrong with `search.objectives`: the score is missing, or a name or a direction makes no sense."""
    path: KeyPath = ("search", "objectives")
    found = {name: objective_fault(name, way, score_name) for name, way in objectives.items()}
    faults: list[tuple[KeyPath, str]] = [
        ((*path, name), message) for name, message in found.items() if message is not None
    ]
    if score_name not in objectives and not faults:
        faults.append((path, f"{score_name} must be among them: without it the smallest student wins"))
    return faults


def _target_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    """The score of target languages on dev, where their dev is not read."""
    name = TARGET_DEV.called(sweep.labels.score_name)
    asked = {
        ("search", "objectives"): sweep.objectives,
        ("search", "constraints"): constrained_figures(sweep),
    }
    if sweep.corpus.zero_shot_dev:
        return []
    message = f"{name} is not known without dev of the target languages; set corpus.zero_shot_dev: true"
    return [(path, message) for path, names in asked.items() if name in names]


def _deployed_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    """Figures of a deployed form that the student, or in a ratio the teacher, does not have."""
    faults: list[tuple[KeyPath, str]] = []
    constrained = constrained_figures(sweep)
    for figure in DEPLOYED:
        if figure.name not in (*sweep.objectives, *constrained):
            continue
        path: KeyPath = ("search", "objectives", figure.name)
        if figure.name not in sweep.objectives:
            path = ("search", "constraints")
        compared = {"student": sweep.student, **({"teacher": sweep.teachers} if figure.against else {})}
        for side, config in compared.items():
            if reason := _not_deployed(config):
                hint = (
                    f"search {figure.name.rsplit('_', 1)[0]}"
                    if figure.against
                    else "search latency_ms or bytes"
                )
                faults.append((path, f"the {side} {reason}, and has no such form; {hint}"))
    return faults


def _unforeseen(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    """Costs that no one knows before the end, where trials are stopped by their costs."""
    if sweep.search.stopping.kind == "none" or WALL_S.name not in sweep.objectives:
        return []
    message = f"{WALL_S.name} is known when a trial has ended; without it, or with search.stopping.kind: none"
    return [(("search", "objectives", WALL_S.name), message)]


def _not_deployed(config: Any) -> str:
    """Why no ONNX file is made of such a model; empty where one is."""
    if config.contextual is not None:
        return "reads frozen encoders"
    if getattr(config, "count", 1) > 1:
        return "is an ensemble"
    return {"spans": "finds spans", "arcs": "scores arcs"}.get(config.decoder, "")


def plain_sweep(tree: Any) -> SweepFile:
    """The typed sweep of a tree without searches."""
    return SweepFile.model_validate_json(json.dumps(tree))


def preparation_trees(tree: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sections in `PREPARED` of a sweep file's tree, every value plain: one mapping for each alternative.

    Raises:
        ValueError: they search a `float` without a step, so that there are infinitely many.
    """
    return list(assignments({section: tree[section] for section in PREPARED if section in tree}))


def check_sweep(document: Document) -> None:
    """Validate every alternative of the sweep file, and that its space can be searched as it says.

    Raises:
        SpecError: with all faults together, in the order of the file.
    """
    # What is written wrongly has no size, and what is too large is not gone through.
    faults = _faults(document) or _too_large(document) or _combined(document)
    faults += _not_searchable(document) + _with_passwords(document)
    # What is written wrongly has no space.
    faults = faults or _not_started(document)
    if faults:
        raise SpecError(document.ordered(faults))


def _faults(document: Document) -> list[Fault]:
    try:
        check(document, SweepFile, extra=sweep_faults)
    except SpecError as error:
        return list(error.faults)
    return []


def _combined(document: Document) -> list[Fault]:
    """Alternatives of corpus and teachers that do not fit one of the other sections, or each other."""
    trees = preparation_trees(document.tree)
    if len(trees) == 1:
        return []  # checked already
    fixed = (replace(document, tree={**document.tree, **sections}, unused={}) for sections in trees)
    return [fault for each in fixed for fault in _faults(each)]


def _not_searchable(document: Document) -> list[Fault]:
    """Searches where none is possible. A malformed one is reported by `check`."""
    faults = []
    for section, value in document.tree.items():
        try:
            searched = section not in SEARCHABLE and is_searched(value)
        except ValueError:
            continue
        if searched:
            faults.append(document.fault((section,), "cannot be searched; give a plain value"))
    return faults


def searched_tree(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a sweep file's tree that may be searched."""
    return {section: tree[section] for section in SEARCHABLE if section in tree}


def _not_started(document: Document) -> list[Fault]:
    """Settings of `search.start_from` that are not in the space, and a sampler that takes none."""
    search, path = document.tree.get("search", {}), ("search", "start_from")
    given = search.get("start_from", ())
    if given and search.get("sampler") == "grid":
        return [
            document.fault(path, "a grid tries every setting in its order; remove it, or use another sampler")
        ]
    settings = [] if isinstance(given, str) else given
    found = ((place, start_fault(each, searched_tree(document.tree))) for place, each in enumerate(settings))
    return [document.fault((*path, place), message) for place, message in found if message is not None]


def _with_passwords(document: Document) -> list[Fault]:
    """Passwords in URIs that are stored with every trial."""
    message = (
        "holds a password, which every trial would store; write ${NAME}, and set NAME in the environment"
    )
    return [
        document.fault(path, message)
        for path, value in leaves(document.tree)
        if isinstance(value, str) and redacted(value) != value and path not in NOT_STORED
    ]


def leaves(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Key path → value of all that is neither a mapping nor a list."""
    items = (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else None
    )
    if items is None:
        yield path, value
        return
    for key, inner in items:
        yield from leaves(inner, (*path, key))


def _too_large(document: Document) -> list[Fault]:
    """Spaces with more settings than can be computed one by one."""
    tree, faults = document.tree, []
    shapes = grid_size(tree["student"])
    if shapes is None or shapes > MOST_SHAPES:
        message = (
            f"its space has {_many(shapes)} shapes, and each is measured before the search; "
            f"write choices, or ranges with a step (at most {MOST_SHAPES} shapes)"
        )
        faults.append(document.fault(("student",), message))
    sizes = {section: grid_size(tree[section]) for section in PREPARED if section in tree}
    known = [size for size in sizes.values() if size is not None]
    several = None if len(known) < len(sizes) else math.prod(known)
    if several is None or several > MOST_PREPARATIONS:
        searched = [section for section, size in sizes.items() if size != 1]
        message = (
            f"{_many(several)} settings of {' and '.join(searched)}, and each is computed before the search; "
            f"write choices, or ranges with a step (at most {MOST_PREPARATIONS} settings)"
        )
        faults.append(document.fault((searched[0],), message))
    if tree.get("search", {}).get("sampler") == "grid" and grid_size(tree) is None:
        message = "a grid needs a step in every float range; give one, or use sampler: tpe"
        faults.append(document.fault(("search", "sampler"), message))
    return faults


def _many(count: int | None) -> str:
    return "infinitely many" if count is None else str(count)


def search_identity(document: Document) -> str:
    """Identity of what is searched; a sweep is resumed only with the same."""
    return identity("sweep", _searched(document.tree))


def differing_keys(tree: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The keys that make the search of one sweep file's tree another than that of the other, dotted."""
    # As it is stored.
    own, others = (json.loads(redacted(json.dumps(_searched(each)))) for each in (tree, other))
    return [dotted(path) for path in _differing(own, others, ())]


def _searched(tree: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in tree.items() if key not in FREE}
    own["search"] = {key: value for key, value in own.get("search", {}).items() if key not in LATER}
    return own


def _differing(one: Any, other: Any, path: KeyPath) -> Iterator[KeyPath]:
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        if one != other:
            yield path
        return
    for key in dict.fromkeys([*one, *other]):
        if key in one and key in other:
            yield from _differing(one[key], other[key], (*path, key))
        else:
            yield (*path, key)
