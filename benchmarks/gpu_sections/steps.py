"""Sections on training steps: how often a step waits for the device, and if a resumed run gives equal weights."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpu_sections.runner import Place
from gpu_sections.tables import print_head, print_row
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.training.execute import training_plan
from raykd.training.prepare import Preparation, prepare
from raykd.training.training_loop import Distiller
from raykd.training.worker import Worker
from tests.fake_gpu import GPU, gpu
from tests.fake_gpu import place as executing_line
from tests.teachers.checkpoints import make_checkpoint
from tests.training.loops import distiller, same, weights_of
from tests.training.small import prepared, recipe, student_of
from tests.training.waits import OBJECTIVES, SHORT, waits_of_steps

Waits = Counter[tuple[str, str]]
FINE_TUNED = "a fine-tuned checkpoint"


def count_waits(place: Place) -> None:
    """Print how often a training step waits, with the lines of code.

    PyTorch counts the waits on a GPU; in the small form the fake GPU of the tests counts them.
    """
    objectives = list(OBJECTIVES.items())[-3:] if place.small else OBJECTIVES.items()
    store = prepared(
        f"{place.folder}/store", *(recipe(objective=objective, schedule=SHORT) for _, objective in objectives)
    )
    counted_by = "a GPU that is not there" if place.small else "`torch.cuda.set_sync_debug_mode`"
    print(f"Waits of a step but the first one, which sends what stays; counted by {counted_by}.\n")
    print_head("a step of", "waits", "of the first step", "where (how often in a step)")
    for name, objective in objectives:
        _print_waits(store, student_of(store, objective=objective, schedule=SHORT), name, small=place.small)
    ready = fine_tuning(place.folder)
    _print_waits(ready, ready.teachers[0].run, FINE_TUNED, small=place.small)


def _print_waits(ready: Preparation, run: Run, name: str, *, small: bool) -> None:
    with gpu() if small else _sync_warnings() as waits:
        loop = distiller(ready.storage, run, folder=f"waits of {name}", worker=Worker(device=GPU))
        first, *later_steps = waits_of_steps(loop, waits)
    total: Waits = sum(later_steps, Counter())
    places = ", ".join(f"{file} ({count / len(later_steps):.2g})" for (file, _), count in total.most_common())
    print_row(name, f"{total.total() / len(later_steps):.2g}", first.total(), places or "–")


@contextmanager
def _sync_warnings() -> Iterator[Waits]:
    """Yield the counts of waits on a real GPU, as `tests.fake_gpu.gpu` does, from the warnings of PyTorch."""
    waits: Waits = Counter()

    def note(message: Any, *_: Any, **__: Any) -> None:
        if "called a synchronizing" in str(message):
            waits[executing_line(), "the device is waited for"] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield waits
        finally:
            torch.cuda.set_sync_debug_mode("default")


def fine_tuning(folder: str) -> Preparation:
    """Prepare the fine-tuning of a tiny Transformers checkpoint for one epoch."""
    path = make_checkpoint(Path(folder, "checkpoint"), longest=64)
    training = {"batch_tokens": 400, "learning_rate": 1e-3}
    teacher = {"kind": "hf_token_classifier", "path": path, "fine_tune": True, "scope": "all", "epochs": 1}
    return prepare(recipe(teachers={**teacher, "training": training}), Storage(f"{folder}/fine-tuning"))


class _InterruptedError(Exception):
    """The training loop was interrupted."""


def compare_resumed(place: Place) -> None:
    """Print the difference in weights between runs with and without an interruption within an epoch."""
    objective = {"kind": "structural"}
    students = prepared(f"{place.folder}/store", recipe(objective=objective))
    ready = fine_tuning(place.folder)
    runs = {
        "a student": (students, student_of(students, objective=objective)),
        FINE_TUNED: (ready, ready.teachers[0].run),
    }
    print("Weights of two runs without an interruption, and of one with: the largest difference.\n")
    print_head("", "twice the same run", "one resumed")
    device = torch.device(place.device)
    for name, (preparation, run) in runs.items():
        first, second, resumed = (
            _trained(preparation, run, f"{name} {kind}", device, interrupted=kind == "resumed")
            for kind in ("first", "second", "resumed")
        )
        print_row(name, _apart(first, second), _apart(first, resumed))


def _trained(
    ready: Preparation, run: Run, folder: str, device: torch.device, *, interrupted: bool
) -> dict[str, Tensor]:
    """Return the weights after training.

    Args:
        ready: Corpus, teacher and transfer set of the run.
        run: The run to train.
        folder: Folder of checkpoints.
        device: Device of the model.
        interrupted: Stop at the last step of the last epoch, and resume in a new loop.
    """
    plan = replace(training_plan(ready.storage.uri, run), checkpoint_steps=1)

    def loop() -> Distiller:
        training_loop = distiller(ready.storage, run, folder=folder, plan=plan, worker=Worker(device=device))
        training_loop.model.to(device)
        return training_loop

    if interrupted:
        first = loop()
        step, last = first._train_batch, first.plan.stages[0].schedule.epochs - 1

        def interrupt(epoch: int, number: int, rows: Any) -> dict[str, Tensor]:
            if (epoch, number) == (last, len(first._batches(epoch)) - 1):
                raise _InterruptedError
            return step(epoch, number, rows)

        first._train_batch = interrupt
        try:
            first.train(lambda _: None)
        except _InterruptedError:
            pass
        else:
            raise RuntimeError("the run ended without its interruption")
    trained = loop()
    trained.train(lambda _: None)
    return {name: weight.cpu() for name, weight in weights_of(trained.model).items()}


def _apart(first: dict[str, Tensor], second: dict[str, Tensor]) -> str:
    if same(first, second):
        return "equal bit by bit"
    return f"{max(float((first[name] - second[name]).abs().max()) for name in first):.0e}"
