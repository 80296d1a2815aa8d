"""Many jobs on one cluster through Ray Tune. Who proposes jobs, and why, is the scheduler's business.

Tune places jobs, reuses their actors and restarts an actor that died. What was done stands in the store, not in
Tune's own snapshots (they lag): taking a sweep up again needs nothing of Tune.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ray import tune
from ray.exceptions import OutOfMemoryError
from ray.tune.search import Searcher

from raykd.errors import RaykdError, RunError
from raykd.runs.cluster import DRIVER_CPUS
from raykd.runs.launch import launch
from raykd.runs.recipe import Resources
from raykd.runs.run import Run

# What an epoch reports; Tune adds its own bookkeeping to it, which is nobody's business here.
EPOCH_METRICS = (
    "epoch", "lambda", "loss", "kd_loss", "gold_loss", "learning_rate", "tokens_per_second",
    "dev_f1", "dev_f1_languages_sd", "dev_f1_by_language", "run_id",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """Runs that belong together (one setting, several seeds); each is placed by itself."""

    key: str
    runs: tuple[Run, ...]


class Scheduler(Protocol):
    """Proposes jobs and hears how they go; lives in the driver."""

    def next(self) -> Job | None:
        """The next job, or None when there is no more."""
        ...

    def epoch(self, key: str, metrics: dict[str, Any]) -> None:
        """One epoch of one of the job's runs is done."""
        ...

    def ended(self, key: str, results: list[dict[str, Any]] | None, error: str | None) -> None:
        """The job is done, with a result per run, or it failed."""
        ...


def work(scheduler: Scheduler, *, store_uri: str, resources: Resources, concurrent: int) -> None:
    """Do all jobs that `scheduler` proposes, `concurrent` at a time. A failed job is told and the rest goes on."""
    scratch = tempfile.mkdtemp(prefix="raykd-tune-")
    own = resources.workers == 1
    demand = (
        {"CPU": resources.cpus_per_worker, "GPU": resources.gpus_per_worker} if own else {"CPU": DRIVER_CPUS}
    )
    callback = _Callback(scheduler)

    def fit(name: str) -> None:
        tune.Tuner(
            tune.with_resources(_job, demand),
            param_space={"store": store_uri, "resources": resources.model_dump()},
            tune_config=tune.TuneConfig(
                search_alg=_Proposals(scheduler, callback),
                num_samples=-1,
                max_concurrent_trials=concurrent,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                name=name, storage_path=scratch, verbose=0, callbacks=[callback],
                failure_config=tune.FailureConfig(max_failures=resources.max_failures),
            ),
        ).fit()  # fmt: skip

    try:
        _survived(fit, resources.max_failures)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _survived(fit: Callable[[str], None], most: int) -> None:
    """Tune gives up when Ray kills a worker because memory is short; the unfinished jobs are proposed again."""
    for attempt in range(most + 1):
        try:
            fit(f"executor-{attempt}")
            return
        except RuntimeError as error:
            if not isinstance(error.__cause__, OutOfMemoryError):
                raise
    raise RunError(
        f"memory was short {most + 1} times, and Ray killed workers for it; what is computed is kept. "
        "Lower resources.concurrency or training.batch_tokens, free memory, and go on with --resume"
    )


def _job(config: dict[str, Any]) -> None:
    """A Tune trial: one run. Errors that would come again are reported, not raised."""
    resources, run = Resources(**config["resources"]), Run.from_plain(config["run"])
    try:
        result = launch(config["store"], run, resources, tune.report)
    except RaykdError as error:
        tune.report({"ended": True, "result": None, "error": str(error)})
    except Exception as error:
        tune.report({"ended": True, "result": None, "error": f"{type(error).__name__}: {error}"})
    else:
        tune.report({"ended": True, "result": result, "error": None})


@dataclass
class _Open:
    """A job that was proposed and has not ended; results by the place of their run in it."""

    job: Job
    results: dict[int, dict[str, Any]] = field(default_factory=dict)

    def lacks(self) -> list[int]:
        return [place for place in range(len(self.job.runs)) if place not in self.results]


class _Callback(tune.Callback):
    """Hands what Tune hears to the scheduler, whose job ends with its last run or with the first that fails."""

    def __init__(self, scheduler: Scheduler):
        self.scheduler = scheduler
        self.places: dict[str, tuple[str, int]] = {}
        """Tune's trial id → the job's key and the run's place in it."""
        self.open: dict[str, _Open] = {}

    def on_trial_result(self, iteration: int, trials: list, trial: Any, result: dict, **info: Any) -> None:
        key, _ = self.places[trial.trial_id]
        if result.get("ended"):
            self._tell(trial, result["result"], result["error"])
        elif "run_id" in result and key in self.open:
            self.scheduler.epoch(key, {name: result[name] for name in EPOCH_METRICS if name in result})

    def on_trial_error(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        reason = (trial.get_error() if hasattr(trial, "get_error") else None) or "its process died"
        last = [line for line in str(reason).splitlines() if line.strip()][-1].strip()
        self._tell(trial, None, last)

    def on_trial_complete(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._tell(trial, None, "it ended without a result")

    def _tell(self, trial: Any, result: dict[str, Any] | None, error: str | None) -> None:
        key, place = self.places[trial.trial_id]
        one = self.open.get(key)
        if one is None or place in one.results:
            return
        if result is None:
            del self.open[key]
            self.scheduler.ended(key, None, error)
            return
        one.results[place] = result
        if not one.lacks():
            del self.open[key]
            self.scheduler.ended(key, [one.results[each] for each in range(len(one.job.runs))], None)

    def __getstate__(self) -> dict:
        # Tune writes a copy of every callback into its snapshot; ours has nothing to keep there.
        return {}


class _Proposals(Searcher):
    """Tune asks here for the next run."""

    def __init__(self, scheduler: Scheduler, callback: _Callback):
        super().__init__()
        self._scheduler, self._callback = scheduler, callback
        self._queue = [(key, place) for key, one in callback.open.items() for place in one.lacks()]

    def suggest(self, trial_id: str) -> Any:
        # The other runs of a job that failed are not begun.
        self._queue = [(key, place) for key, place in self._queue if key in self._callback.open]
        if not self._queue:
            job = self._scheduler.next()
            if job is None:
                return Searcher.FINISHED
            self._callback.open[job.key] = _Open(job)
            self._queue = [(job.key, place) for place in range(len(job.runs))]
        key, place = self._queue.pop(0)
        self._callback.places[trial_id] = (key, place)
        return {"run": self._callback.open[key].job.runs[place].to_plain()}

    def on_trial_complete(self, trial_id: str, result: dict | None = None, error: bool = False) -> None:
        return None

    def __getstate__(self) -> dict:
        return {}

    def save(self, checkpoint_path: str) -> None:
        return None

    def restore(self, checkpoint_path: str) -> None:
        return None
