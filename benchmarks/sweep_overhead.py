"""Overhead of a sweep beside training: seconds by phase and trial, and a comparison with a plain Ray Tune sweep.

    python benchmarks/sweep_overhead.py                       ten trials, one worker each, two at a time (a minute)
    python benchmarks/sweep_overhead.py --workers 2           the same under Ray Train, one at a time
    python benchmarks/sweep_overhead.py --against CHECKPOINT CORPUS [--sentences 2000] [--trials 10]

Overhead of a trial: (seconds of the phase × runs at a time − seconds of training) / trials. It includes the start of
the first trials. Training is the median run times the number of runs, as all settings are of one shape. The
first run of a process also imports what training needs; the median leaves this out, so it counts as a start.

--against: the teacher is CHECKPOINT (multilingual-e5-small, say) with a head, trained for one step. A student learns
its logits and hidden states on CORPUS, a folder of CoNLL files ({lang}/train.conllu). raykd runs the teacher once. The
plain sweep runs it in each trial, before the student is trained, by the same code, and keeps nothing.

Both start with a trained teacher, the corpus as read, and the same settings. A plain sweep starts an actor for each
trial; `reused` keeps its actors as raykd does. Seconds are those of the whole commands with the start of Ray.
raykd also measures the costs of teacher and students, once for a shape; `costs known` leaves this out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

SLOTS = 2
PHASES = ("teachers", "precompute", "latency", "trials", "baseline")
TINY: dict[str, Any] = {
    "task": "ner",
    "corpus": {
        "source": "builtin", "languages": ["en", "de"], "train": 200, "dev": 50, "test": 50, "unlabelled": 100
    },
    "teachers": {"kind": "bilstm_crf", "embedding_dim": 16, "hidden_dim": 16, "epochs": 2},
    "student": {"kind": "bilstm", "embedding_dim": 16, "hidden_dim": 16},
    "objective": {"kind": "structural"},
    "schedule": {"epochs": 5},
}  # fmt: skip


def distilled(checkpoint: str, corpus: str, sentences: int) -> dict[str, Any]:
    """Return the recipe of the comparison."""
    from teacher_once import (
        english,  # imports PyTorch, which the process that only starts others does not need
    )

    parts = ({"objective": {"kind": "logits"}}, {"objective": {"kind": "representation", "layer": 6}})
    return {
        "task": "ner",
        "corpus": english(corpus, sentences),
        "teachers": {
            "kind": "hf_token_classifier", "path": checkpoint, "fine_tune": True, "vocabulary": "pruned",
            "max_steps": 1,
        },
        "student": {
            "kind": "bilstm", "embedding_dim": 50, "hidden_dim": 100, "decoder": "maxent",
            "projection": "teacher", "vocabulary": {"kind": "teacher", "pruned": True},
        },
        "stages": ({"text": "unlabelled", "objective": {"kind": "mix", "parts": parts}},),
        "schedule": {"epochs": 3},
        "training": {"batch_tokens": 2000},
    }  # fmt: skip


def sweep_file(
    folder: Path,
    recipe: dict[str, Any],
    *,
    trials: int,
    workers: int,
    resources: dict[str, Any] | None = None,
) -> Path:
    """Write the sweep file of a random search over learning rates, as JSON, which is YAML too.

    Args:
        folder: Folder of the file, the store and the tracking database.
        recipe: All keys of a recipe.
        trials: Number of trials.
        workers: Workers of a run.
        resources: Keys that replace those of the section `resources`.

    Returns:
        The path of the file.
    """
    at_once = SLOTS if workers == 1 else 1
    tree = {
        "name": "overhead",
        **recipe,
        "training": {**recipe.get("training", {}), "learning_rate": {"float": [0.001, 0.01]}},
        "search": {"trials": trials, "sampler": "random"},
        "baseline": "gold" if "objective" in recipe else "none",
        "resources": {
            "workers": workers, "concurrency": at_once, "cpus_per_worker": 1 if workers == 1 else 0.9,
            **(resources or {}),
        },
        "store": str(folder / "store"),
        "tracking": {"uri": f"sqlite:///{folder}/mlflow.db"},
    }  # fmt: skip
    path = folder / "sweep.yaml"
    path.write_text(json.dumps(tree))
    return path


class ProcessorTime(threading.Thread):
    """Processor seconds of a process with all descendants, sampled five times a second.

    Time after the last sample of a process is not counted.
    """

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self._root, self._used = psutil.Process(pid), dict[tuple[int, float], float]()

    @property
    def seconds(self) -> float:
        return sum(list(self._used.values()))  # a copy, since the thread adds processes meanwhile

    def run(self) -> None:
        with suppress(psutil.Error):
            while self._root.is_running():
                for process in [self._root, *self._root.children(recursive=True)]:
                    with suppress(psutil.Error):
                        self._used[process.pid, process.create_time()] = sum(process.cpu_times()[:2])
                time.sleep(0.2)


class Took(NamedTuple):
    """Wall seconds, and processor seconds of all processes."""

    seconds: float
    processor: float

    def __str__(self) -> str:
        return f"{self.seconds:7.1f} s, {self.processor:6.1f} s of the processors"


def command(
    folder: Path, *words: str, cpus: int | None = SLOTS, limit_s: float | None = None
) -> tuple[Took, dict[str, Took]]:
    """Run `raykd …` and return the seconds, in all and by phase.

    Args:
        folder: Working folder of the command.
        words: Arguments of the command.
        cpus: CPUs of Ray; None for those of the machine.
        limit_s: Seconds after which the command is killed.

    Raises:
        SystemExit: The command failed; the message is its output.
    """
    program = [sys.executable, "-c", "from raykd.cli.main import main; main()", *words]
    started, begun, ended, lines = time.monotonic(), dict[str, Took](), dict[str, Took](), []
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(program, cwd=folder, env=environment(cpus), **streams) as process:
        used = ProcessorTime(process.pid)
        used.start()
        killer = threading.Timer(limit_s or threading.TIMEOUT_MAX, process.kill)
        killer.daemon = True
        killer.start()
        for line in process.stdout or ():
            lines.append(line)
            now = Took(time.monotonic() - started, used.seconds)
            begun.setdefault(line.partition(":")[0], now)
            ended[line.partition(":")[0]] = now
    killer.cancel()
    if process.returncode:
        raise SystemExit("".join(lines) + (f"killed after {limit_s} s" if process.returncode < 0 else ""))
    return Took(time.monotonic() - started, used.seconds), {
        phase: Took(*(end - begin for begin, end in zip(begun[phase], ended[phase], strict=True)))
        for phase in PHASES
        if phase in begun
    }


def environment(cpus: int | None = SLOTS) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1"} | ({} if cpus is None else {"RAYKD_CPUS": str(cpus)})


def runs_of(store: Path, role: str) -> list[list[str]]:
    """Return the ids of the runs, a list for every trial."""
    from raykd.storage.store import Storage
    from raykd.sweep.records import SweepRecords

    records = SweepRecords(Storage(str(store)), "overhead").load()
    return [list(record.trial.run_ids) for record in records if record.trial.role == role]


def plain_run(store: Path, run_id: str, file: str) -> dict[str, Any]:
    from raykd.storage.store import Storage

    return Storage(str(store)).child("runs", run_id).read_json(file)


def overhead(workers: int, trials: int) -> None:
    """Print the seconds by phase, and the overhead of a trial."""
    with tempfile.TemporaryDirectory(prefix="raykd-overhead-") as name:
        folder = Path(name)
        path = sweep_file(folder, TINY, trials=trials, workers=workers)
        total, phases = command(folder, "sweep", str(path))
        for phase, took in {**phases, "all": total}.items():
            print(f"{phase:12s} {took}")
        at_once = SLOTS if workers == 1 else 1
        for phase, role in (("trials", "search"), ("baseline", "baseline")):
            runs = [run_id for trial_runs in runs_of(folder / "store", role) for run_id in trial_runs]
            training = statistics.median(
                plain_run(folder / "store", run_id, "result.json")["wall_s"] for run_id in runs
            )
            seconds = max(0.0, phases[phase].seconds * at_once - training * len(runs)) / len(runs)
            print(f"{phase}: {len(runs)} runs of {training:.2f} s, and {seconds:.2f} s overhead for each")


def against(checkpoint: str, corpus: str, sentences: int, trials: int) -> None:
    """Print the trials an hour of raykd and of plain sweeps."""
    with tempfile.TemporaryDirectory(prefix="raykd-overhead-") as name:
        folder = Path(name)
        recipe = distilled(checkpoint, corpus, sentences)
        path = sweep_file(folder, recipe, trials=trials, workers=1)
        command(folder, "precompute", str(path))
        shutil.rmtree(folder / "store/transfer")
        total, phases = command(folder, "sweep", str(path))
        print(", ".join(f"{phase} {phase_time.seconds:.1f} s" for phase, phase_time in phases.items()))
        runs = [
            plain_run(folder / "store", run_id, "model.json")
            for trial_runs in runs_of(folder / "store", "search")
            for run_id in trial_runs
        ]
        (folder / "plain.json").write_text(
            json.dumps({"store": str(folder / "store"), "recipe": recipe, "runs": runs})
        )
        took = {"raykd": total.seconds, "raykd, costs known": total.seconds - phases["latency"].seconds}
        for contestant, words in (("plain", ()), ("plain, reused", ("--reused",))):
            program = [sys.executable, __file__, "--plain", str(folder / "plain.json"), *words]
            started = time.monotonic()
            subprocess.run(program, check=True, env=environment(), stdout=subprocess.DEVNULL)
            took[contestant] = time.monotonic() - started
        for contestant, seconds in took.items():
            ratios = " and ".join(
                f"{seconds / took[baseline]:.1f}" for baseline in ("raykd", "raykd, costs known")
            )
            print(f"{contestant:18s} {seconds:7.1f} s, {3600 * trials / seconds:6.0f} trials/h", end="")
            print("" if "raykd" in contestant else f"; raykd does {ratios} times as many")


def plain_sweep(path: Path, *, reused: bool) -> None:
    """Run a plain Ray Tune sweep: every trial loads the teacher, runs it, and trains a student."""
    import ray
    from ray import tune

    settings = json.loads(path.read_text())
    ray.init(num_cpus=SLOTS, include_dashboard=False, log_to_driver=False, logging_level="error")
    results = tune.Tuner(
        tune.with_resources(plain_trial, {"cpu": 1}),
        param_space={**settings, "runs": None, "run": tune.grid_search(settings["runs"])},
        tune_config=tune.TuneConfig(reuse_actors=reused),
        run_config=tune.RunConfig(storage_path=tempfile.mkdtemp(prefix="raykd-plain-"), verbose=0),
    ).fit()
    if results.errors:
        raise SystemExit(str(results.errors[0]))


def plain_trial(config: dict[str, Any]) -> None:
    """Run the teacher and train a student: corpus and teacher from the store, everything else in a new folder."""
    import torch
    from ray import tune

    from raykd.precompute.plan import precompute
    from raykd.precompute.shard_writer import ShardWriter
    from raykd.precompute.transfer import transfer_plan
    from raykd.recipes.recipe import Recipe
    from raykd.recipes.run import Run
    from raykd.recipes.signal_needs import stored_needs
    from raykd.storage.store import Storage
    from raykd.training.execute import execute_run
    from raykd.training.prepare import prepare
    from raykd.training.worker import Worker

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="raykd-plain-") as folder:
        for part in Path(config["store"]).iterdir():
            if part.name not in ("transfer", "runs", "sweeps"):
                (Path(folder) / part.name).symlink_to(part)
        recipe = Recipe.model_validate_json(json.dumps(config["recipe"]))
        ready = prepare(recipe, Storage(folder))
        needs = stored_needs([recipe], unlabelled=ready.unlabelled)
        plan = transfer_plan(ready.storage, [(ready.teachers[0], needs)])
        assert plan is not None

        def here(plan: Any, rows: Iterable[Any], placement: Any) -> Iterator[Any]:
            writer = ShardWriter(plan.store, plan.shard_jobs(), plan.token_budget)
            yield from map(writer, rows)

        precompute(plan, launch=here)
        run = Run.from_plain(config["run"])
        result = execute_run(folder, run, worker=Worker(), report=lambda epoch: tune.report(epoch.metrics()))
        tune.report({"dev": result.scores.mean("dev")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--against", nargs=2, metavar=("CHECKPOINT", "CORPUS"))
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--plain", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--reused", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plain:
        plain_sweep(arguments.plain, reused=arguments.reused)
    elif arguments.against:
        against(*arguments.against, arguments.sentences, arguments.trials)
    else:
        overhead(arguments.workers, arguments.trials)


if __name__ == "__main__":
    main()
