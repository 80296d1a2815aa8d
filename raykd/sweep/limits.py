"""The limits of a sweep, compared with its plan before anything is trained."""

from __future__ import annotations

from raykd.errors import SpecError
from raykd.figures.conditions import OBJECTIVE
from raykd.figures.trial import Trial
from raykd.pluralise import pluralise
from raykd.precompute.model_cost import find_cost
from raykd.recipes.run import Run
from raykd.sweep.constraints import Constraints
from raykd.sweep.forecast import Forecast
from raykd.sweep.outcome import with_teacher_ratios
from raykd.sweep.settings import joined_cost
from raykd.sweep.sweep import Sweep

AFTER = ("trials", "confirm", "baseline")
"""The phases that a budget shortens."""


def needs_plan_first(sweep: Sweep) -> bool:
    """True if the sweep has limits to compare with the plan before the start.

    Args:
        sweep: The sweep.
    """
    return bool(sweep.file.search.constraints) or sweep.file.budget.seconds is not None


def allowed_shapes(sweep: Sweep) -> tuple[list[tuple[Run, ...]], list[tuple[Run, ...]]]:
    """Return the student shapes with costs within `search.constraints`, and all shapes.

    Args:
        sweep: The sweep, with the costs of all shapes in the store.

    Returns:
        Allowed shapes and all shapes, each as its runs.
    """
    score_name = sweep.file.task_entry.score_name
    conditions = Constraints.from_sources(sweep.file.search.constraints, score_name, None).conditions
    on_costs = Constraints(
        tuple(
            condition
            for condition in conditions
            if condition.known_before_training(score_name) and OBJECTIVE not in condition.names
        )
    )
    teachers = [
        cost
        for _, run in sweep.teachers
        if (cost := find_cost(sweep.storage, run, sweep.timed_on)) is not None
    ]
    shapes = sweep.students()

    def allowed(runs: tuple[Run, ...]) -> bool:
        cost = with_teacher_ratios(joined_cost([sweep.cost(run) for run in runs]), teachers)
        trial = Trial(0, "RUNNING", cost=dict(cost.figures), score_name=score_name)
        return on_costs.with_violations(trial).feasible

    return [runs for runs in shapes if allowed(runs)], shapes


def refuse_unmeetable_constraints(sweep: Sweep) -> None:
    """Raise SpecError if no student of the space can meet `search.constraints`.

    Args:
        sweep: The sweep, with the costs of all shapes in the store.
    """
    allowed, shapes = allowed_shapes(sweep)
    if not allowed:
        constraints = " and ".join(map(repr, sweep.file.search.constraints))
        message = (
            f"none of {pluralise(len(shapes), 'student shape')} meets {constraints}; relax "
            "them, or search others (raykd plan without them shows what each costs)"
        )
        raise SpecError((sweep.document.fault(("search", "constraints"), message),))


def trials_within_budget(sweep: Sweep, expected: Forecast, concurrent: int) -> int | None:
    """Return how many of the remaining trials fit into the budget's wall time; None without a budget.

    The baseline is left out here: a running sweep trains it for the students of the front alone.

    Args:
        sweep: The sweep.
        expected: Its forecast.
        concurrent: Runs at the same time.
    """
    if sweep.file.budget.seconds is None:
        return None
    remaining = sweep.trials - len(sweep.earlier())
    other_phases_s = sum(seconds for name, seconds in expected.phases.items() if name not in AFTER)
    free = sweep.file.budget.seconds - other_phases_s
    whole = expected.trial_s * min(concurrent, sweep.file.search.runs_per_setting) / concurrent
    trial_s = whole if expected.trained_share is None else whole * expected.trained_share
    return max(0, min(remaining, int(free / trial_s))) if trial_s else remaining


def refuse_short_budget(sweep: Sweep, expected: Forecast) -> None:
    """Raise SpecError if teachers, precompute and one trial take longer than the budget.

    On GPUs nothing is refused: their training speed is unknown before they train.

    Args:
        sweep: The sweep.
        expected: Its forecast.
    """
    budget = sweep.file.budget
    on_gpus = sweep.file.resources.for_role("students").gpus_per_worker
    if budget.seconds is None or on_gpus or sweep.trials <= len(sweep.earlier()):
        return
    parts = {
        **{name: seconds for name, seconds in expected.phases.items() if name not in AFTER},
        "one trial": expected.trial_s,
    }
    needed = sum(parts.values())
    if needed > budget.seconds:
        terms = " + ".join(f"{name} {seconds / 60:.1f}" for name, seconds in parts.items() if seconds)
        message = (
            f"{budget.seconds / 60:g} minutes are too short for one trial: {terms} = {needed / 60:.1f} minutes; raise "
            "the budget, or train teachers and students on less text (corpus.cap, corpus.unlabelled_cap) or for "
            "fewer epochs"
        )
        key = "minutes" if budget.hours is None else "hours"
        raise SpecError((sweep.document.fault(("budget", key), message),))
