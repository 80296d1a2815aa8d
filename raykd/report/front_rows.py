"""Which students are on the front, and what each of them is compared with."""

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
    """Its dev score as a fraction of the teacher's."""
    reference: Mapping[Group, float] = field(default_factory=dict)
    """The teacher's test scores."""

    def change(self, group: Group) -> float | None:
        """By which fraction its test score is above the teacher's; below 0 it is what was lost (Soltan et al. 2021)."""
        own, other = self.trial.scores.mean("test", group), self.reference.get(group)
        return None if own is None or not other else own / other - 1

    def gain(self, part: Part) -> float | None:
        """What distillation gains: the student's score less its baseline's."""
        own = self.trial.scores.mean(part)
        other = None if self.baseline is None else self.baseline.scores.mean(part)
        return None if own is None or other is None else own - other


def front_rows(
    trials: Iterable[Trial], teachers: Sequence[Teacher] = (), *, objectives: Directions = OBJECTIVES
) -> list[FrontRow]:
    """The students that no other beats in all `objectives` at once, the fastest first.

    Only complete trials of the search compete: a baseline is shown with its student, which has the scores of its
    confirmation where it was run over more seeds.
    """
    trials = list(trials)
    reference = teacher_score(teachers)
    tests: dict[Group, float] = {
        group: own for group in GROUPS if (own := teacher_score(teachers, "test", group)) is not None
    }
    rows = [
        FrontRow(shown, find_gold_twin(trial, trials), score / reference if reference else None, tests)
        for trial in pareto_front(trials, objectives)
        if (score := DEV.read(shown := with_confirmed_scores(trial, trials))) is not None
    ]
    latency = main_latency(objectives)
    # Latencies that differ by less than the noise of a measurement are one: then the smaller student comes first.
    return sorted(
        rows,
        key=lambda row: (latency.compared_value(row.trial) or 0.0, PARAMETERS.compared_value(row.trial) or 0),
    )
