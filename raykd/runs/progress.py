"""How phases report their progress: what is above implements this protocol, everything below only calls it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from raykd.trial import Trial


@dataclass(frozen=True)
class RunEpoch:
    """One run of a job finished an epoch."""

    job: str
    """The same of all runs of a trial."""
    name: str
    about: str
    """What is trained, in short; empty where the name says it."""
    number: int
    """Counted from 1."""
    most: int | None
    """How many there may be; None where only optimiser steps or patience end it."""
    dev: float
    label: str
    """What the score is called."""
    tokens: int
    tokens_per_second: float

    def __str__(self) -> str:
        # Figures first: on a narrow terminal the end of the line is cut off.
        after = f", {self.about}" if self.about else ""
        return f"{self.name}: epoch {self.number}, dev {self.label} {100 * self.dev:.1f}{after}"


class Listener(Protocol):
    """Shows the progress of phases. A phase is begun, advanced unit by unit, and ended."""

    def begin(self, phase: str, total: int, *, done: int = 0) -> None:
        """A phase of `total` units begins, `done` of which were done before."""
        ...

    def advance(self, phase: str, units: int = 1, *, detail: str = "", sentences: int = 0) -> None:
        """`units` more are done, which read so many `sentences`."""
        ...

    def detail(self, phase: str, detail: str) -> None:
        """What the phase is doing now."""
        ...

    def epoch(self, phase: str, epoch: RunEpoch) -> None:
        """A run of the phase finished an epoch."""
        ...

    def ended(self, job: str) -> None:
        """All runs of a job have ended."""
        ...

    def trial(self, trial: Trial) -> None:
        """A trial began, ended, or was found in the store."""
        ...

    def front(self, students: Sequence[Trial], hypervolume: float) -> None:
        """The front of all trials so far, and the share of the teacher's box that they dominate."""
        ...

    def budget(self, *, seconds: float | None, gpu_hours: float | None) -> None:
        """What is left of the budget now; None where there is no such limit."""
        ...

    def note(self, text: str) -> None:
        """A sentence that stays on the screen."""
        ...

    def warn(self, text: str) -> None:
        """A warning that stays on the screen."""
        ...

    def end(self, phase: str, summary: str = "") -> None:
        """A phase is done."""
        ...


class Silent:
    """A listener that shows nothing."""

    def begin(self, phase: str, total: int, *, done: int = 0) -> None:
        return None

    def advance(self, phase: str, units: int = 1, *, detail: str = "", sentences: int = 0) -> None:
        return None

    def detail(self, phase: str, detail: str) -> None:
        return None

    def epoch(self, phase: str, epoch: RunEpoch) -> None:
        return None

    def ended(self, job: str) -> None:
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
