"""Jobs on a cluster: what a scheduler proposes, and which of it is being done, has ended or is to be done again.

Nothing here knows how runs come to their actors: that is `tune_pool.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from raykd.cluster.nodes import Nodes
from raykd.cluster.placement import group_of
from raykd.figures.results import RunResult
from raykd.identity import PlainObject
from raykd.recipes.resources import Resources
from raykd.recipes.run import Run

NOT_STORED = "it ended well, and its result is not in the store: did its node lose the store meanwhile?"


@dataclass(frozen=True)
class Job:
    """Runs that belong together (those of one setting); each is placed by itself."""

    key: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Outcome:
    """How a job ended: COMPLETE with a result for each of its runs, in their order; otherwise with a message."""

    state: Literal["COMPLETE", "PRUNED", "FAILED"]
    results: tuple[RunResult, ...] = ()
    message: str = ""


Wait = Literal["wait"]


class Scheduler(Protocol):
    """Proposes jobs and is informed of their progress; lives in the driver."""

    def next(self) -> Job | Wait | None:
        """The next job, "wait" where it depends on one that has not ended, or None when there are no more."""
        ...

    def epoch(self, key: str, run_id: str, metrics: PlainObject) -> Literal["continue", "stop"]:
        """One of the job's runs finished an epoch. "stop" ends the whole job: its outcome is PRUNED."""
        ...

    def ended(self, key: str, outcome: Outcome) -> None:
        """The job ended."""
        ...


@dataclass
class _OpenJob:
    """A job that was proposed and has not ended; results by the place of their run in it."""

    job: Job
    results: dict[int, RunResult] = field(default_factory=dict)

    def missing(self) -> list[int]:
        return [place for place in range(len(self.job.runs)) if place not in self.results]


class OpenJobs:
    """The jobs that are being done. A job ends with its last run, or with the first that fails or is stopped.

    What the scheduler raises is kept in `fault`, and ends the work. While the scheduler does something itself, the pool
    waits with it, and the actors sleep. The pool gives each attempt at a run an id of its own, `trial_id`.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        stored: Callable[[Run], bool],
        nodes: Nodes | None = None,
        resources: Resources | None = None,
    ):
        """stored: whether the result of a run that has ended is in the store."""
        self.scheduler, self._stored, self._nodes = scheduler, stored, nodes
        self._group = group_of(resources or Resources())
        self.fault: Exception | None = None
        self.places: dict[str, tuple[str, int]] = {}
        """Trial id → the job's key and the run's place in it."""
        self.open: dict[str, _OpenJob] = {}
        self._queue: list[tuple[str, int]] = []
        self._begun: set[str] = set()
        """Those that a slot has begun."""
        self._given_back: set[tuple[str, int]] = set()

    def again(self) -> None:
        """Whatever has no result is to be begun, also what was begun before."""
        self._queue = [(key, place) for key, one in self.open.items() for place in one.missing()]

    @property
    def avoid(self) -> tuple[str, ...]:
        """The nodes on which no run is begun any more."""
        return self._nodes.avoid if self._nodes is not None else ()

    def upcoming(self) -> Literal["run"] | Wait | None:
        """Whether there is a run to begin, "wait" while there may be one later, or None when there are no more."""
        with self._guarded():
            if self._nodes is not None:
                self._nodes.look()
        # The other runs of a job that ended early are not begun.
        self._queue = [(key, place) for key, place in self._queue if key in self.open]
        if not self._queue:
            job = self._propose()
            if not isinstance(job, Job):
                return job
            self.open[job.key] = _OpenJob(job)
            self._queue = [(job.key, place) for place in range(len(job.runs))]
        return "run"

    def begin(self, trial_id: str) -> Run:
        """The run that is upcoming, as this attempt."""
        key, place = self.places[trial_id] = self._queue.pop(0)
        return self.open[key].job.runs[place]

    def begun(self, trial_id: str) -> None:
        """A slot has begun the run, and did not die before."""
        self._begun.add(trial_id)

    def failed(self, trial_id: str, error: str, *, node: str) -> None:
        """The pool gave the attempt up. What the run itself reported or made fail stays so; but one whose slot was dead
        before it began (it died while it waited) is given to another slot, once.
        """
        own = self.places.get(trial_id)
        if own is None or trial_id in self._begun or not self._once_more(own):
            self.run_ended(trial_id, None, error, node=node, of_place=True)
            return
        self._queue.insert(0, own)

    def _once_more(self, own: tuple[str, int]) -> bool:
        """Whether a run is to be given to a slot again: once, where nobody is to blame."""
        first = own not in self._given_back
        self._given_back.add(own)
        return first

    def _propose(self) -> Job | Wait | None:
        with self._guarded():
            return self.scheduler.next()
        return None

    def epoch(self, trial_id: str, run_id: str, metrics: PlainObject) -> bool:
        """Pass an epoch on to the scheduler; whether its run is to be stopped."""
        key, _ = self.places[trial_id]
        with self._guarded():
            if key in self.open and self.scheduler.epoch(key, run_id, metrics) == "stop":
                self._end(key, Outcome("PRUNED", message=f"stopped after epoch {metrics['epoch'] + 1}"))
        # Nothing uses what the other runs of an ended job would still compute.
        return key not in self.open

    def run_ended(
        self,
        trial_id: str,
        result: PlainObject | None,
        error: str,
        *,
        node: str = "",
        of_place: bool = False,
    ) -> None:
        """Keep a run's result, from this node where that is known, if it is in the store too. Ends its job if it is the
        last one or failed, unless a node is to blame; later reports of a run are ignored.
        """
        if trial_id not in self.places:  # it had no run
            return
        key, place = self.places[trial_id]
        job = self.open.get(key)
        if job is None or place in job.results:
            return
        lost = result is not None and not self._stands(job.job.runs[place])
        if lost:
            error, of_place = NOT_STORED, True
        if result is None or lost:
            blamed = self.place_failed(node, error, of_place=of_place)
            if blamed or (lost and self._once_more((key, place))):
                del self.places[trial_id]
                self._queue.append((key, place))
            elif self.fault is None:
                self._end(key, Outcome("FAILED", message=error))
            return
        if self._nodes is not None and node:
            self._nodes.worked(node)
        job.results[place] = RunResult.from_plain(result)
        if not job.missing():
            self._end(key, Outcome("COMPLETE", tuple(job.results[each] for each in range(len(job.results)))))

    def _stands(self, run: Run) -> bool:
        with self._guarded():
            return self._stored(run)
        return False

    def place_failed(self, node: str, why: str, *, of_place: bool) -> bool:
        """Whether a node is to blame for what failed, most likely this one."""
        with self._guarded():
            if self._nodes is not None and self._nodes.blamed(node, why, of_place=of_place):
                self._nodes.refuse_too_small(self._group)
                return True
        return False

    def _end(self, key: str, outcome: Outcome) -> None:
        del self.open[key]
        with self._guarded():
            self.scheduler.ended(key, outcome)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.fault = self.fault or error
