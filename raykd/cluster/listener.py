"""The protocol for the progress of phases: higher floors implement it, lower floors only call it.

A phase consists of units (runs, trials, shapes, ranges of sentences). The code that does a unit reports its progress
(`raykd/progress.py`), in this process or in another (`cluster/progress_channel.py`).
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
    """A finished epoch of one run of a job."""

    job: str
    """Key of the job: all runs of a trial have the same."""
    name: str
    about: str
    """Method and shape of the model; empty if the name says enough."""
    number: int
    """Number of the epoch, from 1."""
    last_number: int | None
    """Largest number of epochs; None if only optimiser steps or patience end the run."""
    dev: float
    """Dev score, 0 to 1."""
    label: str
    """Readable name of the score."""
    tokens: int
    """Tokens trained on in the epoch."""
    tokens_per_second: float

    def __str__(self) -> str:
        # Figures first: on a narrow terminal the end of the line is cut off.
        after = f", {self.about}" if self.about else ""
        return f"{self.name}: epoch {self.number}, dev {self.label} {100 * self.dev:.1f}{after}"


@dataclass(frozen=True)
class Unit:
    """A piece of a phase's work in progress."""

    phase: str
    key: str
    """Id of the unit: that of its job, if it is one."""
    parts: Mapping[str, str]
    """Id of a part → its name; a part reports its progress by its id."""
    about: str = ""
    """Method and shape of the model, or empty if the names of the parts say enough."""
    counts: int = 1
    """Units of the phase for which this one stands."""
    trains: bool = False
    """True if the parts are runs, which have epochs."""


class Listener(Protocol):
    """Shows the progress of phases. A phase is begun, advanced unit by unit, and ended."""

    def begin(self, phase: str, total: int, *, done_before: int = 0) -> None:
        """Begin a phase.

        Args:
            phase: Name of the phase.
            total: Number of its units.
            done_before: Units that were done before.
        """
        ...

    def started(self, unit: Unit) -> None:
        """Begin a unit."""
        ...

    def part_progress(self, part: str, share: float | None, doing: str, first: float = 0.0) -> None:
        """Take the progress of one part of an unfinished unit; unknown parts are ignored. Safe to call from any thread.

        Args:
            part: Id of the part.
            share: Finished share, from 0 to 1; None: as before. See in `raykd.progress.ProgressListener`.
            doing: Current activity, as in `raykd.progress.ProgressListener`.
            first: Share that was done before: a run may go on from a checkpoint.
        """
        ...

    def advance(self, phase: str, units: int = 1, *, detail: str = "", sentences: int = 0) -> None:
        """Count finished units.

        Args:
            phase: Name of the phase.
            units: Number of newly finished units.
            detail: Current activity.
            sentences: Sentences read by these units.
        """
        ...

    def detail(self, phase: str, detail: str) -> None:
        """Show the current activity of a phase.

        Args:
            phase: Name of the phase.
            detail: The activity, in a few words.
        """
        ...

    def epoch(self, phase: str, epoch: RunEpoch) -> None:
        """Take a finished epoch.

        Args:
            phase: Name of the phase.
            epoch: Metrics of the epoch.
        """
        ...

    def ended(self, key: str) -> None:
        """End the unit with a key; call it before `advance`."""
        ...

    def trial(self, trial: Trial) -> None:
        """Take a trial: begun, ended, or found in the store."""
        ...

    def front(self, students: Sequence[Trial], hypervolume: float) -> None:
        """Take the current front.

        Args:
            students: Trials on the front.
            hypervolume: Share of the teacher's box that they dominate, from 0 to 1.
        """
        ...

    def budget(self, *, seconds: float | None, gpu_hours: float | None) -> None:
        """Take the rest of the budget; None stands for no limit.

        Args:
            seconds: Seconds of wall time.
            gpu_hours: GPU hours.
        """
        ...

    def note(self, text: str) -> None:
        """Show a lasting sentence on the screen."""
        ...

    def warn(self, text: str) -> None:
        """Show a lasting warning on the screen."""
        ...

    def end(self, phase: str, summary: str = "") -> None:
        """End a phase.

        Args:
            phase: Name of the phase.
            summary: Short result of the phase.
        """
        ...


@contextmanager
def unit_here(listener: Listener, phase: str, name: str, *, counts: int = 1) -> Iterator[None]:
    """Treat the body as one unit of a phase, and show the progress reported by this thread.

    The unit is not counted at the end: call `advance` for that.

    Args:
        listener: Shows the progress.
        phase: Name of the phase.
        name: Name of the unit.
        counts: Number of units of the phase that the body stands for.
    """
    listener.started(Unit(phase, name, {name: name}, counts=counts))
    try:
        with listen_to_progress(partial(listener.part_progress, name)):
            yield
    finally:
        listener.ended(name)
