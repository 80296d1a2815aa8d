"""The sweep file: a recipe with searchable values, and how to search it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from raykd.errors import Fault, SpecError
from raykd.front import OBJECTIVES, Metric
from raykd.identity import identity
from raykd.runs.recipe import Recipe, recipe_faults
from raykd.spec import Document, Frozen, KeyPath, check, grid_size, is_searched

# What may differ between two calls of one sweep: none of it changes what a trial computes.
FREE = frozenset({"budget", "resources", "tracking", "store", "baseline"})
SEARCHABLE = ("student", "objective", "schedule", "training")
# Every student shape is measured before the search; more of them than this is a space written too finely.
MOST_SHAPES = 256


class SearchConfig(Frozen):
    """Which trials are run. `f1` is the dev score; latency, parameters and bytes follow from the student's shape."""

    trials: Annotated[int, Field(ge=1)] = 16
    sampler: Literal["tpe", "random", "nsga2", "grid"] = "tpe"
    objectives: dict[Metric, Literal["max", "min"]] = Field(default_factory=lambda: dict(OBJECTIVES))
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the search. Suggestions repeat exactly only with `resources.concurrency: 1`."""
    runs_per_setting: Annotated[int, Field(ge=1)] = 1
    """Seeds per setting: `training.seed`, `training.seed` + 1, …; the trial's score is their mean."""


class BudgetConfig(Frozen):
    """No trial starts once the budget is spent; those that run are finished."""

    minutes: Annotated[float, Field(gt=0)] | None = None


class TrackingConfig(Frozen):
    """Where MLflow writes."""

    uri: Annotated[str, Field(min_length=1)] = "sqlite:///mlflow.db"


class SweepFile(Recipe):
    """One sweep, every value plain."""

    name: Annotated[str, Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    search: SearchConfig = SearchConfig()
    baseline: Literal["gold", "none"] = "none"
    """`gold`: the front's shapes, and each objective's best, are trained without a teacher as well."""
    budget: BudgetConfig = BudgetConfig()
    tracking: TrackingConfig = TrackingConfig()


def sweep_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    """Mismatches between sections of a plain sweep."""
    faults = recipe_faults(sweep)
    if "f1" not in sweep.search.objectives:
        faults.append(
            (("search", "objectives"), "f1 must be among them: without it the smallest student wins")
        )
    for metric, direction in sweep.search.objectives.items():
        expected = "max" if metric == "f1" else "min"
        if direction != expected:
            faults.append(
                (("search", "objectives", metric), f"got {direction!r}; {metric} is wanted at its {expected}")
            )
    return faults


def plain_sweep(tree: Any) -> SweepFile:
    """The typed sweep of a tree without searches."""
    return SweepFile.model_validate_json(json.dumps(tree))


def check_sweep(document: Document) -> None:
    """Validate every alternative of the sweep file, and that its space can be searched as it says.

    Raises:
        SpecError: with all faults together, in the order of the file.
    """
    faults = _searched_in_vain(document)
    try:
        check(document, SweepFile, extra=sweep_faults)
    except SpecError as error:
        faults += error.faults
    else:
        faults += _unbounded(document)
    if faults:
        raise SpecError(tuple(sorted(faults, key=lambda fault: (fault.line or 0, fault.path))))


def _searched_in_vain(document: Document) -> list[Fault]:
    """Searches where none is possible. A malformed one is told by `check`."""
    faults = []
    for section, value in document.tree.items():
        try:
            searched = section not in SEARCHABLE and is_searched(value)
        except ValueError:
            continue
        if searched:
            faults.append(document.fault((section,), "cannot be searched; give a plain value"))
    return faults


def _unbounded(document: Document) -> list[Fault]:
    """Spaces with more settings than can be gone through one by one."""
    faults = []
    shapes = grid_size(document.tree["student"])
    if shapes is None or shapes > MOST_SHAPES:
        many = "infinitely many" if shapes is None else shapes
        message = (
            f"its space has {many} shapes, and each is measured before the search; "
            f"write choices, or ranges with a step (at most {MOST_SHAPES} shapes)"
        )
        faults.append(document.fault(("student",), message))
    if document.tree.get("search", {}).get("sampler") == "grid" and grid_size(document.tree) is None:
        message = "a grid needs a step in every float range; give one, or use sampler: tpe"
        faults.append(document.fault(("search", "sampler"), message))
    return faults


def search_identity(document: Document) -> str:
    """Identity of what is searched; a sweep is resumed only with the same."""
    tree = {key: value for key, value in document.tree.items() if key not in FREE}
    tree["search"] = {key: value for key, value in tree.get("search", {}).items() if key != "trials"}
    return identity("sweep", tree)
