"""The status of a sweep: plain data kept by its driver, shown in terminals, Prometheus and `raykd watch`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from raykd.identity import PlainObject

FILE = "status.json"
"""Name of the file in the folder of a sweep."""


@dataclass(frozen=True)
class PhaseStatus:
    """Progress of one phase. Its units are runs, trials, shapes or ranges of sentences."""

    name: str
    total: int
    done: int
    found: int
    """Units that were done before the phase began."""
    seconds: float
    ended: bool = False
    detail: str = ""
    """The current activity; after the end of the phase, its result."""
    within: float = 0.0
    """Work done on unfinished units, in units: each counts from 0 to 1."""
    left_s: float | None = None
    """Estimated remaining seconds; None before the first estimate and after the end."""


@dataclass(frozen=True)
class RunStatus:
    """Progress of an unfinished job."""

    name: str
    about: str
    epoch: int | None = None
    """Number of the last finished epoch, from 1; None before."""
    most: int | None = None
    """Largest number of epochs; None if only optimiser steps or patience end the run."""
    dev: float | None = None
    """Dev score of that epoch, 0 to 1."""
    done: float | None = None
    """Finished share of the job, from 0 to 1; None if the job has not reported it."""
    doing: str = ""
    """The current activity, in a few words."""


@dataclass(frozen=True)
class StudentStatus:
    """One student of the front."""

    name: str
    dev: float
    latency_ms: float | None
    parameters: float | None


@dataclass(frozen=True)
class Status:
    """Progress of a sweep; counters hold the work of the present driver."""

    written: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    seconds: float = 0.0
    """Seconds since the driver began."""
    end: str = ""
    """The end of the sweep: ended, interrupted, or failed with the reason; empty while it runs."""
    phases: tuple[PhaseStatus, ...] = ()
    running: tuple[RunStatus, ...] = ()
    trials: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Role → state → number of trials, those of earlier drivers included."""
    front: tuple[StudentStatus, ...] = ()
    """Students of the front, the best on dev first."""
    hypervolume: float | None = None
    label: str = ""
    """Readable name of the score."""
    epochs: int = 0
    tokens: int = 0
    """Tokens trained on, in finished epochs."""
    tokens_per_second: float = 0.0
    """Speed of all training runs together, by their last epochs."""
    sentences: int = 0
    """Sentences read by teachers and frozen encoders."""
    untracked: int = 0
    """Values that the tracking server does not have yet."""
    budget_s: float | None = None
    """Remaining seconds of the budget; None without a limit."""
    budget_gpu_hours: float | None = None

    @property
    def phase(self) -> PhaseStatus | None:
        """The running phase, or the last one."""
        return next((phase for phase in reversed(self.phases) if not phase.ended), (None, *self.phases)[-1])

    def count(self, role: str, state: str) -> int:
        """Return the number of trials.

        Args:
            role: Role of the trials.
            state: State of the trials.
        """
        return self.trials.get(role, {}).get(state, 0)

    def to_plain(self) -> PlainObject:
        """Return the JSON form; `from_plain` reads it back."""
        return asdict(self)

    @staticmethod
    def from_plain(plain: PlainObject) -> Status:
        """Read the form written by `to_plain`; raises TypeError for an unknown key."""
        parts = {"phases": PhaseStatus, "running": RunStatus, "front": StudentStatus}
        typed = {name: tuple(kind(**item) for item in plain.get(name, ())) for name, kind in parts.items()}
        return Status(**{**plain, **typed})
