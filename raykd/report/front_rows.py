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
    teacher_test_scores: Mapping[Group, float] = field(default_factory=dict)
    """Test scores of the teacher, fractions; groups without a score are left out."""

    def change(self, group: Group) -> float | None:
        """Return the test score's relative difference to the teacher's (Soltan et al. 2021).

        Below 0 it is a loss. None if the student or the teacher has no test score.
        """
        score, teacher_test_score = self.trial.scores.mean("test", group), self.teacher_test_scores.get(group)
        return None if score is None or not teacher_test_score else score / teacher_test_score - 1

    def gain(self, part: Part) -> float | None:
        """Return the gain from distillation: the student's score minus its baseline's; None without a baseline."""
        score = self.trial.scores.mean(part)
        baseline = None if self.baseline is None else self.baseline.scores.mean(part)
        return None if score is None or baseline is None else score - baseline


def front_rows(
    trials: Iterable[Trial], teachers: Sequence[Teacher] = (), *, objectives: Directions = OBJECTIVES
) -> list[FrontRow]:
    """Return the non-dominated students with a dev score, the fastest first.

    Only complete trials of the search compete. A student confirmed over more seeds has the scores of its confirmation.

    Args:
        trials: All trials of the sweep.
        teachers: Its teachers.
        objectives: Objectives of the front.
    """
    trials = list(trials)
    teacher_dev_score = teacher_score(teachers)
    teacher_test_scores: dict[Group, float] = {
        group: score for group in GROUPS if (score := teacher_score(teachers, "test", group)) is not None
    }
    rows = []
    for trial in pareto_front(trials, objectives):
        student = with_confirmed_scores(trial, trials)
        score = DEV.read(student)
        if score is not None:
            teacher_share = score / teacher_dev_score if teacher_dev_score else None
            rows.append(FrontRow(student, find_gold_twin(trial, trials), teacher_share, teacher_test_scores))
    latency = main_latency(objectives)
    # Latencies within the noise of the measurement count as equal: then the smaller student comes first.
    return sorted(
        rows,
        key=lambda row: (latency.compared_value(row.trial) or 0.0, PARAMETERS.compared_value(row.trial) or 0),
    )
