"""One worker, two or four: the same gradients, weights, losses and predictions, up to the order of a sum."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.multiprocessing

from raykd.runs.distil import Worker
from raykd.runs.prepare import student_run
from tests.runs.loops import distiller
from tests.runs.small import prepared, recipe
from tests.runs.workers import WORLDS, trained, work

# SGD without clipping: Adam would hide a wrong scale of the gradient.
EXACT = {"optimiser": "sgd", "learning_rate": 0.05, "gradient_clip": 1e9, "dropout": 0.0, "batch_tokens": 150}


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What the workers of every world saw of a run per sentence and one per token; world 1 is this process."""
    folder = tmp_path_factory.mktemp("workers")
    few = {"train": 8, "unlabelled": 4}
    recipes = [recipe(corpus=few, training={**EXACT, "per": per}) for per in ("sentence", "token")]
    preparation = prepared(str(folder / "store"), *recipes)
    runs = [student_run(each, preparation) for each in recipes]
    batches = [len(batch) for batch in distiller(preparation.storage, runs[0])._plan(0)]
    assert min(batches) < max(WORLDS) <= max(batches), "no batch leaves a worker without a sentence"
    assert runs[0].unlabelled
    torch.multiprocessing.spawn(
        work,
        args=(str(folder), preparation.storage.uri, [run.to_plain() for run in runs]),
        nprocs=max(WORLDS),
    )
    found = {(n, 1): [trained(preparation.storage, run, Worker())] for n, run in enumerate(runs)}
    for world in WORLDS:
        for n in range(len(runs)):
            paths = [Path(folder, f"{n}-{world}-{rank}.pt") for rank in range(world)]
            found[n, world] = [torch.load(path, weights_only=True) for path in paths]
    return found


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("run", [0, 1], ids=["per sentence", "per token"])
def test_steps_and_losses_do_not_depend_on_the_number_of_workers(seen, run, world):
    (alone,) = seen[run, 1]
    assert alone["gradients"].abs().amax(1).min() > 1e-4
    for worker in seen[run, world]:
        # Students compute in float64, the teacher's moments in float32: their rounding moves with the padding.
        torch.testing.assert_close(worker["gradients"], alone["gradients"], rtol=0, atol=1e-6)
        for name, weight in alone["weights"].items():
            torch.testing.assert_close(worker["weights"][name], weight, rtol=0, atol=1e-6, msg=name)
        assert [kd_weight for kd_weight, *_ in worker["losses"]] == [1, pytest.approx(2 / 3)]
        assert worker["losses"] == [pytest.approx(epoch, rel=1e-6) for epoch in alone["losses"]]


@pytest.mark.parametrize("world", WORLDS)
def test_every_worker_gets_all_predictions_in_order(seen, world):
    (alone,) = seen[0, 1]
    for worker in seen[0, world]:
        assert [path.tolist() for path in worker["paths"]] == [path.tolist() for path in alone["paths"]]
        assert worker["scored"] == alone["scored"]
