"""A listener without output."""

from __future__ import annotations

from collections.abc import Sequence

from raykd.cluster.listener import RunEpoch, Unit
from raykd.figures.trial import Trial


class Silent:
    """A listener without output."""

    def begin(self, phase: str, total: int, *, done_before: int = 0) -> None:
        return None

    def started(self, unit: Unit) -> None:
        return None

    def part_progress(self, part: str, share: float | None, doing: str, first: float = 0.0) -> None:
        return None

    def advance(self, phase: str, units: int = 1, *, detail: str = "", sentences: int = 0) -> None:
        return None

    def detail(self, phase: str, detail: str) -> None:
        return None

    def epoch(self, phase: str, epoch: RunEpoch) -> None:
        return None

    def ended(self, key: str) -> None:
        return None

    def trial(self, trial: Trial) -> None:
        return None

    def front(self, students: Sequence[Trial], hypervolume: float) -> None:
        return None

    def budget(self, *, seconds: float | None, gpu_hours: float | None) -> None:
        return None

    def note(self, text: str) -> None:
        return None

    def warn(self, text: str) -> None:
        return None

    def end(self, phase: str, summary: str = "") -> None:
        return None
