"""The waits of a training step for a GPU: once, to read what must be known of its loss. The GPU is a fake."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from raykd.errors import RunError
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.structures import Chain, log_partition
from raykd.training.checkpoint import Progress, read_checkpoint, write_checkpoint
from raykd.training.prepare import prepare
from raykd.training.training_loop import Distiller
from raykd.training.worker import Worker
from tests.fake_gpu import GPU, OnGPU, gpu
from tests.teachers.checkpoints import make_checkpoint
from tests.training import test_masked_lm, test_parsers, test_semantic_parsing, test_span_teachers
from tests.training.loops import distiller, same, weights_of
from tests.training.small import prepared, recipe, student_of
from tests.training.waits import OBJECTIVES, SHORT, waits_of_steps
from tests.treebank import write_treebank

AT_MOST = 1


def trained(loop: Distiller) -> list[Counter[tuple[str, str]]]:
    """The waits by step of the loop, as it trains on the GPU that is not there."""
    with gpu() as waits:
        return waits_of_steps(loop, waits)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    recipes = [recipe(objective=objective, schedule=SHORT) for objective in OBJECTIVES.values()]
    return prepared(str(tmp_path_factory.mktemp("waits")), *recipes)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_step_of_a_student_waits_once(store, name):
    run = student_of(store, objective=OBJECTIVES[name], schedule=SHORT)
    gpu_loop = distiller(store.storage, run, folder=f"{name} there", worker=Worker(device=GPU))
    steps = trained(gpu_loop)
    assert len(steps) > 3
    # The first step sends what stays there.
    for waits in steps[1:]:
        assert waits.total() <= AT_MOST, waits
    cpu_loop = distiller(store.storage, run, folder=f"{name} here")
    cpu_loop.train(lambda _: None)
    gpu_epoch, expected = gpu_loop.progress.history[0], cpu_loop.progress.history[0]
    assert gpu_epoch["loss"] == pytest.approx(expected["loss"], rel=1e-5), (
        "it learns what it learns on the CPU"
    )


CHARACTERS = {"character_dim": 4, "character_hidden": 4}
CHAINS = {
    "characters": {"student": {"vocabulary": {"kind": "word"}, **CHARACTERS}},
    "transformer": {"student": {"kind": "transformer", "embedding_dim": 8, "layers": 1, "heads": 2}},
    "maxent": {"student": {"decoder": "maxent"}},
    "spans": {"teachers": {**test_span_teachers.TEACHER, "epochs": 1}, "student": test_span_teachers.STUDENT},
}


def waits_once(storage: Storage, *runs: Run):
    for number, run in enumerate(runs):
        cpu_loop = distiller(storage, run, folder=f"{number} here")
        cpu_loop.train(lambda _: None)
        gpu_loop = distiller(storage, run, folder=f"{number} there", worker=Worker(device=GPU))
        for waits in trained(gpu_loop)[1:]:
            assert waits.total() <= AT_MOST, waits
        gpu_epoch, expected = gpu_loop.progress.history[0], cpu_loop.progress.history[0]
        assert gpu_epoch["loss"] == pytest.approx(expected["loss"], rel=1e-4)


@pytest.mark.parametrize("name", CHAINS)
def test_a_step_of_other_students_and_of_their_teachers_waits_once(tmp_path, name):
    ready = prepared(str(tmp_path), recipe(schedule=SHORT, **CHAINS[name]))
    waits_once(ready.storage, ready.teachers[0].run, student_of(ready, schedule=SHORT, **CHAINS[name]))


@pytest.mark.parametrize("kind", test_parsers.TEACHERS)
def test_a_step_of_parsers_waits_once(tmp_path, kind):
    run_recipe = test_parsers.parsing(write_treebank(tmp_path / "bank"), kind, schedule=SHORT)
    ready = prepared(str(tmp_path / "store"), run_recipe)
    waits_once(ready.storage, ready.teachers[0].run, student_of(ready, run_recipe))


def test_a_step_of_a_fine_tuned_checkpoint_waits_once_beside_what_transformers_reads(tmp_path):
    """Transformers itself checks the mask, to leave its mask out."""
    checkpoint = make_checkpoint(tmp_path / "checkpoint", longest=64)
    teacher = {"kind": "hf_token_classifier", "path": checkpoint, "fine_tune": True, "scope": "all"}
    run_recipe = recipe(
        teachers={**teacher, "epochs": 1, "training": {"batch_tokens": 400, "learning_rate": 1e-3}}
    )
    preparation = prepare(run_recipe, Storage(str(tmp_path / "store")))
    (planned,) = preparation.teachers
    loop = distiller(preparation.storage, planned.run, worker=Worker(device=GPU))
    steps = trained(loop)
    assert len(steps) > 1
    for waits in steps[1:]:
        model_waits = own_waits(waits)
        assert model_waits.total() <= AT_MOST, model_waits


def own_waits(waits: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Waits without the ones of Transformers, which are seen where it draws its dropout."""
    return Counter(
        {place: count for place, count in waits.items() if not place[0].startswith("layers/dropout.py")}
    )


@pytest.mark.parametrize(
    "module", [test_masked_lm, test_semantic_parsing], ids=["masked_lm", "semantic_parsing"]
)
def test_a_step_of_language_models_and_generators_waits_once_beside_what_transformers_reads(tmp_path, module):
    ask = {test_masked_lm: test_masked_lm.pretraining, test_semantic_parsing: test_semantic_parsing.parsing}[
        module
    ]
    run_recipe = ask(module.write_files(tmp_path), schedule={"epochs": 1})
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    steps = trained(distiller(ready.storage, student_of(ready, run_recipe), worker=Worker(device=GPU)))
    assert len(steps) > 3
    for waits in steps[1:]:
        model_waits = own_waits(waits)
        assert model_waits.total() <= AT_MOST, model_waits


def test_what_float32_loses_is_computed_again_and_the_step_goes_on(store, monkeypatch):
    """If a sentence underflows, the step is computed once more, looking at each sentence."""
    run = student_of(store, objective=OBJECTIVES["structural"], schedule=SHORT)

    def lossy(loop: Distiller) -> list[float]:
        with torch.no_grad():
            for name, parameter in loop.model.named_parameters():
                if "transitions" in name:
                    parameter[0, :] = -200.0
                    parameter[:, 1] = -200.0
        losses = list[float]()
        step = loop._train_batch
        loop._train_batch = lambda *arguments: (
            losses.append(float((sums := step(*arguments))["total"])) or sums
        )
        loop.train(lambda _: None)
        return losses

    cpu_loop = lossy(distiller(store.storage, run, folder="lossy here"))
    with gpu():
        loop = distiller(store.storage, run, folder="lossy there", worker=Worker(device=GPU))
        loop.model.to(GPU)
        gpu_loop = lossy(loop)
    assert gpu_loop == pytest.approx(cpu_loop, rel=1e-4)


def test_a_checkpoint_waits_once(store, tmp_path):
    run = student_of(store, objective=OBJECTIVES["gold"], schedule=SHORT)
    model = distiller(store.storage, run, folder="saved").model
    folder, expected = Storage(str(tmp_path)), weights_of(model)
    with gpu() as waits:
        model.to(GPU)
        optimiser = torch.optim.Adam(model.parameters())
        before = waits.total()
        write_checkpoint(
            folder, Progress(best_weights=model.state_dict()), {"model": model, "optimiser": optimiser}
        )
        assert waits.total() == before + 1
    progress, states = read_checkpoint(folder, torch.device("cpu"))
    assert same(states["model"], expected)
    assert same(progress.best_weights, expected)


def test_a_gradient_that_is_not_finite_is_named_with_its_batch(store):
    run = student_of(store, objective=OBJECTIVES["gold"], schedule=SHORT)
    loop = distiller(store.storage, run, folder="broken")
    step = loop._train_batch

    def broken(epoch, number, rows):
        if number == 2:
            for parameter in loop.model.parameters():
                parameter.register_hook(lambda gradient: gradient * float("nan"))
        return step(epoch, number, rows)

    loop._train_batch = broken
    with pytest.raises(RunError, match="epoch 0, batch 2: the gradient is not finite"):
        loop.train(lambda _: None)


def test_the_fake_counts_what_waits():
    with gpu() as waits:
        on_gpu = torch.ones(2, 3, device="cuda")
        assert isinstance(on_gpu, OnGPU)
        assert waits.total() == 0
        for wait in (
            lambda: float(on_gpu.sum()), on_gpu.tolist, lambda: on_gpu[on_gpu > 0], lambda: on_gpu[:, [0, 2]],
            on_gpu.cpu, lambda: torch.ones(2).to("cuda"), lambda: torch.tensor([1, 2], device="cuda"),
            on_gpu.nonzero,
        ):  # fmt: skip
            before = waits.total()
            wait()
            assert waits.total() == before + 1
        before = waits.total()
        torch.ones(2).pin_memory().to("cuda", non_blocking=True)
        weight = torch.nn.Linear(3, 2).to("cuda").weight  # two parameters
        (weight * on_gpu.sum(0)).sum().backward()
        assert waits.total() == before + 2
        assert log_partition(Chain(on_gpu[None], on_gpu.new_ones(1, dtype=torch.long) * 2)).shape == (1,)
