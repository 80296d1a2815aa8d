"""Labelling on a GPU, all of it one CUDA graph, and what it costs. The GPU is a fake."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from raykd.cluster.topology import Topology
from raykd.corpora.encoded_text import TokenBatch
from raykd.errors import PlacementError
from raykd.layers.model import Model
from raykd.precompute import gpu_cost
from raykd.precompute.gpu_cost import GraphedLabeller, gpu_hardware, measure_on_gpu
from raykd.precompute.latency import Timing, hardware, labelling_call, synthetic_batch
from raykd.precompute.measurement import check_gpu
from raykd.precompute.model_cost import find_cost, measure_cost, store_cost
from raykd.recipes.resources import Resources
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.storage.store import Storage
from raykd.training.model_folder import build_model
from raykd.training.prepare import prepare
from tests.fake_gpu import GPU, gpu
from tests.teachers.checkpoints import make_checkpoint
from tests.training import test_parsers
from tests.training.small import prepared, recipe, student_of
from tests.training.test_waits import CHAINS, SHORT
from tests.treebank import write_treebank


def labels_as_on_the_cpu(storage: Storage, run: Run) -> None:
    model, gpu_model = (build_model(storage, run, dropout=0.0).eval() for _ in range(2))
    gpu_model.load_state_dict(model.state_dict())
    batch = synthetic_batch(3, open_vocabulary(storage, run.vocabulary_id))
    shorter = torch.tensor([0, 2, 5])
    second_batch = batch.map(lambda part: part.flip(0) if part.dim() > 1 else part - shorter)
    with torch.no_grad():
        expected = [labelling_call(model, sentences)()[0] for sentences in (batch, second_batch)]
        with gpu() as waits:
            call = GraphedLabeller(gpu_model.to(GPU), batch, GPU, bf16=False)
            before = waits.total()
            labels = call()[0]
            assert waits.total() == before + 1, "the labels are fetched"
            for pinned, part in zip(call._pinned, tensors(second_batch), strict=True):
                pinned.copy_(part)
            second_labels = call()[0]
    assert torch.equal(labels, expected[0])
    assert torch.equal(second_labels, expected[1]), "it reads what it is given, not what it was captured with"


def tensors(batch: TokenBatch) -> list[torch.Tensor]:
    collected: list[torch.Tensor] = []
    batch.map(lambda part: collected.append(part) or part)
    return collected


@pytest.mark.parametrize("name", CHAINS)
def test_students_and_their_teachers_label_by_one_graph(tmp_path, name):
    ready = prepared(str(tmp_path), recipe(schedule=SHORT, **CHAINS[name]))
    for run in (ready.teachers[0].run, student_of(ready, schedule=SHORT, **CHAINS[name])):
        labels_as_on_the_cpu(ready.storage, run)


@pytest.mark.parametrize("kind", test_parsers.TEACHERS)
def test_parsers_label_by_one_graph(tmp_path, kind):
    run_recipe = test_parsers.parsing(write_treebank(tmp_path / "bank"), kind, schedule=SHORT)
    ready = prepared(str(tmp_path / "store"), run_recipe)
    for run in (ready.teachers[0].run, student_of(ready, run_recipe)):
        labels_as_on_the_cpu(ready.storage, run)


def test_a_checkpoint_labels_by_one_graph(tmp_path):
    checkpoint = make_checkpoint(tmp_path / "checkpoint", longest=64)
    teacher = {"kind": "hf_token_classifier", "path": checkpoint, "fine_tune": True, "scope": "all"}
    run_recipe = recipe(
        teachers={**teacher, "epochs": 1, "training": {"batch_tokens": 400, "learning_rate": 1e-3}}
    )
    preparation = prepare(run_recipe, Storage(str(tmp_path / "store")))
    labels_as_on_the_cpu(preparation.storage, preparation.teachers[0].run)


@pytest.fixture
def timed(monkeypatch):
    """Latencies are given, and each call is made once; tensors of the fake know no inference mode."""

    def time_in_turns(calls):
        for call in calls.values():
            call()
        return dict.fromkeys(calls, Timing(1.0, 2.0, 0.01))

    monkeypatch.setattr(gpu_cost, "time_in_turns", time_in_turns)
    monkeypatch.setattr(torch, "inference_mode", lambda mode=True: torch.no_grad())
    monkeypatch.setattr(gpu_cost, "LARGEST", 128)


FIGURES = {
    f"{name}{ending}"
    for name in ("latency_ms", "latency_ms_batch32", "sentences_per_s")
    for ending in ("_gpu", "_gpu_bf16")
} | {"training_pieces_per_s_gpu"}


def test_what_a_gpu_timed_stands_beside_what_the_processor_timed(tmp_path, timed):
    ready = prepared(str(tmp_path), recipe(schedule=SHORT))
    storage, runs = ready.storage, [ready.teachers[0].run, student_of(ready, schedule=SHORT)]
    alone = [measure_cost(storage.uri, run) for run in runs]
    with gpu():
        on = gpu_hardware()
        measured = measure_on_gpu(storage, runs, ["gpu", "gpu_bf16"])
    for run, before, gpu_cost_of_run in zip(runs, alone, measured, strict=True):
        assert find_cost(storage, run, hardware() | on) is None
        store_cost(storage, run, gpu_cost_of_run)
        assert find_cost(storage, run) == before, "the processor's stay what they are"
        both = find_cost(storage, run, hardware() | on, ["gpu", "gpu_bf16"])
        assert both.figures.keys() - before.figures.keys() == FIGURES
        assert {**both.figures, **before.figures} == both.figures
        assert all(both[name] > 0 for name in FIGURES)
        assert both.hardware == hardware() | on
        assert find_cost(storage, run, on, ["gpu"]).figures["parameters"] == before["parameters"]


def test_what_cannot_be_captured_is_timed_kernel_by_kernel_and_says_so(tmp_path, timed, monkeypatch):
    ready = prepared(str(tmp_path), recipe(schedule=SHORT))
    run = student_of(ready, schedule=SHORT)
    measure_cost(ready.storage.uri, run)
    honest = gpu_cost.labelling_call

    def reads(model: Model, batch: TokenBatch):
        label = honest(model, batch)
        return lambda: (int(batch.lengths_B.max()), label())[1]

    monkeypatch.setattr(gpu_cost, "labelling_call", reads)
    with gpu():
        (measured,) = measure_on_gpu(ready.storage, [run], ["gpu"])
    (remark,) = measured.cost.remarks
    assert remark.startswith("timed on the GPU without a CUDA graph: ")
    assert "not permitted when stream is capturing" in remark
    assert measured.cost["sentences_per_s_gpu"] > 0


def test_without_a_gpu_nothing_is_timed_on_one():
    check = partial(check_gpu, resources=Resources())
    check((), cluster=Topology.of({"CPU": 2.0}))
    check(("int8", "torch"), cluster=Topology.of({"CPU": 2.0}))
    check(("gpu",), cluster=Topology.of({"CPU": 2.0, "GPU": 1.0}))
    with pytest.raises(
        PlacementError, match=r"figures that end in _gpu_bf16 are timed on \{GPU: 1\}, which no node has"
    ):
        check(("torch", "gpu_bf16"), cluster=Topology.of({"CPU": 2.0}))
    resources = Resources(students={"accelerator_type": "H100"})
    with pytest.raises(PlacementError, match="H100"):
        check_gpu(("gpu",), resources, Topology.of({"CPU": 2.0, "GPU": 1.0}))
