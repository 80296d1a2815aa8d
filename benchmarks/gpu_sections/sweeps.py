"""Sections on whole commands: two sweeps up to their fronts, and a run under Ray Train."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import torch
from sweep_overhead import PHASES, SLOTS, TINY, Took, command, sweep_file

from gpu_sections.checkpoint import make_checkpoint
from gpu_sections.runner import Place
from gpu_sections.tables import print_head, print_row
from raykd.figures.results import RunResult
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.training.execute import execute_run
from raykd.training.model_folder import MODEL, RESULT
from raykd.training.worker import Worker

SWEEP_S = 77.0
"""Time limit of one sweep, in seconds."""
SHOWN = ("dev_f1", "test_f1", "parameters", "latency_ms")
"""Columns of front.csv."""
ROLES = {
    "gpus_per_worker": 0.25,
    "teachers": {"gpus_per_worker": 1},
    "precompute": {"workers": 1, "gpus_per_worker": 0.5},
}
"""Share of the GPU by role."""
SMALL_SIZES = {"train": 24, "dev": 8, "test": 8, "unlabelled": 8}


def run_sweeps(place: Place) -> None:
    """Print the seconds of two sweeps of two trials, and their fronts.

    The teachers are BiLSTM-CRFs in the first sweep, and an encoder of e5's shape in the second.

    Raises:
        RuntimeError: A sweep failed.
    """
    recipe = _recipe(place)
    fine_tuned = {
        "kind": "hf_token_classifier",
        "path": make_checkpoint(Path(place.folder, "checkpoint"), recipe["corpus"], small=place.small),
        "fine_tune": True,
        "vocabulary": "pruned",
        "epochs": 1,
        "training": {"precision": "float32" if place.small else "bf16", "batch_tokens": 1000},
    }
    teachers = {
        "BiLSTM-CRF": {**recipe["teachers"], "scope": "language"},
        "an encoder": fine_tuned,
    }
    failed = []
    for name, teacher in teachers.items():
        print(f"### Two trials, teachers: {name}\n")
        folder = Path(place.folder, name.replace(" ", "-"))
        folder.mkdir()
        path = sweep_file(
            folder, recipe | {"teachers": teacher}, trials=2, workers=1, resources=_resources(place)
        )
        try:
            took, phases = _command(place, folder, "sweep", str(path))
        except SystemExit as failure:
            print(f"**Failed**; the end of what it printed:\n\n```\n{str(failure)[-1500:]}\n```\n")
            failed.append(name)
            continue
        _print_times(took, phases)
        _print_front(folder / "store/sweeps/overhead/front.csv")
    if failed:
        raise RuntimeError(f"sweeps that failed: {', '.join(failed)}")


def _recipe(place: Place) -> dict[str, Any]:
    small = {"corpus": {**TINY["corpus"], **SMALL_SIZES}, "schedule": {"epochs": 1}} if place.small else {}
    return {**TINY, **small, "teachers_must_learn": False}


def _resources(place: Place) -> dict[str, Any]:
    return {"concurrency": 1, **(ROLES if place.device == "cuda" else {"precompute": {"workers": 1}})}


def _command(place: Place, folder: Path, *words: str) -> tuple[Took, dict[str, Took]]:
    return (
        command(folder, *words, cpus=SLOTS)
        if place.small
        else command(folder, *words, cpus=None, limit_s=SWEEP_S)
    )


def _print_times(took: Took, phases: dict[str, Took]) -> None:
    print_head("phase", "seconds", "of the processors")
    for name in PHASES:
        if name in phases:
            print_row(name, f"{phases[name].seconds:.1f}", f"{phases[name].processor:.1f}")
    print_row("all, Ray's start included", f"{took.seconds:.1f}", f"{took.processor:.1f}")


def _print_front(file: Path) -> None:
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    print("\nIts front:\n")
    print_head("student", *SHOWN)
    for row in rows:
        if row["on_front"] == "true":
            print_row(row["name"] or row["number"], *(f"{float(row[name]):.4g}" for name in SHOWN))
    print()


def run_ray_train(place: Place) -> None:
    """Print the losses of a run with one worker under Ray Train and of the same run without Ray."""
    folder = Path(place.folder)
    gpus = 1.0 if place.device == "cuda" else 0.0
    recipe = _recipe(place) | {"teachers": {"kind": "none"}, "objective": {"kind": "gold"}}
    resources = {"ray_train": True, "gpus_per_worker": gpus, "concurrency": 1}
    path = sweep_file(folder, recipe, trials=1, workers=1, resources=resources)
    took, _ = _command(place, folder, "distill", str(path))
    backend = "NCCL" if gpus else "gloo"
    print(f"`raykd distill` with `ray_train: true`, one worker, {backend}: {took.seconds:.1f} s.\n")
    (finished,) = (folder / "store/runs").iterdir()
    under_train = Storage(str(finished)).read_json(RESULT, RunResult.from_plain)
    run = Run.from_plain(Storage(str(finished)).read_json(MODEL))
    # The second run needs a store that has everything but the result of the first.
    shutil.copytree(folder / "store", folder / "alone", ignore=shutil.ignore_patterns("runs", "sweeps"))
    worker = Worker(device=torch.device(place.device))
    alone = execute_run(str(folder / "alone"), run, worker=worker, report=lambda _: None)
    print_head("epoch", "loss under Ray Train", "loss without Ray")
    for ray_epoch, plain_epoch in zip(under_train.epochs, alone.epochs, strict=True):
        print_row(ray_epoch["epoch"] + 1, f"{ray_epoch['loss']:.6f}", f"{plain_epoch['loss']:.6f}")
    equal = under_train.weights_sha256 == alone.weights_sha256
    print(f"\nWeights: {'equal bit by bit' if equal else 'not equal bit by bit'}.")
