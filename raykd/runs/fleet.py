"""Many jobs on one cluster through Ray Tune. Who proposes jobs, and why, is the foreman's business.

Tune places jobs, reuses their actors and restarts an actor that died. What was done stands in the store, not in
Tune's own snapshots (they lag): taking a sweep up again needs nothing of Tune.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
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
    """Runs that belong together (one setting, several seeds), done one after the other."""

    key: str
    runs: tuple[Run, ...]


class Foreman(Protocol):
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


def work(foreman: Foreman, *, store_uri: str, resources: Resources, concurrent: int) -> None:
    """Do all jobs that `foreman` proposes, `concurrent` at a time. A failed job is told and the rest goes on."""
    scratch = tempfile.mkdtemp(prefix="raykd-tune-")
    own = resources.workers == 1
    demand = (
        {"CPU": resources.cpus_per_worker, "GPU": resources.gpus_per_worker} if own else {"CPU": DRIVER_CPUS}
    )
    bridge = _Bridge(foreman)

    def fit(name: str) -> None:
        tune.Tuner(
            tune.with_resources(_job, demand),
            param_space={"store": store_uri, "resources": resources.model_dump()},
            tune_config=tune.TuneConfig(
                search_alg=_Proposals(foreman, bridge),
                num_samples=-1,
                max_concurrent_trials=concurrent,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                name=name, storage_path=scratch, verbose=0, callbacks=[bridge],
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
            fit(f"fleet-{attempt}")
            return
        except RuntimeError as error:
            if not isinstance(error.__cause__, OutOfMemoryError):
                raise
    raise RunError(
        f"memory was short {most + 1} times, and Ray killed workers for it; what is computed is kept. "
        "Lower resources.concurrency or training.batch_tokens, free memory, and go on with --resume"
    )


def _job(config: dict[str, Any]) -> None:
    """A Tune trial: each run of the job in turn. Errors that would come again are reported, not raised."""
    resources = Resources(**config["resources"])
    results = []
    try:
        for plain in config["runs"]:
            results.append(launch(config["store"], Run.from_plain(plain), resources, tune.report))
    except RaykdError as error:
        tune.report({"ended": True, "results": None, "error": str(error)})
    except Exception as error:
        tune.report({"ended": True, "results": None, "error": f"{type(error).__name__}: {error}"})
    else:
        tune.report({"ended": True, "results": results, "error": None})


class _Bridge(tune.Callback):
    """Hands what Tune hears to the foreman."""

    def __init__(self, foreman: Foreman):
        self.foreman = foreman
        self.keys: dict[str, str] = {}
        self.open: dict[str, Job] = {}
        """Jobs that were proposed and have not ended."""

    def on_trial_result(self, iteration: int, trials: list, trial: Any, result: dict, **info: Any) -> None:
        key = self.keys[trial.trial_id]
        if result.get("ended"):
            self._tell(key, result["results"], result["error"])
        elif "run_id" in result:
            self.foreman.epoch(key, {name: result[name] for name in EPOCH_METRICS if name in result})

    def on_trial_error(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        reason = (trial.get_error() if hasattr(trial, "get_error") else None) or "its process died"
        last = [line for line in str(reason).splitlines() if line.strip()][-1].strip()
        self._tell(self.keys[trial.trial_id], None, last)

    def on_trial_complete(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._tell(self.keys[trial.trial_id], None, "it ended without a result")

    def _tell(self, key: str, results: list | None, error: str | None) -> None:
        if self.open.pop(key, None) is not None:
            self.foreman.ended(key, results, error)

    def __getstate__(self) -> dict:
        # Tune writes a copy of every callback into its snapshot; ours has nothing to keep there.
        return {}


class _Proposals(Searcher):
    """Tune asks here for the next job."""

    def __init__(self, foreman: Foreman, bridge: _Bridge):
        super().__init__()
        self._foreman, self._bridge = foreman, bridge
        self._left = list(bridge.open.values())

    def suggest(self, trial_id: str) -> Any:
        job = self._left.pop(0) if self._left else self._foreman.next()
        if job is None:
            return Searcher.FINISHED
        self._bridge.keys[trial_id] = job.key
        self._bridge.open[job.key] = job
        return {"runs": [run.to_plain() for run in job.runs]}

    def on_trial_complete(self, trial_id: str, result: dict | None = None, error: bool = False) -> None:
        return None

    def __getstate__(self) -> dict:
        return {}

    def save(self, checkpoint_path: str) -> None:
        return None

    def restore(self, checkpoint_path: str) -> None:
        return None
