"""Students of the front, each with its comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from raykd.figures.front import find_gold_twin, pareto_front, with_confirmed_scores
from raykd.figures.results import GROUPS, Group, Part
from raykd.figures.table import DEV, OBJECTIVES, PARAMETERS, Directions, main_latency
from raykd.figures.trial import Teacher, Trial, teacher_score


@dataclass(frozen=True)
class FrontRow:
    """A student of the front, beside the same student trained on gold labels alone."""

    trial: Trial
    baseline: Trial | None
    teacher_share: float | None
    """Dev score as a fraction of the teacher's; None without a teacher."""
    reference: Mapping[Group, float] = field(default_factory=dict)
    """Test scores of the teacher."""

    def change(self, group: Group) -> float | None:
        """Return the test score's relative difference to the teacher's; below 0 it is a loss (Soltan et al. 2021)."""
        score, teacher = self.trial.scores.mean("test", group), self.reference.get(group)
        return None if score is None or not teacher else score / teacher - 1

    def gain(self, part: Part) -> float | None:
        """Return the gain from distillation: the student's score minus its baseline's; None without a baseline."""
        score = self.trial.scores.mean(part)
        baseline = None if self.baseline is None else self.baseline.scores.mean(part)
        return None if score is None or baseline is None else score - baseline


def front_rows(
    trials: Iterable[Trial], teachers: Sequence[Teacher] = (), *, objectives: Directions = OBJECTIVES
) -> list[FrontRow]:
    """Return the non-dominated students, the fastest first.

    Only complete trials of the search compete. A baseline stands beside its student. A student confirmed over more
    seeds has the scores of its confirmation.

    Args:
        trials: All trials of the sweep.
        teachers: Its teachers.
        objectives: Objectives of the front.
    """
    trials = list(trials)
    reference = teacher_score(teachers)
    tests: dict[Group, float] = {
        group: score for group in GROUPS if (score := teacher_score(teachers, "test", group)) is not None
    }
    rows = [
        FrontRow(student, find_gold_twin(trial, trials), score / reference if reference else None, tests)
        for trial in pareto_front(trials, objectives)
        if (score := DEV.read(student := with_confirmed_scores(trial, trials))) is not None
    ]
    latency = main_latency(objectives)
    # Latencies within the noise of the measurement count as equal: then the smaller student comes first.
    return sorted(
        rows,
        key=lambda row: (latency.compared_value(row.trial) or 0.0, PARAMETERS.compared_value(row.trial) or 0),
    )
