"""A pool of slots for jobs, built on Ray Tune in an unusual way that no other module needs to know.

Tune places runs on nodes, reuses their actors and restarts dead actors; it serves for this alone. The search is
elsewhere (`sweep/study.py`). Results are kept in the store, not in Tune's snapshots, which lag behind: resuming a sweep
needs nothing from Tune. So the parts of Tune serve other purposes than their names say:

* a Tune *trial* is one run, or a slot waiting for one. Tune keeps one idle actor and ends the rest. While the
  scheduler lets a slot wait, the slot is given a trial without a run, which keeps its actor;
* the *searcher* (`_Proposals`) is the queue of runs: Tune asks it for the next one;
* the *stopper* (`_Reports`) is the mailbox: it receives the reports of runs, and ends runs that have to stop;
* the *callback* (`_Endings`) hears of runs that could not report their end.
"""

from __future__ import annotations

import itertools
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import ray
from ray import tune
from ray._private import state as ray_state
from ray.exceptions import OutOfMemoryError
from ray.tune.search import Searcher
from typing_extensions import override

from raykd.cluster.jobs import OpenJobs, Scheduler
from raykd.cluster.nodes import Nodes
from raykd.cluster.slot import AVOID, IDLE, Slot
from raykd.errors import RunError
from raykd.recipes.resources import Resources
from raykd.redact import redact
from raykd.storage.store import Storage
from raykd.training.execute import result_is_visible

ACTOR_ID = re.compile(r"actor_id[=:] ?([0-9a-f]{16,})")
"""The id of an actor in Ray's errors."""


def work(
    scheduler: Scheduler,
    *,
    store_uri: str,
    resources: Resources,
    concurrent: int,
    nodes: Nodes | None = None,
) -> None:
    """Do all jobs of a scheduler.

    The work goes on after a failed job, which is reported to the scheduler. A run that failed through the fault of a
    node is repeated elsewhere. A run has ended well only if the driver sees its result in the store.

    Args:
        scheduler: Proposes jobs and takes their outcomes.
        store_uri: URI of the store.
        resources: Resources of one run.
        concurrent: Number of runs at a time.
        nodes: Nodes of the cluster, which may be left out; None: no node is ever at fault.

    Raises:
        Exception: an exception of the scheduler ends the work.
        StoreError: the driver cannot reach the store.
        RunError: Ray killed workers for lack of memory more often than `resources.max_failures`.
        PlacementError: no node is left that can do a run.
    """
    scratch = tempfile.mkdtemp(prefix="raykd-tune-")
    jobs = OpenJobs(scheduler, partial(result_is_visible, Storage(store_uri)), nodes, resources)
    if jobs.upcoming() is None:
        if jobs.fault is not None:
            raise jobs.fault
        return  # nothing is started

    def fit(name: str) -> None:
        jobs.requeue_unfinished()
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


def _retried(fit: Callable[[str], None], max_failures: int, unfinished: Callable[[], bool]) -> None:
    """Fit until no job is unfinished: Tune gives up when Ray kills a worker for lack of memory."""
    failures = 0
    for attempt in itertools.count():
        try:
            fit(f"pool-{attempt}")
            if not unfinished():
                return
        except RuntimeError as error:
            if not isinstance(error.__cause__, OutOfMemoryError):
                raise
            failures += 1
            if failures > max_failures:
                break
    raise RunError(
        f"memory was short {max_failures + 1} times, and Ray killed workers for it; what is computed is kept. "
        "Lower resources.concurrency or training.batch_tokens, free memory, and go on with --resume"
    )


def _no_state(self: object) -> dict[str, Any]:
    """Keep nothing of ours in Tune's snapshots, into which it pickles stopper, callback and searcher."""
    return {}


class _Reports(tune.Stopper):
    """Receives reports of runs: of Tune's hooks, only a stopper gets them unflattened and may stop a run."""

    __getstate__ = _no_state

    def __init__(self, jobs: OpenJobs):
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

    @override
    def stop_all(self) -> bool:
        return self._jobs.fault is not None


class _Endings(tune.Callback):
    """Receives the beginning of runs, and the end of those that could not report it."""

    __getstate__ = _no_state

    def __init__(self, jobs: OpenJobs):
        self._jobs = jobs

    @override
    def on_trial_start(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._jobs.begun(trial.trial_id)

    @override
    def on_trial_error(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        node, reason = _end_of(trial)
        self._jobs.failed(trial.trial_id, reason, node=node)

    @override
    def on_trial_recover(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._jobs.place_failed(*_end_of(trial), of_place=True)  # Tune begins it again by itself

    @override
    def on_trial_complete(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._jobs.run_ended(trial.trial_id, None, "it ended without a result")


def _end_of(trial: Any) -> tuple[str, str]:
    """Node and reason of the death of a trial's process; the node is empty if Ray does not know it."""
    text = str(
        (trial.get_error() if hasattr(trial, "get_error") else None) or "its process died"
    )  # Tune keeps a text
    last = [line for line in text.splitlines() if line.strip()][-1].strip()
    actor = ACTOR_ID.search(text)
    state = ray_state.actors(actor.group(1)) if actor and ray.is_initialized() else {}
    return state.get("Address", {}).get("NodeID", ""), redact(last)


class _Proposals(Searcher):
    """Gives Tune the next run."""

    __getstate__ = _no_state

    def __init__(self, jobs: OpenJobs):
        super().__init__()
        self._jobs = jobs
        self._at_work: set[str] = set()
        self._actors = 0
        """Number of actors started."""

    @override
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

    @override
    def on_trial_complete(self, trial_id: str, result: dict | None = None, error: bool = False) -> None:
        self._at_work.discard(trial_id)

    @override
    def save(self, checkpoint_path: str) -> None:
        return None

    @override
    def restore(self, checkpoint_path: str) -> None:
        return None
