"""The limits of a sweep, compared with its plan before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence

from raykd.conditions import OBJECTIVE
from raykd.counted import counted
from raykd.errors import RunError
from raykd.runs.cost import find_cost
from raykd.runs.run import Run
from raykd.sweep.constraints import Constraints
from raykd.sweep.driver import Sweep
from raykd.sweep.outcome import against_teachers
from raykd.sweep.settings import known_cost
from raykd.trial import Trial


def has_limits(sweep: Sweep) -> bool:
    """Whether the plan has to be known before the sweep starts."""
    return bool(sweep.file.search.constraints)


def allowed_shapes(sweep: Sweep) -> tuple[list[Run], list[Run]]:
    """The student shapes whose costs meet `search.constraints`, and all; costs are known of each."""
    score_name = sweep.file.labels.score_name
    every = Constraints.of(sweep.file.search.constraints, score_name, None).conditions
    on_costs = Constraints(
        tuple(each for each in every if each.foreseen(score_name) and OBJECTIVE not in each.names)
    )
    teachers = [cost for _, run in sweep.teachers if (cost := find_cost(sweep.storage, run)) is not None]
    shapes = sweep.shapes()

    def allowed(run: Run) -> bool:
        cost = against_teachers(known_cost(sweep.storage, run), teachers)
        trial = Trial(0, "RUNNING", cost=dict(cost.figures), score_name=score_name)
        return on_costs.judged(trial).feasible

    return [run for run in shapes if allowed(run)], shapes


def refuse_impossible(sweep: Sweep) -> None:
    """RunError where no student of the space can meet `search.constraints`; costs are known of each shape."""
    allowed, shapes = allowed_shapes(sweep)
    if not allowed:
        raise RunError(
            f"search.constraints: none of {counted(len(shapes), 'student shape')} meets "
            f"{_listed(sweep.file.search.constraints)}; raykd plan shows what each costs; relax them, or search others"
        )


def _listed(sources: Sequence[str]) -> str:
    return " and ".join(repr(source) for source in sources)
