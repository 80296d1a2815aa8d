"""An interrupted run ends with the weights, scores and losses of an undisturbed one, bit by bit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from torch.optim.optimizer import register_optimizer_step_post_hook

from raykd.runs.distil import CHECKPOINT, Worker
from raykd.runs.execute import RESULT, WEIGHTS, execute, training_plan_of
from raykd.runs.prepare import student_run
from raykd.storage import Storage
from tests.runs.interrupted import CHECKPOINT_STEPS, MOMENTS
from tests.runs.loops import distiller, same, weights_of, without_times
from tests.runs.small import prepared, recipe

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A prepared store."""
    return prepared(str(tmp_path_factory.mktemp("resume") / "store"), recipe())


def test_a_run_killed_again_and_again(small, tmp_path):
    run = student_run(recipe(training={"learning_rate_schedule": "cosine"}), small)
    store = tmp_path / "store"
    shutil.copytree(small.storage.uri, store)
    (tmp_path / "run.json").write_text(json.dumps(run.to_plain()))
    command = [sys.executable, "-m", "tests.runs.interrupted", str(store), str(tmp_path / "run.json")]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        *([moment, "SIGKILL"] for moment in MOMENTS),
        ["never", "finished"],
    ], done.stderr
    undisturbed = execute(small.storage.uri, run, worker=Worker(), report=lambda _: None)
    folder, other = (Storage(str(uri)).child(*run.folder) for uri in (store, small.storage.uri))
    assert without_times(folder.read_json(RESULT)) == without_times(undisturbed)
    assert folder.read(WEIGHTS) == other.read(WEIGHTS)
    assert not folder.exists(CHECKPOINT)


class BrokenOffError(Exception):
    pass


def interrupted(loop, *, step: int | None = None, epoch: int | None = None):
    """Train until after that step (counted from here) or report."""
    steps = iter(range(10**6))

    def stepped(*_):
        if next(steps) == step:
            raise BrokenOffError

    def reported(report):
        if report.epoch == epoch:
            raise BrokenOffError

    watching = register_optimizer_step_post_hook(stepped)
    try:
        with pytest.raises(BrokenOffError):
            loop.train(reported)
    finally:
        watching.remove()


@pytest.mark.parametrize(
    "training",
    [
        {"learning_rate_schedule": "plateau", "plateau_patience": 0, "optimiser": "sgd"},
        {"precision": "bf16", "loss_average": "token"},
        {"optimiser": "adamw", "weight_decay": 0.1},
    ],
    ids=lambda training: " ".join(map(str, training.values())),
)
def test_every_kind_of_state_is_restored(small, tmp_path, training):
    run = student_run(recipe(training=training, schedule={"epochs": 4}), small)
    training_plan = training_plan_of(run).__class__(
        **{**vars(training_plan_of(run)), "checkpoint_steps": CHECKPOINT_STEPS}
    )

    def loop(folder: str):
        return distiller(small.storage, run, folder=f"{tmp_path.name}/{folder}", training_plan=training_plan)

    undisturbed = loop("undisturbed")
    history = undisturbed.train(lambda _: None).history
    interrupted(loop("resumed"), step=CHECKPOINT_STEPS + 1)
    interrupted(loop("resumed"), epoch=1)
    resumed = loop("resumed")
    assert without_times(resumed.train(lambda _: None).history) == without_times(history)
    assert same(weights_of(resumed.model), weights_of(undisturbed.model))
    if "plateau_patience" in training:
        assert len({epoch["learning_rate"] for epoch in history}) > 1


def test_the_weights_of_the_best_epoch_are_kept(small, tmp_path):
    run = student_run(recipe(schedule={"epochs": 5}), small)
    loop, seen = distiller(small.storage, run, folder=tmp_path.name), []
    progress = loop.train(lambda report: seen.append((report.dev["mean"], weights_of(loop.model))))
    scores = [score for score, _ in seen]
    best = scores.index(max(scores))
    assert best < 4, "the last epoch is the best one, so this shows nothing"
    assert progress.best_epoch == best
    assert same(weights_of(loop.model), seen[best][1])
