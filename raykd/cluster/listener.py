"""How phases report their progress: what is above implements this protocol, everything below only calls it.

A phase consists of units (runs, trials, shapes, ranges of sentences). What does a unit says how far it is
(`raykd/progress.py`), here or in another process (`cluster/progress_channel.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from raykd.figures.trial import Trial
from raykd.progress import listen_to_progress


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


@dataclass(frozen=True)
class Unit:
    """Something that a phase does, before it has ended."""

    phase: str
    key: str
    """Its id; that of a job."""
    parts: Mapping[str, str]
    """The id of each part, which says how far it is by this id, and what it is called."""
    about: str = ""
    """What is done, in short; empty where the names of the parts say it."""
    counts: int = 1
    """The number of units of the phase that it stands for."""
    trains: bool = False
    """True where its parts are runs, which have epochs."""


class Listener(Protocol):
    """Shows the progress of phases. A phase is begun, advanced unit by unit, and ended."""

    def begin(self, phase: str, total: int, *, done: int = 0) -> None:
        """A phase of `total` units begins, `done` of which were done before."""
        ...

    def started(self, unit: Unit) -> None:
        """A unit begins."""
        ...

    def within(self, part: str, done: float | None, doing: str, first: float = 0.0) -> None:
        """A part of a unit that has not ended is so far; other parts are ignored. Call it from any thread.

        Args:
            part: its id.
            done: as in `raykd.progress.Hear`.
            doing: as there.
            first: the share that was done before: a run may go on from a checkpoint.
        """
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

    def ended(self, key: str) -> None:
        """The unit with this key has ended; call it before `advance`."""
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


@contextmanager
def unit_here(listener: Listener, phase: str, name: str, *, counts: int = 1) -> Iterator[None]:
    """The body is a unit of `phase`, done by this thread: what it reports of its progress is shown.

    Where the body ends, `advance` says how much was done.
    """
    listener.started(Unit(phase, name, {name: name}, counts=counts))
    try:
        with listen_to_progress(partial(listener.within, name)):
            yield
    finally:
        listener.ended(name)
