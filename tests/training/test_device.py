"""Only roles with a GPU compute on it. CUDA is a fake here: it is visible, but not used."""

from __future__ import annotations

import os
import shutil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ray.data
import torch

from raykd.cluster import launch
from raykd.cluster.launch import Launcher
from raykd.errors import RunError
from raykd.precompute import pipeline
from raykd.precompute.pipeline import Placement
from raykd.precompute.shard_writer import ShardWriter
from raykd.recipes.resources import Resources, Role
from raykd.storage.store import Storage
from raykd.training.device import WORKSPACE, assigned_device, deterministic, piece_budget
from raykd.training.evaluate import evaluation_batches
from raykd.training.execute import execute_run
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs
from raykd.training.worker import Worker
from raykd.transfer import Text
from tests.training.small import recipe, student_of
from tests.transfer.samples import FakeTeacher, School, compute

TEXT = Text.from_tokens([["a", "b"], ["c"]])


@pytest.fixture(params=[False, True], ids=["no GPU", "a GPU"])
def seen(request, monkeypatch):
    """A parameter for PyTorch with and without a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: request.param)
    return request.param


@pytest.mark.parametrize("gpus", [0.0, 0.25, 1.0, 2.0])
def test_a_gpu_is_used_where_it_was_given_and_missed_where_it_is_not_seen(seen, gpus):
    if gpus and not seen:
        with pytest.raises(
            RunError, match=rf"gpus_per_worker: {gpus:g} was given, and PyTorch .* sees no GPU"
        ):
            assigned_device(gpus)
    else:
        assert assigned_device(gpus) == torch.device("cuda" if gpus else "cpu")


@pytest.mark.parametrize("gpus", [0.0, 0.5])
def test_a_run_computes_where_its_role_was_placed(seen, gpus, tmp_path, monkeypatch):
    store = Storage(str(tmp_path))
    run_recipe = recipe(objective={"kind": "gold"}, student={"scope": "all"}, schedule={"epochs": 1})
    (run,) = student_runs(run_recipe, prepare(run_recipe, store))
    workers = list[Worker]()

    def execute(*_, worker: Worker, report):
        workers.append(worker)

    monkeypatch.setattr(launch, "execute_run", execute)
    resources = Resources(teachers=Role(gpus_per_worker=1.0), gpus_per_worker=gpus).for_role("students")
    if gpus and not seen:
        with pytest.raises(RunError, match="sees no GPU"):
            Launcher().launch(store.uri, run, resources, lambda epoch: None)
        assert not workers
    else:
        Launcher().launch(store.uri, run, resources, lambda epoch: None)
        assert [worker.device.type for worker in workers] == ["cuda" if gpus else "cpu"]


@pytest.mark.parametrize("gpus", [0.0, 0.5])
def test_a_teacher_reads_where_precompute_was_placed(seen, gpus, tmp_path):
    school = School(FakeTeacher("en"))

    def here(plan, rows, placement):
        actor = ShardWriter(plan.store, plan.shard_jobs(), plan.token_budget, 1, gpus)
        yield from map(actor, rows)

    plan = school.plan(tmp_path, {"en": TEXT})
    if gpus and not seen:
        with pytest.raises(RunError, match="sees no GPU"):
            compute(plan, launch=here)
        assert not school.devices
    else:
        assert compute(plan, launch=here).computed_shards
        assert school.devices == ["cuda" if gpus else "cpu"]


def test_an_actor_is_told_what_it_was_given(monkeypatch):
    calls = {}

    class Dataset:
        def map(self, writer, *, fn_constructor_args, **_):
            calls["gpus"] = fn_constructor_args[-1]
            return SimpleNamespace(iter_rows=lambda: iter(()))

    monkeypatch.setattr(ray.data, "from_items", lambda *_, **__: Dataset())
    plan: Any = SimpleNamespace(store="", token_budget=1, shard_jobs=tuple)
    list(pipeline._pipeline(plan, [{"task": 0, "first": 0}], Placement(gpus_per_actor=0.25), 1))
    assert calls == {"gpus": 0.25}


GIB = 2**30


@pytest.mark.parametrize(
    ("free", "total", "reserved", "share", "pieces"),
    [
        (70 * GIB, 80 * GIB, 0, 1.0, 8192),
        (70 * GIB, 80 * GIB, 0, 2.0, 8192),
        (70 * GIB, 80 * GIB, 0, 0.0625, 4096),
        (5 * GIB, 80 * GIB, 0, 1.0, 4096),
        (5 * GIB, 80 * GIB, 3 * GIB, 1.0, 8192),
        (GIB, 16 * GIB, 0, 1.0, 1024),
        (GIB - 1, 16 * GIB, 0, 1.0, 512),
        (0, 16 * GIB, 0, 1.0, 1),
    ],
)
def test_what_is_read_at_once_follows_the_memory_that_is_free(
    monkeypatch, free, total, reserved, share, pieces
):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free, total))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: GIB + reserved)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: GIB)
    gpu = torch.device("cuda")
    assert piece_budget(gpu, share=share) == pieces
    longest = max(len(rows) for rows in evaluation_batches(np.full(9000, 1), gpu, share=share))
    assert longest == pieces
    assert piece_budget(torch.device("cpu"), share=share) == 1000


@pytest.mark.parametrize("gpus", [0.0, 0.0625])
def test_a_teacher_reads_what_its_share_of_a_device_holds(gpus, tmp_path, monkeypatch):
    budgets = list[int]()

    class Reader(FakeTeacher):
        def emit(self, sentences, token_budget):
            budgets.append(token_budget)
            return super().emit(sentences, token_budget)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (10 * GIB, 32 * GIB))

    def here(plan, rows, placement):
        yield from map(ShardWriter(plan.store, plan.shard_jobs(), plan.token_budget, 1, gpus), rows)

    compute(School(Reader("en")).plan(tmp_path, {"en": TEXT}, token_budget=None), launch=here)
    assert set(budgets) - {1} == {2048 if gpus else 1000}


def modes() -> tuple[bool, ...]:
    """The process' modes of computation."""
    cudnn = torch.backends.cudnn
    modes_of_torch = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    return *modes_of_torch, cudnn.deterministic, cudnn.benchmark


EQUAL = (True, False, True, False)
USUAL = ((False, False, False, False), (True, True, False, True))


@pytest.fixture(params=USUAL, ids=["as PyTorch starts", "as a user set it"])
def usual(request):
    """Settings before a run, restored when the test ends."""
    before = modes()

    def become(values: tuple[bool, ...]) -> None:
        torch.use_deterministic_algorithms(values[0], warn_only=values[1])
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = values[2:]

    become(request.param)
    yield modes()
    become(before)


def test_a_deterministic_run_leaves_no_trace_and_is_taken_up_with_equal_bits(small, tmp_path, usual):
    run = student_of(
        small, training={"deterministic": True}, objective={"kind": "gold"}, schedule={"epochs": 2}
    )
    within = list[tuple[bool, ...]]()
    stores = [tmp_path / name for name in ("undisturbed", "interrupted")]
    for store in stores:
        shutil.copytree(small.storage.uri, store)

    def reported(epoch) -> None:
        within.append(modes())

    def interrupted(epoch) -> None:
        reported(epoch)
        raise KeyboardInterrupt

    expected = execute_run(str(stores[0]), run, worker=Worker(), report=reported)
    assert modes() == usual
    with pytest.raises(KeyboardInterrupt):
        execute_run(str(stores[1]), run, worker=Worker(), report=interrupted)
    assert modes() == usual
    result = execute_run(str(stores[1]), run, worker=Worker(), report=reported)
    assert modes() == usual
    assert within == [EQUAL] * 4, "two epochs in each store"
    assert result.weights_sha256 == expected.weights_sha256
    assert result.scores == expected.scores


def test_other_runs_compute_as_the_process_does(small, tmp_path, usual):
    shutil.copytree(small.storage.uri, tmp_path / "store")
    run = student_of(small, objective={"kind": "gold"}, schedule={"epochs": 1})
    within = list[tuple[bool, ...]]()
    execute_run(str(tmp_path / "store"), run, worker=Worker(), report=lambda _: within.append(modes()))
    assert within == [usual]


def test_what_has_no_deterministic_algorithm_is_refused_by_name(usual):
    lacking = "cumsum_cuda_kernel does not have a deterministic implementation, but you set 'torch.use_…'"
    for message, kind in ((lacking, RunError), ("another error", RuntimeError)):
        with pytest.raises(kind) as caught, deterministic(torch.device("cpu"), enabled=True):
            raise RuntimeError(message)
        assert modes() == usual
        assert ("no deterministic algorithm for cumsum_cuda_kernel" in str(caught.value)) == (
            kind is RunError
        )


def test_a_worker_with_a_gpu_sets_how_cublas_works_before_it_starts(monkeypatch):
    gpu = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv(WORKSPACE, ":0:0")
    assigned_device(1.0)
    with (
        pytest.raises(RunError, match="is :0:0; set it to :4096:8 or :16:8"),
        deterministic(gpu, enabled=True),
    ):
        pytest.fail("it computes")
    monkeypatch.delenv(WORKSPACE)
    assigned_device(0.0)
    assert WORKSPACE not in os.environ
    assigned_device(1.0)
    assert os.environ[WORKSPACE] == ":4096:8"
    with deterministic(gpu, enabled=True):
        assert piece_budget(gpu) == 2048
