"""The status of a sweep: plain data kept by its driver, shown in terminals, Prometheus and `raykd watch`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from raykd.identity import PlainObject

FILE = "status.json"
"""In the sweep's folder."""


@dataclass(frozen=True)
class PhaseStatus:
    """Progress of one phase. Its units are runs, trials, shapes or ranges of sentences."""

    name: str
    total: int
    done: int
    found: int
    """How many were done before it began."""
    seconds: float
    ended: bool = False
    detail: str = ""
    """What it does now; after its end, what it did."""
    within: float = 0.0
    """How much is done of the units that have not ended: each counts from 0 to 1."""
    left_s: float | None = None
    """About how long it still takes; None before the first estimate and after its end."""


@dataclass(frozen=True)
class RunStatus:
    """Progress of an unfinished job."""

    name: str
    about: str
    epoch: int | None = None
    """The last one that ended; None before the first."""
    most: int | None = None
    dev: float | None = None
    done: float | None = None
    """The share of the job that is done, from 0 to 1; None where it does not say."""
    doing: str = ""
    """What it does now, in a few words."""


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
    """Since the driver began."""
    end: str = ""
    """How it ended; empty while it runs."""
    phases: tuple[PhaseStatus, ...] = ()
    running: tuple[RunStatus, ...] = ()
    trials: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Role → state → how many, those of earlier drivers included."""
    front: tuple[StudentStatus, ...] = ()
    """The best on dev first."""
    hypervolume: float | None = None
    label: str = ""
    """What the score is called."""
    epochs: int = 0
    tokens: int = 0
    """Trained on, in epochs that have ended."""
    tokens_per_second: float = 0.0
    """Of all runs that train now, by their last epochs."""
    sentences: int = 0
    """Read by teachers and frozen encoders."""
    untracked: int = 0
    """Values that the tracking server does not have yet."""
    budget_s: float | None = None
    """What is left; None without a limit."""
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
        """JSON-able form; `from_plain` reads it back."""
        return asdict(self)

    @staticmethod
    def from_plain(plain: PlainObject) -> Status:
        """Read the form written by `to_plain`; raises TypeError for an unknown key."""
        parts = {"phases": PhaseStatus, "running": RunStatus, "front": StudentStatus}
        typed = {name: tuple(kind(**item) for item in plain.get(name, ())) for name, kind in parts.items()}
        return Status(**{**plain, **typed})
