"""Jobs on a cluster: the jobs proposed by a scheduler, their running, finished and repeated runs.

This module does not know how runs come to their actors; `tune_pool.py` does.
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
    """Runs of one setting; each run is placed independently."""

    key: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Outcome:
    """The end of a job: COMPLETE with one result for each run, in order; otherwise a message."""

    state: Literal["COMPLETE", "PRUNED", "FAILED"]
    results: tuple[RunResult, ...] = ()
    message: str = ""


Wait = Literal["wait"]


class Scheduler(Protocol):
    """Proposes jobs, and is informed of their progress. Lives in the driver."""

    def next(self) -> Job | Wait | None:
        """Return the next job, "wait" if it depends on an unfinished one, or None if there are no more."""
        ...

    def epoch(self, key: str, run_id: str, metrics: PlainObject) -> Literal["continue", "stop"]:
        """Take the metrics of an epoch, and decide whether the job goes on.

        Args:
            key: Key of the job.
            run_id: Id of the run that finished the epoch.
            metrics: Metrics of the epoch.

        Returns:
            "stop" ends the whole job with the outcome PRUNED.
        """
        ...

    def ended(self, key: str, outcome: Outcome) -> None:
        """Take the outcome of a job.

        Args:
            key: Key of the job.
            outcome: State and results of the job.
        """
        ...


@dataclass
class _OpenJob:
    """A proposed job in progress; results by the position of their run in the job."""

    job: Job
    results: dict[int, RunResult] = field(default_factory=dict)

    def missing(self) -> list[int]:
        return [place for place in range(len(self.job.runs)) if place not in self.results]


class OpenJobs:
    """The jobs in progress. A job ends with its last run, or with the first run that fails or is stopped.

    An exception of the scheduler is kept in `fault`, and ends the work. While the scheduler computes, the pool waits
    and the actors sleep. The pool gives each attempt at a run its own id, `trial_id`.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        stored: Callable[[Run], bool],
        nodes: Nodes | None = None,
        resources: Resources | None = None,
    ):
        """Begin without jobs.

        Args:
            scheduler: Proposes the jobs.
            stored: Returns True if the result of a finished run is in the store.
            nodes: Nodes of the cluster; None: no node is ever at fault.
            resources: Resources of one run.
        """
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

    def requeue_unfinished(self) -> None:
        """Queue all runs without a result, including those begun before."""
        self._queue = [(key, place) for key, open_job in self.open.items() for place in open_job.missing()]

    @property
    def avoid(self) -> tuple[str, ...]:
        """Ids of the nodes without further runs."""
        return self._nodes.avoid if self._nodes is not None else ()

    def upcoming(self) -> Literal["run"] | Wait | None:
        """Return "run" if a run can begin, "wait" if one may follow later, or None if there are no more."""
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
        """Take the next run from the queue, for the attempt `trial_id`."""
        key, place = self.places[trial_id] = self._queue.pop(0)
        return self.open[key].job.runs[place]

    def begun(self, trial_id: str) -> None:
        """Note that a slot has begun the run of an attempt."""
        self._begun.add(trial_id)

    def failed(self, trial_id: str, error: str, *, node: str) -> None:
        """End an attempt given up by the pool.

        A run whose slot died before beginning it is given to another slot, once. Otherwise the run has failed.
        """
        job_and_place = self.places.get(trial_id)
        if job_and_place is None or trial_id in self._begun or not self._give_back(job_and_place):
            self.run_ended(trial_id, None, error, node=node, of_place=True)
            return
        self._queue.insert(0, job_and_place)

    def _give_back(self, job_and_place: tuple[str, int]) -> bool:
        """Return True the first time: a run may move to another slot once although no node is at fault."""
        first = job_and_place not in self._given_back
        self._given_back.add(job_and_place)
        return first

    def _propose(self) -> Job | Wait | None:
        with self._guarded():
            return self.scheduler.next()
        return None

    def epoch(self, trial_id: str, run_id: str, metrics: PlainObject) -> bool:
        """Pass an epoch on to the scheduler; return True if the run has to stop."""
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
        """Take the end of a run, and end its job if this was the last run or a failed one.

        A result counts only if it is in the store. A run that failed through the fault of a node is queued again. Later
        reports of the same run are ignored.

        Args:
            trial_id: The attempt.
            result: Result of the run; None if it failed.
            error: Reason of the failure.
            node: Id of the node, empty if unknown.
            of_place: True if the run itself is not at fault.
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
            if blamed or (lost and self._give_back((key, place))):
                del self.places[trial_id]
                self._queue.append((key, place))
            elif self.fault is None:
                self._end(key, Outcome("FAILED", message=error))
            return
        if self._nodes is not None and node:
            self._nodes.worked(node)
        job.results[place] = RunResult.from_plain(result)
        if not job.missing():
            self._end(
                key, Outcome("COMPLETE", tuple(job.results[index] for index in range(len(job.results))))
            )

    def _stands(self, run: Run) -> bool:
        with self._guarded():
            return self._stored(run)
        return False

    def place_failed(self, node: str, reason: str, *, of_place: bool) -> bool:
        """Return True if a node is at fault for a failure, most likely `node`."""
        with self._guarded():
            if self._nodes is not None and self._nodes.blamed(node, reason, of_place=of_place):
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
