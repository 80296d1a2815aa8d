"""Efficiency of several workers (DDP) for one small student: 2 to 64 workers on 10, 25 and 100 Gbit/s, simulated.

    python benchmarks/ddp_simulation.py                     three students (two minutes)
    python benchmarks/ddp_simulation.py --latency-us 5      a network of lower latency
    python benchmarks/ddp_simulation.py --ray               also the same step in a plain TorchTrainer (a minute more)

Measured on one thread of this processor: the seconds of a training step (forward, loss, backward, Adam) for batches of
different sizes, in sentences of 32 pieces. DDP itself counts the bytes of the gradients and the all-reduces of a step.

Simulated by `raykd/cluster/data_parallel.py`: the network, as a ring. The model hides no communication behind the
backward pass.

Then two real workers (gloo, on this machine) take the same steps. The model predicts their time from all-reduces of
other sizes. A step of two workers that do not communicate is measured too, since they share memory, caches and perhaps
a core. Figures are medians, and contestants take turns. The output is Markdown.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

from raykd.cluster.data_parallel import (
    Gradients,
    Network,
    Step,
    all_reduce_s,
    strong_efficiency,
    strong_tokens,
)
from raykd.corpora.encoded_text import TokenBatch
from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.word_pieces import Special
from raykd.forms import SPANS
from raykd.layers.model import Model
from raykd.layers.model_config import BuildInputs
from raykd.objectives.labels import negative_log_likelihood
from raykd.precompute.latency import PIECES, synthetic_batch
from raykd.precompute.processor import processor_name
from raykd.recipes.stored_vocabulary import StoredVocabulary
from raykd.students import BiLSTMStudent

TAGS = SPANS.tag_set(["LOC", "ORG", "PER"])
WORKERS, GBITS = (2, 4, 8, 16, 32, 64), (10.0, 25.0, 100.0)
SENTENCES = (8, 32, 128, 512)
"""Sizes of the batches whose step is measured, in sentences of `PIECES` tokens."""
REAL = (16, 64, 256)
"""Sizes of the batches that two real workers share, in sentences of `PIECES` tokens."""
EFFICIENT = 0.85
SECONDS, FEWEST = 1.0, 5


@dataclass(frozen=True, eq=False)
class Shape:
    """A student of a sweep file."""

    file: str
    pieces: int
    settings: Mapping[str, Any]

    def build(self) -> Model:
        torch.manual_seed(0)
        return BiLSTMStudent(**self.settings).build(BuildInputs(vocabulary_size=self.pieces, tag_set=TAGS))

    def batch(self, sentences: int) -> TokenBatch:
        return synthetic_batch(
            sentences, StoredVocabulary("pieces", HFVocabulary("", self.pieces, Special()), None)
        )

    @property
    def name(self) -> str:
        sizes = "E{embedding_dim} H{hidden_dim} {decoder}".format(**self.settings)
        return f"{sizes}, {self.pieces:,} pieces ({self.file})"


SHAPES = (
    Shape("quickstart", 1_000, {"embedding_dim": 32, "hidden_dim": 32, "decoder": "crf"}),
    Shape("structural_kd", 16_000, {"embedding_dim": 64, "hidden_dim": 64, "decoder": "crf"}),
    Shape(
        "xtremedistil",
        34_685,
        {"embedding_dim": 100, "hidden_dim": 200, "projection": 384, "decoder": "maxent"},
    ),
)


class Learner(nn.Module):
    """A student together with the loss on labels, as DDP wraps it."""

    def __init__(self, model: Model):
        super().__init__()
        self.model = model

    def forward(self, batch: TokenBatch) -> torch.Tensor:
        labels_BT = torch.zeros(len(batch.lengths_B), int(batch.lengths_B.max()), dtype=torch.long)
        return negative_log_likelihood(self.model(batch).distribution, labels_BT).mean()


def weak_efficiency(step: Step, tokens: float, sent_s: float) -> float:
    """Return the efficiency of weak scaling: every worker keeps a batch of `tokens`."""
    return step.compute_s(tokens) / (step.compute_s(tokens) + sent_s)


def weak_tokens(step: Step, sent_s: float, efficiency: float) -> float:
    """Return the smallest batch of a worker, in tokens, with at least this `efficiency` (below 1) by weak scaling."""
    missing = efficiency / (1 - efficiency) * sent_s - step.fixed_s
    if step.token_s == 0:
        return 0.0 if missing <= 0 else inf
    return max(0.0, missing / step.token_s)


def step_of(learner: nn.Module, batch: TokenBatch) -> Callable[[], None]:
    """Return a function for one optimiser step on `batch`."""
    optimiser = torch.optim.Adam(learner.parameters())

    def step() -> None:
        learner(batch).backward()
        optimiser.step()
        optimiser.zero_grad()

    return step


def busy_s(call: Callable[[], object]) -> float:
    """Return the median processor seconds of a call; as many calls as fit into `SECONDS`.

    Processor seconds do not count the time that other processes take.
    """
    times: list[float] = []
    call()
    while len(times) < FEWEST or sum(times) < SECONDS:
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return statistics.median(times)


def elapsed_s(call: Callable[[], object], calls: int = FEWEST) -> float:
    """Return the median wall seconds of a call."""
    times: list[float] = []
    call()
    for _ in range(calls):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def measured_step(shape: Shape) -> tuple[Step, dict[int, float]]:
    """Measure steps of one worker.

    Returns:
        The line through the points, and the points: tokens of the batch to processor seconds.
    """
    learner = Learner(shape.build()).train()
    seconds = {PIECES * count: busy_s(step_of(learner, shape.batch(count))) for count in SENTENCES}
    # Relative errors count, not milliseconds: else the largest batch alone would decide.
    slope, fixed = np.polyfit(
        list(seconds), list(seconds.values()), 1, w=[1 / second for second in seconds.values()]
    )
    return Step(max(0.0, float(fixed)), float(slope)), seconds


def gradients_of(learner: nn.Module, batch: TokenBatch) -> Gradients:
    """Count the bytes and all-reduces of a DDP step.

    The second step counts: only then are the buckets in the order of the gradients.
    """
    wrapped, sizes = DistributedDataParallel(learner), list[int]()

    def counted(state, bucket):  # without annotations: DDP reads them, and takes no strings
        sizes.append(bucket.buffer().nbytes)
        return allreduce_hook(state, bucket)

    wrapped.register_comm_hook(None, counted)
    for _ in range(2):
        sizes.clear()
        wrapped(batch).backward()
    return Gradients(sum(sizes), len(sizes))


def update_ns(shape: Shape) -> float:
    """Return the nanoseconds of an update by Adam, per parameter."""
    learner = Learner(shape.build()).train()
    learner(shape.batch(1)).backward()
    parameters = [*learner.parameters()]
    seconds = busy_s(torch.optim.Adam(parameters).step)
    return 1e9 * seconds / sum(parameter.numel() for parameter in parameters)


def all_reduce_of(size: int) -> Callable[[], object]:
    values = torch.zeros(max(1, size // 4))
    return lambda: distributed.all_reduce(values)


def as_one_of_two(rank: int) -> dict[str, Any]:
    """Measure all-reduces and steps as one of two workers; both take the same steps."""
    torch.set_num_threads(1)
    tiny, large = 4, 2**25
    measurements: dict[str, Any] = {
        "latency_s": elapsed_s(all_reduce_of(tiny), 200) / 2,
        "large_s": elapsed_s(all_reduce_of(large)),
        "shapes": {},
    }
    measurements["gbit_per_s"] = large * 8 / 1e9 / (measurements["large_s"] - 2 * measurements["latency_s"])
    for shape in SHAPES:
        learner = Learner(shape.build()).train()
        gradients = gradients_of(learner, shape.batch(8))
        rows = []
        for sentences in REAL:
            whole, half = shape.batch(sentences), shape.batch(sentences // 2)
            alone, apart = Learner(shape.build()).train(), Learner(shape.build()).train()
            together = DistributedDataParallel(Learner(shape.build()).train())
            times: dict[str, list[float]] = {"one": [], "apart": [], "two": []}
            for _ in range(3):
                distributed.barrier()
                if rank == 0:  # the other worker waits at the barrier and computes nothing
                    times["one"].append(elapsed_s(step_of(alone, whole)))
                distributed.barrier()
                times["apart"].append(elapsed_s(step_of(apart, half)))
                distributed.barrier()
                times["two"].append(elapsed_s(step_of(together, half)))
            distributed.barrier()
            rows.append({name: statistics.median(seconds) for name, seconds in times.items() if seconds})
        measurements["shapes"][shape.name] = {
            "bytes": gradients.bytes,
            "calls": gradients.calls,
            "rows": rows,
        }
    return measurements


def gloo_worker(rank: int, folder: str) -> None:
    """Run one of two processes of a gloo group, which meet through a file."""
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    measurements = as_one_of_two(rank)
    if rank == 0:
        Path(folder, "measurements.json").write_text(json.dumps(measurements))
    distributed.destroy_process_group()


def ray_worker(config: dict[str, str]) -> None:
    """Run one worker of a plain TorchTrainer. The trainer has made the process group."""
    rank = distributed.get_rank()
    measurements = as_one_of_two(rank)
    if rank == 0:
        Path(config["folder"], "measurements.json").write_text(json.dumps(measurements))


def with_gloo(folder: str) -> dict[str, Any]:
    spawn(gloo_worker, args=(folder,), nprocs=2)
    return json.loads(Path(folder, "measurements.json").read_text())


def with_torch_trainer(folder: str) -> dict[str, Any]:
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    os.environ.setdefault("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    ray.init(num_cpus=2, log_to_driver=False, logging_level=logging.ERROR)
    TorchTrainer(
        ray_worker,
        train_loop_config={"folder": folder},
        torch_config=TorchConfig(backend="gloo"),
        scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.9}),
        run_config=RunConfig(storage_path=folder),
    ).fit()
    ray.shutdown()
    return json.loads(Path(folder, "measurements.json").read_text())


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def rounded(tokens: float) -> str:
    return f"{100 * -(-tokens // 100):,.0f}"


def steps_table(steps: Mapping[Shape, tuple[Step, dict[int, float]]], sent: Mapping[Shape, Gradients]) -> str:
    """Return the table of one worker: milliseconds of a step, bytes and all-reduces of every student."""
    rows = []
    for shape, (step, seconds) in steps.items():
        gradients = sent[shape]
        times = [f"{1e3 * second:.1f}" for second in seconds.values()]
        line = f"{1e3 * step.fixed_s:.1f} ms + {1e6 * step.token_s:.1f} µs a token"
        rows.append(
            [
                shape.name,
                *times,
                line,
                f"{update_ns(shape):.1f}",
                f"{gradients.bytes / 1e6:.2f}",
                gradients.calls,
            ]
        )
    heads = [
        "student",
        *(f"ms, {PIECES * count:,} tokens" for count in SENTENCES),
        "line through them",
        "Adam, ns a parameter",
        "MB",
        "all-reduces",
    ]
    return table(heads, rows)


def simulation(step: Step, sent: Gradients, tokens: int, latency_s: float) -> str:
    """Return the table of efficiencies and efficient batch sizes, by workers and bandwidth."""
    heads = [
        "workers",
        *(f"{gbit:g} Gbit/s" for gbit in GBITS),
        *(f"{gbit:g}: tokens for 85 %" for gbit in GBITS),
    ]
    rows = []
    for workers in WORKERS:
        times = [all_reduce_s(sent, workers, Network(gbit, latency_s)) for gbit in GBITS]
        strong = [strong_efficiency(step, tokens, workers, time) for time in times]
        weak = [weak_efficiency(step, tokens, time) for time in times]
        shares = [
            f"{100 * strong_share:.0f} · {100 * weak_share:.0f} %"
            for strong_share, weak_share in zip(strong, weak, strict=True)
        ]
        enough = [
            f"{rounded(strong_tokens(step, workers, time, EFFICIENT))} · {rounded(weak_tokens(step, time, EFFICIENT))}"
            for time in times
        ]
        rows.append([workers, *shares, *enough])
    return table(heads, rows)


def real_table(measurements: Mapping[str, Any]) -> str:
    """Return the table of two real workers, measured and predicted."""
    network = Network(measurements["gbit_per_s"], measurements["latency_s"])
    rows = []
    for name, measured in measurements["shapes"].items():
        sent_s = all_reduce_s(Gradients(measured["bytes"], measured["calls"]), 2, network)
        for sentences, row in zip(REAL, measured["rows"], strict=True):
            predicted = row["apart"] + sent_s
            rows.append([
                name, f"{PIECES * sentences:,}", *(f"{1e3 * row[key]:.1f}" for key in ("one", "apart", "two")),
                f"{1e3 * predicted:.1f}", f"{predicted / row['two'] - 1:+.0%}",
                f"{1 - row['apart'] / row['two']:.0%}", f"{row['one'] / row['two']:.2f} ×",
            ])  # fmt: skip
    heads = [
        "student", "tokens", "one worker, ms", "two that do not talk", "two", "two, predicted", "error",
        "share of communication", "speed-up",
    ]  # fmt: skip
    return table(heads, rows)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokens", type=int, default=2000, help="of the batch whose efficiency is shown")
    parser.add_argument("--latency-us", type=float, default=1e6 * Network().latency_s)
    parser.add_argument("--ray", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{processor_name()}, {os.cpu_count()} threads, PyTorch {torch.__version__}; one thread a worker\n")
    steps = {shape: measured_step(shape) for shape in SHAPES}
    with tempfile.TemporaryDirectory() as folder:
        measurements = with_gloo(folder)
    sent = {
        shape: Gradients(*(measurements["shapes"][shape.name][key] for key in ("bytes", "calls")))
        for shape in SHAPES
    }
    print(steps_table(steps, sent))
    print(
        f"Batches of {arguments.tokens:,} tokens, {arguments.latency_us:g} µs a message; strong · weak scaling:\n"
    )
    for shape, (step, _) in steps.items():
        print(
            f"**{shape.name}**\n\n{simulation(step, sent[shape], arguments.tokens, arguments.latency_us / 1e6)}"
        )
    loopback = f"{measurements['gbit_per_s']:.1f} Gbit/s, {1e6 * measurements['latency_s']:.0f} µs a message"
    print(f"Two real workers, gloo, on this machine ({loopback}):\n\n{real_table(measurements)}", flush=True)
    if arguments.ray:
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            measurements = with_torch_trainer(folder)
            print(
                f"The same in a plain TorchTrainer ({time.perf_counter() - started:.0f} s with its start):\n"
            )
        print(real_table(measurements))


if __name__ == "__main__":
    main()
