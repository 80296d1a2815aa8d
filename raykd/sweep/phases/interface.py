"""The interface of a phase, and the state shared by the phases of one command. The driver walks a list of phases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from raykd.cluster.jobs import Scheduler
from raykd.cluster.listener import Listener
from raykd.cluster.placement import Placements, preflight
from raykd.cluster.topology import Topology
from raykd.recipes.resources import RunRole
from raykd.sweep.bookkeeping import Recorder
from raykd.sweep.sweep import Sweep


@dataclass
class PhaseContext:
    """State shared by the phases of one command, including results for later phases.

    Raises:
        PlacementError: at construction, before anything starts, if a run cannot be placed.
    """

    sweep: Sweep
    cluster: Topology
    listener: Listener
    publish: Callable[[], None] = lambda: None
    """Called at the end of each phase to publish its records; must not wait for a server."""
    placements: Placements = field(init=False)
    at_once: int = 1
    """Number of simultaneous runs in the slots of the present phase."""
    recorder: Recorder = field(init=False)
    """Records the trials; set by the search."""
    given_up: str = ""
    """Reason why no further trial begins, as too many failed; empty if the sweep goes on."""

    def __post_init__(self) -> None:
        self.placements = preflight(self.sweep.file.resources, self.cluster)


class Phase(ABC):
    """One phase: computes data missing in the store, and reports to the listener under its name."""

    name: ClassVar[str]
    role: ClassVar[RunRole | None] = None
    """Role whose slots do the runs of the phase; None if it has no runs."""

    def __init__(self, context: PhaseContext):
        self.context, self.sweep, self.listener = context, context.sweep, context.listener

    def is_skipped(self) -> bool:
        """True if the sweep goes on without this phase; read when the phase would begin."""
        return False

    def planned(self) -> int:
        """Largest number of simultaneous runs of the phase; 0 if all results are in the store."""
        return 0

    @abstractmethod
    def run(self) -> Iterable[Scheduler]:
        """Do the phase. Each scheduler it yields is done before the next is requested."""

    def summary(self) -> str:
        """Short result of the phase, after its end; empty if there was nothing to do."""
        return ""
