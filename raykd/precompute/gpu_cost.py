"""The cost of a shape on a GPU: the time of labelling as deployed there, and of a training step.

All of labelling, decoding included, is one CUDA graph for each shape of a batch: a GPU computes a small model faster
than a program can launch its kernels one by one. A call sends the batch from pinned memory and fetches the labels. The
GPU does nothing else during a measurement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from raykd.corpora.encoded_text import TokenBatch
from raykd.figures.results import Cost
from raykd.figures.table import ENDINGS, LATENCY, TRAINING_SPEED_GPU, Runtime
from raykd.identity import PlainObject
from raykd.layers.model import Model
from raykd.precompute.latency import labelling_call, synthetic_batch, time_in_turns
from raykd.precompute.model_cost import (
    BATCHES,
    GPU,
    MAX_BYTES,
    MAX_MODELS,
    MeasuredCost,
    bytes_in_memory,
    cost_shape,
    find_sizes,
    pieces_per_s,
    time_training_step,
)
from raykd.progress import with_progress
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import StoredVocabulary, open_vocabulary
from raykd.storage.store import Storage
from raykd.structures.device import deferred_checks, to_cpu
from raykd.training.device import assigned_device
from raykd.training.model_folder import build_model

WARM_UP = 3
"""Calls before a graph is captured, in which kernels are compiled and libraries allocate memory."""
SMALLEST, LARGEST, GAIN = 64, 16_384, 1.05
"""Range of batch sizes, in powers of two, and the least gain in throughput for which the batch is doubled again."""
ROUNDS = 5


def gpu_hardware() -> PlainObject:
    """Return the description of the process' GPU, part of the identity of a cost."""
    versions = {"torch": str(torch.__version__), "cuda": torch.version.cuda}
    return {GPU: {"name": torch.cuda.get_device_name(), **versions}}


class GraphedLabeller:
    """Labels batches of one shape, each with one launch of a CUDA graph.

    Raises:
        RuntimeError: the model cannot be captured, because it reads a value on the host while it computes.
    """

    def __init__(self, model: Model, batch: TokenBatch, device: torch.device, *, bf16: bool):
        self._pinned, self._inputs = list[Tensor](), list[Tensor]()
        batch.map(lambda part: self._pinned.append(part.pin_memory()) or part)
        on_gpu = batch.to(device)
        on_gpu.map(lambda part: self._inputs.append(part) or part)
        label = labelling_call(model, on_gpu)
        # Weights that autocast keeps in bf16 would be freed while the graph still reads them.
        autocast = torch.autocast("cuda", torch.bfloat16, enabled=bf16, cache_enabled=False)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with autocast, deferred_checks(), torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                label()
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with autocast, deferred_checks(), torch.cuda.graph(self._graph):
            self._labels = label()

    def __call__(self) -> object:
        """The labels, on the CPU."""
        for source, target in zip(self._pinned, self._inputs, strict=True):
            target.copy_(source, non_blocking=True)
        self._graph.replay()
        return to_cpu(self._labels)


@dataclass(frozen=True)
class _Shape:
    """An untrained model of a run's shape, on the GPU."""

    model: Model
    vocabulary: StoredVocabulary
    sizes: Cost


def measure_on_gpu(storage: Storage, runs: Sequence[Run], runtimes: Sequence[Runtime]) -> list[MeasuredCost]:
    """Time the shapes of the first runs, as many as fit into memory together, in turns on this process' GPU.

    Args:
        storage: has the runs' vocabularies and the sizes of their shapes; nothing is written.
        runs: of different shapes.
        runtimes: the forms of `GPU_RUNTIMES` in which labelling is timed.

    Returns:
        One cost for each of the first runs, at least for one.

    Raises:
        RunError: this process has no GPU.
    """
    device, shapes = assigned_device(1.0), list[_Shape]()
    for run in runs[:MAX_MODELS]:
        sizes = find_sizes(storage, run)
        assert sizes is not None, "sizes are stored when the processor is measured, which is before"
        model = build_model(storage, run, dropout=0.0).eval().to(device)
        shape = _Shape(model, open_vocabulary(storage, run.vocabulary_id), sizes)
        if shapes and sum(bytes_in_memory(loaded.model) for loaded in (*shapes, shape)) > MAX_BYTES:
            break
        shapes.append(shape)
    notes: list[list[str]] = [[] for _ in shapes]
    with torch.inference_mode():
        calls = {
            (place, f"{LATENCY.name}{name}{ENDINGS[runtime]}"): _call(
                shape.model, synthetic_batch(size, shape.vocabulary), device, runtime, notes[place]
            )
            for place, shape in enumerate(shapes)
            for name, size in BATCHES.items()
            for runtime in runtimes
        }
        timings = time_in_turns(calls)
        speeds = [
            {
                f"sentences_per_s{ENDINGS[runtime]}": _max_throughput(shape, device, runtime, shape_notes)
                for runtime in runtimes
            }
            for shape, shape_notes in with_progress(list(zip(shapes, notes, strict=True)))
        ]
    trainings = [time_training_step(shape.model, shape.vocabulary, device) for shape in shapes]
    costs = list[MeasuredCost]()
    for place, (run, shape) in enumerate(zip(runs, shapes, strict=False)):
        shape_timings = {name: timing for (at, name), timing in timings.items() if at == place}
        figures = {**{name: timing.p50_ms for name, timing in shape_timings.items()}, **speeds[place]}
        spreads = {name: timing.spread for name, timing in shape_timings.items()}
        if (training := trainings[place]) is not None:
            figures[TRAINING_SPEED_GPU.name] = pieces_per_s(training)
            spreads[TRAINING_SPEED_GPU.name] = training.spread
        remarks = tuple(dict.fromkeys(notes[place]))
        timed = Cost(figures, cost_shape(storage, run), gpu_hardware(), spreads=spreads, notes=remarks)
        costs.append(MeasuredCost(shape.sizes, timed))
    return costs


def _call(
    model: Model, batch: TokenBatch, device: torch.device, runtime: Runtime, notes: list[str]
) -> Callable[[], object]:
    """A function for labelling the batch; if no graph can be captured, kernel by kernel, with a note."""
    bf16 = runtime == "gpu_bf16"
    try:
        return GraphedLabeller(model, batch, device, bf16=bf16)
    except torch.cuda.OutOfMemoryError:
        raise
    except RuntimeError as error:
        notes.append(f"timed on the GPU without a CUDA graph: {str(error).splitlines()[0]}")

    def label() -> object:
        with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
            return to_cpu(labelling_call(model, batch.to(device))())

    return label


def _max_throughput(shape: _Shape, device: torch.device, runtime: Runtime, notes: list[str]) -> float:
    """Sentences per second with a batch size large enough to fill the GPU."""
    best, size = 0.0, SMALLEST
    while size <= LARGEST:
        try:
            call = _call(shape.model, synthetic_batch(size, shape.vocabulary), device, runtime, notes)
            call()
            started = time.perf_counter()
            for _ in range(ROUNDS):
                call()
            speed = ROUNDS * size / (time.perf_counter() - started)
        except torch.cuda.OutOfMemoryError:
            break
        finally:
            call = None
            torch.cuda.empty_cache()
        if speed < best * GAIN:
            return round(max(best, speed), 1)
        best, size = speed, 2 * size
    return round(best, 1)
