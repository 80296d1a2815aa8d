"""An interrupted run ends with the weights, scores and losses of an undisturbed one, bit by bit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from torch.optim.optimizer import register_optimizer_step_post_hook

from raykd.errors import StoreError
from raykd.storage.layout import CHECKPOINT, RESULT, WEIGHTS
from raykd.storage.store import Storage
from raykd.training.execute import training_plan
from tests.training.interrupted import CHECKPOINT_STEPS
from tests.training.loops import distiller, same, weights_of, without_times
from tests.training.projected import with_projection
from tests.training.small import computed, executed, recipe, student_of

ROOT = Path(__file__).parents[2]
STAGES = (
    {"objective": {"kind": "posterior"}, "select": "loss", "held_out": 0.2, "schedule": {"epochs": 2}},
    {"objective": {"kind": "gold"}, "layers": "unfreeze", "schedule": {"epochs": 2, "patience": 1}},
)
D4_2 = (
    {
        "objective": {"kind": "representation", "layer": 1, "precision": "int8"},
        "text": "unlabelled",
        "select": "loss",
    },
    {"objective": {"kind": "logits"}, "text": "unlabelled", "select": "loss", "layers": "unfreeze"},
    {"objective": {"kind": "gold"}, "select": "loss", "layers": "unfreeze", "head": "new"},
)
# In the middle of the first epoch, between two checkpoints; at its end; after the dev score of the second, before that
# is saved; in the second stage; and when all is trained but the result not written.
MOMENTS = ("step 6", "report 0", "evaluation 0", "report 2", "weights")


@pytest.mark.slow
def test_a_run_killed_again_and_again(small, tmp_path):
    training = {"learning_rate_schedule": "cosine"}
    run = student_of(small, training=training, stages=(STAGES[0], {**STAGES[1], "layers": ("head",)}))
    store = tmp_path / "store"
    shutil.copytree(small.storage.uri, store)
    (tmp_path / "run.json").write_text(json.dumps(run.to_plain()))
    command = [
        sys.executable,
        "-m",
        "tests.training.interrupted",
        str(store),
        str(tmp_path / "run.json"),
        *MOMENTS,
    ]
    process = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    assert [json.loads(line) for line in process.stdout.splitlines()] == [
        *([moment, "SIGKILL"] for moment in MOMENTS),
        ["never", "finished"],
    ], process.stderr
    undisturbed = executed(small, run)
    assert {epoch["stage"] for epoch in undisturbed.epochs} == {0, 1}
    folder, undisturbed_folder = (Storage(str(uri)).child(*run.folder) for uri in (store, small.storage.uri))
    assert without_times(folder.read_json(RESULT)) == without_times(undisturbed.to_plain())
    assert folder.read(WEIGHTS) == undisturbed_folder.read(WEIGHTS)
    assert not folder.exists(CHECKPOINT)


class BrokenOffError(Exception):
    pass


def interrupted(loop, *, step: int | None = None, epoch: int | None = None) -> bool:
    """Train until after the step (counted from here) or report; whether it was reached."""
    steps = iter(range(10**6))

    def stepped(*_):
        if next(steps) == step:
            raise BrokenOffError

    def reported(report):
        if report.epoch == epoch:
            raise BrokenOffError

    watching = register_optimizer_step_post_hook(stepped)
    try:
        loop.train(reported)
    except BrokenOffError:
        return True
    finally:
        watching.remove()
    return False


@pytest.mark.parametrize(
    "training",
    [
        {"learning_rate_schedule": "plateau", "plateau_patience": 0, "optimiser": "sgd", "seed": 1},
        {"precision": "bf16", "loss_average": "token"},
        {"optimiser": "adamw", "weight_decay": 0.1},
    ],
    ids=lambda training: " ".join(map(str, training.values())),
)
def test_every_kind_of_state_is_restored(small, tmp_path, training):
    run = student_of(small, training=training, schedule={"epochs": 3}, objective={"kind": "posterior"})
    plan = replace(training_plan(small.storage.uri, run), checkpoint_steps=CHECKPOINT_STEPS)

    def loop(folder: str):
        return distiller(small.storage, run, folder=f"{tmp_path.name}/{folder}", plan=plan)

    undisturbed = loop("undisturbed")
    history = undisturbed.train(lambda _: None).history
    assert interrupted(loop("resumed"), step=CHECKPOINT_STEPS + 1)
    assert interrupted(loop("resumed"), epoch=1)
    resumed = loop("resumed")
    assert without_times(resumed.train(lambda _: None).history) == without_times(history)
    assert same(weights_of(resumed.model), weights_of(undisturbed.model))
    if "plateau_patience" in training:
        assert len({epoch["learning_rate"] for epoch in history}) > 1


def ended_in_every_step(loop_in, *, steps: int | None) -> list[tuple[int, int]]:
    """Train undisturbed, and again in processes that end after some steps, or at every epoch; both must end alike.

    Returns the stages and steps in which a process ended.
    """
    undisturbed = loop_in("undisturbed")
    history = undisturbed.train(lambda _: None).history
    places = []
    while True:
        resumed = loop_in("resumed")
        # An epoch has steps enough that every process gets past one checkpoint.
        if not interrupted(resumed, step=steps, epoch=len(places) if steps is None else None):
            break
        places.append((resumed.progress.stage, resumed.progress.step))
    assert len(places) >= len(history)
    assert without_times(resumed.progress.history) == without_times(history)
    assert same(weights_of(resumed.model), weights_of(undisturbed.model))
    assert resumed.progress.best_epoch == undisturbed.progress.best_epoch
    return places


INTERRUPTIONS = pytest.mark.parametrize(
    "steps", [3, None], ids=["between checkpoints", "at the end of each epoch"]
)


@pytest.mark.slow
@INTERRUPTIONS
def test_interrupted_in_every_stage_and_unfreezing_step(small, tmp_path, steps):
    # The first stage's objective has parameters of its own.
    first = {"objective": {"kind": "emission"}, "text": "labelled", "schedule": {"epochs": 2}}
    run = student_of(small, stages=(first, *STAGES[1:]))
    plan = training_plan(small.storage.uri, run)
    plan = replace(plan, stages=[with_projection(plan.stages[0]), *plan.stages[1:]], checkpoint_steps=2)

    def loop(folder: str):
        return distiller(small.storage, run, folder=f"{tmp_path.name}/{folder}", plan=plan)

    assert set(ended_in_every_step(loop, steps=steps)) == {(0, 0), (1, 0), (1, 1), (1, 2)}


@pytest.mark.slow
@INTERRUPTIONS
def test_interrupted_in_every_stage_of_d4_2(small, tmp_path, steps):
    """Representation, then logits and gold with unfreezing; the last with a new head, which is drawn once."""
    run_recipe = recipe(stages=D4_2, schedule={"epochs": 1}, student={"projection": "teacher"})
    computed(small, run_recipe)
    run = student_of(small, run_recipe)
    plan = replace(training_plan(small.storage.uri, run), checkpoint_steps=1)

    def loop(folder: str):
        return distiller(small.storage, run, folder=f"{tmp_path.name}/{folder}", plan=plan)

    places = ended_in_every_step(loop, steps=steps and 1)
    # Head, projection, encoder, embeddings.
    assert set(places) == {(0, 0), *((stage, step) for stage in (1, 2) for step in range(4))}


def test_the_weights_of_the_best_epoch_are_kept(small, tmp_path):
    run = student_of(small, schedule={"epochs": 4}, objective={"kind": "posterior"}, training={"seed": 1})
    loop, calls = distiller(small.storage, run, folder=tmp_path.name), []
    progress = loop.train(lambda report: calls.append((report.dev.mean, weights_of(loop.model))))
    scores = [score for score, _ in calls]
    best = scores.index(max(scores))
    assert best < 3, "the last epoch is the best one, so this shows nothing"
    assert progress.best_epoch == best
    assert same(weights_of(loop.model), calls[best][1])


def test_a_damaged_checkpoint_is_refused_by_name(small, tmp_path):
    run = student_of(small, objective={"kind": "gold"})
    loop = distiller(small.storage, run, folder=tmp_path.name)
    assert interrupted(loop, epoch=0)
    written = loop.folder.read(CHECKPOINT)
    for damage in (written[:-1000], written[:5000] + bytes([written[5000] ^ 1]) + written[5001:], b""):
        loop.folder.write(CHECKPOINT, damage)
        with pytest.raises(
            StoreError, match=rf"{tmp_path.name}/{CHECKPOINT}: the checkpoint is damaged.*remove it"
        ):
            distiller(small.storage, run, folder=tmp_path.name).train(lambda _: None)
