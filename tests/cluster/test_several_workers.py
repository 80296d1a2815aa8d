"""One worker, two or four: the same gradients with dropout, weights, losses and predictions, but for rounding."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
import torch
import torch.multiprocessing

from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.training.prepare import prepare
from raykd.training.worker import Worker
from raykd.transfer.windows import WINDOW_BYTES
from tests.cluster.workers import WORLDS, trained, work
from tests.teachers.checkpoints import make_checkpoint
from tests.training.loops import distiller, first_batches
from tests.training.small import prepared, recipe, student_of

pytestmark = pytest.mark.slow

# SGD without clipping: Adam would hide a wrong scale of the gradient.
EXACT = {"optimiser": "sgd", "learning_rate": 0.05, "gradient_clip": 1e9, "dropout": 0.3, "batch_tokens": 250}
CORPUS = {"train": 7, "unlabelled": 3}
SHORT = {"epochs": 2, "anneal_horizon": 2, "anneal_rate": 2.0}
# λ is 0 in the second epoch, so the projection then gets no gradient.
STAGES = (
    {"objective": {"kind": "emission"}, "text": "labelled", "schedule": SHORT},
    {
        "objective": {"kind": "posterior"},
        "text": "all",
        "layers": ("head",),
        "select": "loss",
        "held_out": 0.3,
    },
    {
        "objective": {
            "kind": "mix",
            "parts": (
                {"objective": {"kind": "gold"}, "weight": 2.0, "text": "labelled"},
                {"objective": {"kind": "logits", "head": "own"}, "weight": 0.1, "text": "unlabelled"},
            ),
        },
    },
)
RUNS = {
    "per sentence": (recipe(corpus=CORPUS, training=EXACT), False, WINDOW_BYTES),
    "per token": (
        recipe(corpus=CORPUS, training={**EXACT, "loss_average": "token"}, schedule={"epochs": 1}), False,
        WINDOW_BYTES,
    ),
    "stages and a projection": (
        recipe(corpus=CORPUS, training=EXACT, stages=STAGES, schedule={"epochs": 1}), True,
        WINDOW_BYTES,
    ),
    "a window for each teacher": (
        recipe(corpus=CORPUS, training={**EXACT, "batch_tokens": 249}, schedule={"epochs": 1}), False, 1
    ),
    "characters and words": (
        recipe(
            corpus=CORPUS, training=EXACT, schedule={"epochs": 1},
            student={"character_dim": 5, "character_hidden": 4, "word_dropout": 0.2, "layers": 2},
        ), False, WINDOW_BYTES,
    ),
}  # fmt: skip
TRAINED = {"epochs": 1, "scope": "all", "training": {**EXACT, "learning_rate": 0.2}}
TEACHERS = {
    "spans": {"kind": "biaffine_ner", "embedding_dim": 6, "hidden_dim": 6, **TRAINED},
    # It reads 16 pieces at once: longer sentences come in windows.
    "a checkpoint": {"kind": "hf_token_classifier", "fine_tune": True, **TRAINED},
}
EVERY = (*RUNS, *TEACHERS)


def teacher_run(store: Storage, config: dict, folder: Path) -> Run:
    """The training run of a teacher on the corpus of `RUNS`."""
    if config["kind"] == "hf_token_classifier":
        config = {**config, "path": make_checkpoint(folder / "checkpoint", longest=16)}
    return prepare(recipe(corpus=CORPUS, teachers=config, objective={"kind": "top_1"}), store).teachers[0].run


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Reports of the workers, by number of workers and run; a single worker is the process of the test."""
    folder = tmp_path_factory.mktemp("workers")
    preparation = prepared(str(folder / "store"), *(student_recipe for student_recipe, *_ in RUNS.values()))
    runs = [(student_of(preparation, student_recipe), *options) for student_recipe, *options in RUNS.values()]
    teacher_runs = [teacher_run(preparation.storage, config, folder) for config in TEACHERS.values()]
    runs += [(run, False, WINDOW_BYTES) for run in teacher_runs]
    batches = [len(batch) for batch in first_batches(distiller(preparation.storage, runs[0][0]))]
    assert min(batches) < max(WORLDS) <= max(batches), "no batch leaves a worker without a sentence"
    # The server imports torch once for all workers.
    multiprocessing.set_forkserver_preload(["tests.cluster.workers"])
    torch.multiprocessing.start_processes(
        work,
        args=(str(folder), preparation.storage.uri, [(run.to_plain(), *options) for run, *options in runs]),
        nprocs=max(WORLDS),
        start_method="forkserver",
    )
    reports = {
        (name, 1): [
            trained(preparation.storage, run, Worker(), projected=projected, window_bytes=window_bytes)
        ]
        for name, (run, projected, window_bytes) in zip(EVERY, runs, strict=True)
    }
    for world in WORLDS:
        for n, name in enumerate(EVERY):
            paths = [Path(folder, f"{n}-{world}-{rank}.pt") for rank in range(world)]
            reports[name, world] = [torch.load(path, weights_only=True) for path in paths]
    return reports


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("run", EVERY)
def test_steps_and_losses_do_not_depend_on_the_number_of_workers(reports, run, world):
    (alone,) = reports[run, 1]
    assert min(float(gradient.abs().max()) for gradient in alone["gradients"]) > 1e-4
    for worker in reports[run, world]:
        # Students compute in float64, the teacher's moments in float32: their rounding moves with the padding.
        assert len(worker["gradients"]) == len(alone["gradients"])
        for gradient, expected in zip(worker["gradients"], alone["gradients"], strict=True):
            torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-6)
        for name, weight in alone["weights"].items():
            torch.testing.assert_close(worker["weights"][name], weight, rtol=0, atol=1e-6, msg=name)
        assert worker["losses"] == [pytest.approx(epoch, rel=1e-6) for epoch in alone["losses"]]


def test_lambda_falls_and_each_loss_is_reported(reports):
    sentence, stages = (reports[run, 1][0]["losses"] for run in ("per sentence", "stages and a projection"))
    assert [epoch["λ"] for epoch in sentence] == [1, pytest.approx(2 / 3)]
    assert [set(epoch) - {"λ", "loss", "held out"} for epoch in stages] == [
        {"projected", "gold"}, {"projected", "gold"}, {"posterior", "top_1"}, {"gold", "logits"}
    ]  # fmt: skip
    assert [epoch["λ"] for epoch in stages] == [1, 0, 1, 0]
    assert stages[2]["held out"] > 0


@pytest.mark.parametrize("world", WORLDS)
def test_every_worker_gets_all_predictions_in_order(reports, world):
    (alone,) = reports["per sentence", 1]
    for worker in reports["per sentence", world]:
        assert [path.tolist() for path in worker["paths"]] == [path.tolist() for path in alone["paths"]]
        assert worker["scored"] == alone["scored"]
