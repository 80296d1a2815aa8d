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
from raykd.sweep.outcome import against_teachers
from raykd.sweep.settings import joined_cost
from raykd.sweep.sweep import Sweep

AFTER = ("trials", "confirm", "baseline")
"""The phases that a budget shortens."""


def has_limits(sweep: Sweep) -> bool:
    """Whether the plan has to be known before the sweep starts."""
    return bool(sweep.file.search.constraints) or sweep.file.budget.seconds is not None


def allowed_shapes(sweep: Sweep) -> tuple[list[tuple[Run, ...]], list[tuple[Run, ...]]]:
    """The student shapes whose costs meet `search.constraints`, and all: the runs of each, whose costs are known."""
    score_name = sweep.file.task_entry.score_name
    every = Constraints.of(sweep.file.search.constraints, score_name, None).conditions
    on_costs = Constraints(
        tuple(
            each for each in every if each.known_before_training(score_name) and OBJECTIVE not in each.names
        )
    )
    teachers = [
        cost
        for _, run in sweep.teachers
        if (cost := find_cost(sweep.storage, run, sweep.timed_on)) is not None
    ]
    shapes = sweep.students()

    def allowed(runs: tuple[Run, ...]) -> bool:
        cost = against_teachers(joined_cost([sweep.cost(run) for run in runs]), teachers)
        trial = Trial(0, "RUNNING", cost=dict(cost.figures), score_name=score_name)
        return on_costs.judged(trial).feasible

    return [runs for runs in shapes if allowed(runs)], shapes


def refuse_impossible(sweep: Sweep) -> None:
    """SpecError where no student of the space can meet `search.constraints`; costs are known of each shape."""
    allowed, shapes = allowed_shapes(sweep)
    if not allowed:
        constraints = " and ".join(map(repr, sweep.file.search.constraints))
        message = (
            f"none of {pluralise(len(shapes), 'student shape')} meets {constraints}; relax "
            "them, or search others (raykd plan without them shows what each costs)"
        )
        raise SpecError((sweep.document.fault(("search", "constraints"), message),))


def trials_within(sweep: Sweep, expected: Forecast, concurrent: int) -> int | None:
    """How many of the trials that are left fit into the budget's wall time; None: it has none. The baseline is counted
    with the students of the front alone when the sweep runs, and is left out here.
    """
    if sweep.file.budget.seconds is None:
        return None
    left = sweep.trials - len(sweep.earlier())
    others = sum(seconds for name, seconds in expected.phases.items() if name not in AFTER)
    free = sweep.file.budget.seconds - others
    whole = expected.trial_s * min(concurrent, sweep.file.search.runs_per_setting) / concurrent
    each = whole if expected.trained_share is None else whole * expected.trained_share
    return max(0, min(left, int(free / each))) if each else left


def refuse_too_little(sweep: Sweep, expected: Forecast) -> None:
    """SpecError where teachers, precompute and one trial take longer than the budget has.

    On GPUs nothing is known of their speed before they train, and nothing is refused.
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
        shown = " + ".join(f"{name} {seconds / 60:.1f}" for name, seconds in parts.items() if seconds)
        message = (
            f"{budget.seconds / 60:g} minutes hold no front: {shown} = {needed / 60:.1f} minutes; raise it, or train "
            "teachers and students on less text (corpus.cap, corpus.unlabelled_cap) or for fewer epochs"
        )
        key = "minutes" if budget.hours is None else "hours"
        raise SpecError((sweep.document.fault(("budget", key), message),))
