"""Which students stand on the front, and what stands beside each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from raykd.front import OBJECTIVES, Directions, front_of
from raykd.trial import Teacher, Trial, teacher_f1


@dataclass(frozen=True)
class FrontRow:
    """A student of the front, with its twin of the same shape that learnt from gold labels alone."""

    trial: Trial
    baseline: Trial | None
    kept: float | None
    """Its dev F1 as a fraction of the teacher's."""

    @property
    def dev_gain(self) -> float | None:
        """What distillation bought in dev F1: the student's less its baseline's."""
        return _difference(self.trial.dev_f1, self.baseline and self.baseline.dev_f1)

    @property
    def test_gain(self) -> float | None:
        """What distillation bought in test F1: the student's less its baseline's."""
        return _difference(self.trial.test_f1, self.baseline and self.baseline.test_f1)


def front_rows(
    trials: Iterable[Trial], teachers: Sequence[Teacher] = (), *, objectives: Directions = OBJECTIVES
) -> list[FrontRow]:
    """The students that no other beats in all `objectives` at once, the fastest first.

    Only complete trials of the search compete: baselines stand beside the students of their shape.
    """
    trials = list(trials)
    reference = teacher_f1(teachers)
    rows = [
        FrontRow(trial, baseline_of(trial, trials), trial.dev_f1 / reference if reference else None)
        for trial in front(trials, objectives=objectives)
        if trial.dev_f1 is not None
    ]
    return sorted(rows, key=lambda row: (row.trial.latency_ms or 0.0, row.trial.parameters or 0))


def front(trials: Iterable[Trial], *, objectives: Directions = OBJECTIVES) -> list[Trial]:
    """The students that no other beats in all `objectives` at once, in the order given."""
    return front_of([trial for trial in trials if competes(trial)], objectives)


def competes(trial: Trial) -> bool:
    """Whether `trial` may stand on the front and in its picture: searched, complete, and measured."""
    measured = None not in (trial.dev_f1, trial.latency_ms, trial.parameters)
    return trial.role == "search" and trial.state == "COMPLETE" and measured


def baseline_of(trial: Trial, trials: Iterable[Trial]) -> Trial | None:
    """The best complete baseline whose student is set exactly as that of `trial`; None if there is none."""
    shape = _student(trial)
    twins = (t for t in trials if t.role == "baseline" and t.state == "COMPLETE" and _student(t) == shape)
    return max(twins, key=lambda twin: twin.dev_f1 or 0.0, default=None)


def _student(trial: Trial) -> dict[str, object]:
    return {path: value for path, value in trial.settings.items() if path.startswith("student.")}


def _difference(student: float | None, baseline: float | None) -> float | None:
    return None if student is None or baseline is None else student - baseline
