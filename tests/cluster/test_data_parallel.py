"""The model of a data-parallel step, at its limits."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from benchmarks.ddp_simulation import weak_efficiency, weak_tokens
from raykd.cluster.data_parallel import (
    BUCKET,
    FIRST_BUCKET,
    Gradients,
    Network,
    Step,
    all_reduce_s,
    strong_efficiency,
    strong_tokens,
)

SECONDS = st.floats(1e-6, 1.0)
STEPS = st.builds(Step, fixed_s=SECONDS, token_s=st.floats(1e-7, 1e-2))
SENT = Gradients(4_000_000, 2)


def test_one_worker_sends_nothing_and_is_fully_efficient():
    assert all_reduce_s(SENT, 1, Network()) == 0
    assert strong_efficiency(Step(0.005, 1e-5), 1000, 1, 0.0) == weak_efficiency(Step(0.005, 1e-5), 1000, 0.0)
    assert strong_efficiency(Step(0.005, 1e-5), 1000, 1, 0.0) == 1


def test_two_workers_send_all_bytes_once_and_many_send_them_twice():
    # 4 MB are 32 Mbit: 3.2 ms at 10 Gbit/s.
    alone = Network(10.0, 0.0)
    assert all_reduce_s(SENT, 2, alone) == pytest.approx(0.0032)
    assert all_reduce_s(SENT, 1_000_000, alone) == pytest.approx(0.0064, rel=1e-5)


def test_each_all_reduce_costs_its_messages():
    # Two all-reduces of 2 · 3 messages each.
    assert all_reduce_s(Gradients(0, 2), 4, Network(10.0, 1e-4)) == pytest.approx(12e-4)


def test_what_is_the_same_in_each_step_is_not_divided():
    # With no communication and no fixed part strong scaling is perfect; a step that is all fixed gains nothing.
    assert strong_efficiency(Step(0.0, 1e-5), 1000, 8, 0.0) == pytest.approx(1)
    assert strong_efficiency(Step(0.005, 0.0), 1000, 8, 0.0) == pytest.approx(1 / 8)
    assert strong_tokens(Step(0.005, 0.0), 8, 0.0, 0.85) == math.inf
    assert weak_tokens(Step(0.005, 0.0), 0.1, 0.85) == math.inf


@given(step=STEPS, workers=st.integers(2, 64), sent_s=SECONDS, tokens=st.floats(1, 1e5))
def test_a_batch_divided_is_never_more_efficient_than_one_kept(step, workers, sent_s, tokens):
    strong = strong_efficiency(step, tokens, workers, sent_s)
    assert 0 < strong <= weak_efficiency(step, tokens, sent_s) <= 1


@given(step=STEPS, workers=st.integers(2, 64), sent_s=SECONDS)
def test_the_smallest_batch_reaches_the_efficiency_and_a_smaller_one_does_not(step, workers, sent_s):
    tokens = strong_tokens(step, workers, sent_s, 0.85)
    assert strong_efficiency(step, tokens, workers, sent_s) == pytest.approx(0.85)
    assert strong_efficiency(step, 0.9 * tokens, workers, sent_s) < 0.85
    fewest = weak_tokens(step, sent_s, 0.85)
    reached = weak_efficiency(step, fewest, sent_s)
    assert reached == pytest.approx(0.85) if fewest else reached >= 0.85


@pytest.mark.parametrize(("size", "calls"), [(1000, 1), (FIRST_BUCKET, 1), (FIRST_BUCKET + BUCKET, 2)])
def test_a_bucket_is_an_all_reduce(size, calls):
    assert Gradients.of(size).calls == calls


def test_the_buckets_are_those_of_ddp(tmp_path):
    layers = [torch.nn.Linear(512, 256, bias=False) for _ in range(56)]  # half a MiB each
    sizes: list[int] = []

    def noted(_, bucket):  # DDP reads annotations, and takes no strings
        sizes.append(bucket.buffer().nbytes)
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        wrapped = DistributedDataParallel(_Summed(layers))
        wrapped.register_comm_hook(None, noted)
        for _ in range(2):  # after the first step buckets are made anew, in the order of the gradients
            sizes.clear()
            wrapped(torch.ones(1, 512)).backward()
    finally:
        distributed.destroy_process_group()
    assert sizes == [FIRST_BUCKET, BUCKET, 2 * 2**20]
    assert Gradients.of(sum(sizes)).calls == len(sizes)


class _Summed(torch.nn.Module):
    def __init__(self, layers: list[torch.nn.Linear]):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.stack([layer(inputs).sum() for layer in self.layers]).sum()
