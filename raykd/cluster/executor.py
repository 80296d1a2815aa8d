"""Many jobs on one cluster through Ray Tune. Which jobs, and in which order, is decided by a scheduler.

Tune places runs, reuses their actors and restarts an actor that died. Results are kept in the store, not in
Tune's own snapshots (they lag behind): resuming a sweep needs nothing of Tune.

An actor takes seconds to start, most of them for its imports, so it is kept from the first run to the last. Tune keeps
one actor that has nothing to do, and ends the others: while the scheduler lets a slot wait, the slot is given a Tune
trial that waits.
"""

from __future__ import annotations

import itertools
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol

import ray
from ray import tune
from ray._private import state as ray_state
from ray.exceptions import OutOfMemoryError, RayActorError
from ray.tune.search import Searcher
from ray.tune.trainable import wrap_function

from raykd.cluster.launch import LAUNCHER
from raykd.cluster.nodes import Nodes, elsewhere
from raykd.cluster.placement import DRIVER_CPUS, group_of
from raykd.cluster.prometheus import count
from raykd.errors import RaykdError, RunError, StoreError
from raykd.figures.results import RunResult
from raykd.recipes.resources import Resources, taken
from raykd.recipes.run import Run
from raykd.redact import redacted
from raykd.storage.store import Storage
from raykd.training.execute import stands

PAUSES_S = (2.0, 20.0)
"""Seconds before a run is tried again here after a fault of the place (no space, storage out of reach)."""


IDLE, IDLE_S = "idle", 0.2
"""What a slot reports that has nothing to do, and the seconds between two reports."""
AVOID = "avoid"
"""In what Tune proposes: the nodes on which the run is not to be done."""
ACTOR_ID = re.compile(r"actor_id[=:] ?([0-9a-f]{16,})")
"""In Ray's errors."""
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

    def epoch(self, key: str, run_id: str, metrics: Mapping[str, Any]) -> Literal["continue", "stop"]:
        """One of the job's runs finished an epoch. "stop" ends the whole job: its outcome is PRUNED."""
        ...

    def ended(self, key: str, outcome: Outcome) -> None:
        """The job ended."""
        ...


def work(
    scheduler: Scheduler,
    *,
    store_uri: str,
    resources: Resources,
    concurrent: int,
    nodes: Nodes | None = None,
) -> None:
    """Do all jobs that `scheduler` proposes, `concurrent` runs at a time.

    A job that fails is reported to the scheduler, and the others go on. A run that fails where one of the `nodes` is to
    blame is done again elsewhere. A run has ended well only when its result is in the store as the driver sees it.

    Raises:
        Exception: what the scheduler raised; the work ends with it.
        StoreError: the driver cannot reach the store.
        RunError: if Ray killed workers for lack of memory more often than `resources.max_failures`.
        PlacementError: no node is left that can do a run.
    """
    scratch = tempfile.mkdtemp(prefix="raykd-tune-")
    jobs = _OpenJobs(scheduler, partial(stands, Storage(store_uri)), nodes, resources)
    if jobs.upcoming() is None:
        if jobs.fault is not None:
            raise jobs.fault
        return  # nothing is started

    def fit(name: str) -> None:
        jobs.again()
        tune.Tuner(
            Slot,
            param_space={"store": store_uri, "resources": resources.model_dump()},
            tune_config=tune.TuneConfig(
                search_alg=_Proposals(jobs),
                num_samples=-1,
                max_concurrent_trials=concurrent,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                name=name, storage_path=scratch, verbose=0, callbacks=[_Endings(jobs)], stop=_Reports(jobs),
                failure_config=tune.FailureConfig(max_failures=resources.max_failures),
            ),
        ).fit()  # fmt: skip

    try:
        _retried(fit, resources.max_failures, lambda: bool(jobs.open) and jobs.fault is None)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if jobs.fault is not None:
        raise jobs.fault


def _retried(fit: Callable[[str], None], most: int, unfinished: Callable[[], bool]) -> None:
    """Tune gives up when Ray kills a worker for lack of memory, and begins nothing once there were no more runs: what
    is unfinished then is begun again."""
    failures = 0
    for attempt in itertools.count():
        try:
            fit(f"executor-{attempt}")
            if not unfinished():
                return
        except RuntimeError as error:
            if not isinstance(error.__cause__, OutOfMemoryError):
                raise
            failures += 1
            if failures > most:
                break
    raise RunError(
        f"memory was short {most + 1} times, and Ray killed workers for it; what is computed is kept. "
        "Lower resources.concurrency or training.batch_tokens, free memory, and go on with --resume"
    )


def _job(config: dict[str, Any]) -> None:
    """A Tune trial: one run. Faults of the run itself are reported, not raised: they would occur again. Those of the
    place are tried again here, and after that raised: Tune tries them again elsewhere, `max_failures` times.

    Without a run it waits until Tune stops it."""
    while config["run"] is None:
        tune.report({IDLE: True})
        time.sleep(IDLE_S)
    resources, run = Resources(**config["resources"]), Run.from_plain(config["run"])
    avoid = tuple(config.get(AVOID, ()))
    end: dict[str, Any] = {"result": None, "error": ""}
    try:
        end["result"] = _launched(config["store"], run, resources, avoid).to_plain()
    except RaykdError as error:
        if isinstance(error, StoreError) and error.passing:
            raise
        end["error"] = redacted(str(error))
    except RayActorError:
        raise  # what the slot had started: another slot does the run
    except Exception as error:
        end["error"] = redacted(f"{type(error).__name__}: {error}")
    node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
    tune.report({"run_end": end, "node": node})


class Slot(wrap_function(_job)):
    """The actor that does one Tune trial after the other."""

    @classmethod
    def default_resource_request(cls, config: dict[str, Any]) -> tune.PlacementGroupFactory:
        """What it takes itself, and on which nodes; workers under Ray Train take theirs."""
        resources, where = Resources(**config["resources"]), elsewhere(config.get(AVOID, ()))
        takes = {"CPU": DRIVER_CPUS} if resources.under_ray_train else taken(resources)
        options: dict[str, Any] = {"bundle_label_selector": [where]} if where else {}
        return tune.PlacementGroupFactory([takes], **options)

    def cleanup(self) -> None:
        """Tune ends the actor."""
        try:
            super().cleanup()
        finally:
            LAUNCHER.close()


def _launched(store: str, run: Run, resources: Resources, avoid: tuple[str, ...]) -> RunResult:
    for pause in PAUSES_S:
        try:
            return LAUNCHER.launch(store, run, resources, tune.report, avoid)
        except StoreError as error:
            if not error.passing:
                raise
            count("raykd_store_retries_total")
            time.sleep(pause)
    return LAUNCHER.launch(store, run, resources, tune.report, avoid)


@dataclass
class _OpenJob:
    """A job that was proposed and has not ended; results by the place of their run in it."""

    job: Job
    results: dict[int, RunResult] = field(default_factory=dict)

    def missing(self) -> list[int]:
        return [place for place in range(len(self.job.runs)) if place not in self.results]


class _OpenJobs:
    """The jobs that are being done. A job ends with its last run, or with the first that fails or is stopped.

    What the scheduler raises is kept in `fault`, and ends the work: out of Tune's hooks it would come as Tune's own.
    While the scheduler does something itself, Tune waits with it, and the actors sleep.
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
        """Tune's trial id → the job's key and the run's place in it."""
        self.open: dict[str, _OpenJob] = {}
        self._queue: list[tuple[str, int]] = []
        self._begun: set[str] = set()
        """Tune's trial ids of which a slot has begun."""
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
        """The run that is upcoming, as this trial of Tune."""
        key, place = self.places[trial_id] = self._queue.pop(0)
        return self.open[key].job.runs[place]

    def begun(self, trial_id: str) -> None:
        """A slot has begun the run, and did not die before."""
        self._begun.add(trial_id)

    def failed(self, trial_id: str, error: str, *, node: str) -> None:
        """Tune gave the trial up. What the run itself reported or made fail stays so; but one whose slot was dead
        before it began (it died while it waited) is given to another slot, once."""
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

    def epoch(self, trial_id: str, run_id: str, metrics: Mapping[str, Any]) -> bool:
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
        result: dict[str, Any] | None,
        error: str,
        *,
        node: str = "",
        of_place: bool = False,
    ) -> None:
        """Keep a run's result, from this node where that is known, if it is in the store too. Ends its job if it is the
        last one or failed, unless a node is to blame; later reports of a run are ignored."""
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


def _no_state(self: object) -> dict[str, Any]:
    """Tune pickles stopper, callback and searcher into its snapshots; nothing of ours is kept there."""
    return {}


class _Reports(tune.Stopper):
    """Receives what the runs report. Of all Tune's hooks only a stopper gets a report unflattened and may stop."""

    __getstate__ = _no_state

    def __init__(self, jobs: _OpenJobs):
        self._jobs = jobs

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        if result.get("done"):  # Tune repeats the last report of a trial that returned
            return False
        if IDLE in result:
            return self._jobs.upcoming() != "wait"
        if "epoch_report" in result:
            return self._jobs.epoch(trial_id, result["run_id"], result["epoch_report"])
        if "run_end" in result:
            self._jobs.run_ended(trial_id, **result["run_end"], node=result.get("node", ""))
        return False

    def stop_all(self) -> bool:
        return self._jobs.fault is not None


class _Endings(tune.Callback):
    """Receives the ends of runs that could not report one, and which runs have begun."""

    __getstate__ = _no_state

    def __init__(self, jobs: _OpenJobs):
        self._jobs = jobs

    def on_trial_start(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._jobs.begun(trial.trial_id)

    def on_trial_error(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        node, why = _end_of(trial)
        self._jobs.failed(trial.trial_id, why, node=node)

    def on_trial_recover(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._jobs.place_failed(*_end_of(trial), of_place=True)  # Tune begins it again by itself

    def on_trial_complete(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._jobs.run_ended(trial.trial_id, None, "it ended without a result")


def _end_of(trial: Any) -> tuple[str, str]:
    """The node on which a trial's process died or raised, where Ray knows it, and why."""
    text = str(
        (trial.get_error() if hasattr(trial, "get_error") else None) or "its process died"
    )  # Tune keeps a text
    last = [line for line in text.splitlines() if line.strip()][-1].strip()
    found = ACTOR_ID.search(text)
    known = ray_state.actors(found.group(1)) if found and ray.is_initialized() else {}
    return known.get("Address", {}).get("NodeID", ""), redacted(last)


class _Proposals(Searcher):
    """Tune asks here for the next run."""

    __getstate__ = _no_state

    def __init__(self, jobs: _OpenJobs):
        super().__init__()
        self._jobs = jobs
        self._at_work: set[str] = set()
        self._actors = 0
        """How many were started."""

    def suggest(self, trial_id: str) -> Any:
        upcoming = self._jobs.upcoming()
        if upcoming is None:
            return Searcher.FINISHED
        if upcoming == "wait" and len(self._at_work) >= self._actors:
            return None  # Tune asks again; no actor is started to wait
        self._at_work.add(trial_id)
        self._actors = max(self._actors, len(self._at_work))
        avoid = {AVOID: list(self._jobs.avoid)} if self._jobs.avoid else {}
        return {"run": self._jobs.begin(trial_id).to_plain() if upcoming == "run" else None, **avoid}

    def on_trial_complete(self, trial_id: str, result: dict | None = None, error: bool = False) -> None:
        self._at_work.discard(trial_id)

    def save(self, checkpoint_path: str) -> None:
        return None

    def restore(self, checkpoint_path: str) -> None:
        return None
