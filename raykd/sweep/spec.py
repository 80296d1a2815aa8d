"""The sweep file: a recipe with searchable values, and how to search it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from raykd.errors import Fault, SpecError
from raykd.front import OBJECTIVES, Metric
from raykd.identity import identity
from raykd.runs.recipe import Recipe, recipe_faults
from raykd.spec import Document, Frozen, Trail, check, is_searched

# What may differ between two calls of one sweep: none of it changes what a trial computes.
FREE = frozenset({"budget", "resources", "tracking", "store", "baseline"})
SEARCHABLE = ("student", "objective", "schedule", "training")


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


def sweep_faults(sweep: SweepFile) -> list[tuple[Trail, str]]:
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


def check_sweep(document: Document) -> None:
    """Validate every alternative of the sweep file.

    Raises:
        SpecError: with all faults together.
    """
    faults = [
        Fault(document.file, document.line((section,)), section, "cannot be searched; give a plain value")
        for section, value in document.tree.items()
        if section not in SEARCHABLE and is_searched(value)
    ]
    if faults:
        raise SpecError(tuple(faults))
    check(document, SweepFile, extra=sweep_faults)


def search_identity(document: Document) -> str:
    """Identity of what is searched; a sweep is resumed only with the same."""
    tree = {key: value for key, value in document.tree.items() if key not in FREE}
    tree["search"] = {key: value for key, value in tree.get("search", {}).items() if key != "trials"}
    return identity("sweep", tree)
