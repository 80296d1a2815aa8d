"""The cost of a shape: parameters, bytes, latency. It depends on the shape alone, so it is known before training.

Sizes are the same on all machines. Timings hold for the processor of the node that measured them, and are stored under
its name. The sizes are defined in `raykd/figures/table.py`. `precompute/measurement.py` decides which shapes are timed
together, and which again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import torch

from raykd.corpora.pretrained import HFVocabulary
from raykd.deploy.onnx_files import Session, float32_file, int8_file
from raykd.errors import ExportError
from raykd.figures.figure_values import compute_sizes
from raykd.figures.results import Cost
from raykd.figures.sizes import Shape
from raykd.figures.table import BYTES, ENDINGS, LATENCY, SIZES, TRAINING_SPEED, Runtime
from raykd.identity import PlainObject, identity
from raykd.layers.ensemble import Ensemble
from raykd.layers.model import Model
from raykd.layers.pointer_generator import PointerGenerator
from raykd.layers.tagger import Tagger
from raykd.precompute.latency import (
    BATCH,
    PIECES,
    Timing,
    hardware,
    labelling_call,
    synthetic_batch,
    time_in_turns,
    time_training,
)
from raykd.precompute.machine_load import LoadMeter, current_load
from raykd.progress import part_of_work, report_progress, with_progress
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import StoredVocabulary, open_vocabulary
from raykd.storage.store import Storage
from raykd.training.data import run_labels
from raykd.training.model_folder import build_model, is_annotator, model_config

FORMAT = 7
MAX_MODELS, MAX_BYTES = 16, 2**30
"""Most models timed in turns, and most bytes of their weights: they are all in memory at once."""
BUILT, TRAINED = 0.3, 0.6
"""Approximate shares of a measurement that are finished once models are built, and once training is timed."""
BATCHES: Mapping[str, int] = MappingProxyType({"": 1, "_batch32": BATCH})
"""Ending of a latency's name → sentences of the timed batch."""

GPU = "gpu"
"""Key of the GPU in a description of hardware, beside the keys of the processor."""

Call = tuple[Runtime, str]
"""A timed call: the form of the model, and the ending of the batch's name."""


@dataclass(frozen=True)
class MeasuredCost:
    """The cost of one run's shape, in the two parts that are stored: sizes and timings."""

    sizes: Cost
    timed: Cost

    @property
    def cost(self) -> Cost:
        """Sizes and timings in one cost."""
        return _merge(self.sizes, self.timed)


def _merge(cost: Cost, timed: Cost) -> Cost:
    """`cost` with the timings of the same shape."""
    return replace(
        cost,
        figures={**cost.figures, **timed.figures},
        hardware={**cost.hardware, **timed.hardware},
        spreads={**cost.spreads, **timed.spreads},
        load=max(cost.load, timed.load),
        notes=tuple(dict.fromkeys([*cost.notes, *timed.notes])),
    )


class ShapeModel:
    """An untrained model of a run's shape, with its export; the weights do not matter."""

    def __init__(self, storage: Storage, run: Run):
        self.model = build_model(storage, run, dropout=0.0).eval()
        self.vocabulary = open_vocabulary(storage, run.vocabulary_id)
        self.shape = cost_shape(storage, run)
        self.no_export, self.float32 = "", b""
        limit = self.model.piece_limit
        if limit is not None and limit < PIECES:
            self.no_export = f"its export reads at most {limit} pieces, and sentences of {PIECES} are timed"
            return
        try:
            self.float32 = float32_file(self.model)
        except ExportError as error:
            self.no_export = str(error).split(";")[0]

    @property
    def memory_bytes(self) -> int:
        """Approximate bytes in memory, without the export."""
        return bytes_in_memory(self.model)

    @cached_property
    def int8(self) -> bytes:
        """The export with 8-bit weights."""
        return int8_file(self.float32)

    @cached_property
    def parts(self) -> Shape:
        """The tensors and counts for computing sizes."""
        pieces = self.vocabulary.pieces
        counts = (pieces.size, pieces.full_size, pieces.used) if isinstance(pieces, HFVocabulary) else ()
        return Shape(
            tuple(self.model.all_parameters()), _piece_matrices(self.model), *counts, export=self.float32
        )

    def sizes(self) -> Cost:
        """Return the sizes of the shape, and those of parts that other models may share."""
        shared = {
            key: compute_sizes(Shape(parameters))
            for key, parameters in self.model.external_parameters().items()
        }
        return Cost(compute_sizes(self.parts), self.shape, shared=shared, no_export=self.no_export)


def bytes_in_memory(model: Model) -> int:
    """Bytes of a model's weights."""
    return sum(parameter.numel() * parameter.element_size() for parameter in model.all_parameters())


def _piece_matrices(model: Model) -> list[torch.Tensor]:
    """The piece embeddings of a model, or of the members of an ensemble."""
    matrices = []
    for member in model.members if isinstance(model, Ensemble) else [model]:
        with suppress(ValueError):
            matrices.append(member.embedding_matrix())  # type: ignore[operator]
    return matrices


def _calls(shape: ShapeModel, runtimes: Sequence[Runtime]) -> dict[Call, Callable[[], object]]:
    """The timed calls of a model: in PyTorch only if configured, or if there is no export."""
    batches = {name: synthetic_batch(size, shape.vocabulary) for name, size in BATCHES.items()}
    calls: dict[Call, Callable[[], object]] = {}
    if shape.no_export or "torch" in runtimes:
        calls |= {("torch", name): labelling_call(shape.model, batch) for name, batch in batches.items()}
    if not shape.no_export:
        files: dict[Runtime, bytes] = {"onnx": shape.float32}
        files |= {"int8": shape.int8} if "int8" in runtimes else {}
        for runtime, file in files.items():
            session = Session(file)
            calls |= {(runtime, name): partial(session.labels, batch) for name, batch in batches.items()}
    return calls


def _timed_cost(
    shape: ShapeModel, timings: Mapping[Call, Timing], training: Timing | None, load: float
) -> Cost:
    figures: dict[str, float] = {}
    spreads: dict[str, float] = {}
    for (runtime, batch), timing in timings.items():
        name = f"{LATENCY.name}{batch}{ENDINGS[runtime]}"
        figures[name], spreads[name] = timing.p50_ms, timing.spread
        if runtime == "onnx":
            figures[f"{name}_p90"], spreads[f"{name}_p90"] = timing.p90_ms, timing.spread
    if any(runtime == "int8" for runtime, _ in timings):
        figures[f"{BYTES.name}_int8"] = len(shape.int8) + shape.parts.text_change  # one byte per number
    if training is not None:
        figures[TRAINING_SPEED.name] = pieces_per_s(training)
        spreads[TRAINING_SPEED.name] = training.spread
    return Cost(figures, shape.shape, hardware(), spreads=spreads, load=round(load, 3))


def pieces_per_s(training: Timing) -> float:
    """The speed of training, in pieces per second, from the timing of a step."""
    return round(1e3 * BATCH * PIECES / training.p50_ms, 1)


def time_training_step(
    model: Model, vocabulary: StoredVocabulary, device: torch.device | str = "cpu"
) -> Timing | None:
    """Time a training step on labels, with a copy of the model; a distillation loss adds a tenth at most.

    Returns:
        The timing; None for an ensemble, whose members are trained one by one.
    """
    if isinstance(model, Ensemble):
        return None
    batch = synthetic_batch(BATCH, vocabulary)
    if isinstance(model, Tagger) and model.context is not None:
        # In training the features of frozen encoders are read from the store, so they cost no time here.
        batch = replace(batch, features_BTD=torch.randn(*batch.first_BT.shape, model.context.output_size))
    if isinstance(model, PointerGenerator):
        # In training a decoder reads the correct steps, here one for each word.
        steps = {"steps_BS": torch.zeros_like(batch.first_BT), "step_lengths_B": batch.lengths_B}
        batch = replace(batch, **steps)
    return time_training(deepcopy(model), batch.to(device))


def measure_together(
    storage: Storage, runs: Sequence[Run], runtimes: Sequence[Runtime] = ()
) -> list[MeasuredCost]:
    """Measure the shapes of the first runs, as many as fit into memory together, in turns.

    Args:
        storage: has the runs' vocabularies; nothing is written.
        runs: of different shapes.
        runtimes: forms in which models are timed beside the float32 export.

    Returns:
        One cost for each of the first runs, at least for one.
    """
    report_progress(0.0, "waiting until the machine is quiet")
    load, shapes = current_load(), list[ShapeModel]()
    with part_of_work(0.0, BUILT, "exporting models"):
        for run in with_progress(runs[:MAX_MODELS]):
            shape = ShapeModel(storage, run)
            if shapes and sum(loaded.memory_bytes for loaded in (*shapes, shape)) > MAX_BYTES:
                break
            shapes.append(shape)
    meter = LoadMeter()
    with part_of_work(BUILT, TRAINED, "timing training steps"):
        trainings = [time_training_step(shape.model, shape.vocabulary) for shape in with_progress(shapes)]
    calls = [_calls(shape, runtimes) for shape in shapes]
    with part_of_work(TRAINED, 1.0, "timing labelling"):
        timings = time_in_turns(
            {
                (place, name): call
                for place, calls_of_shape in enumerate(calls)
                for name, call in calls_of_shape.items()
            }
        )
    load = max(load, meter.share())
    return [
        MeasuredCost(
            shape.sizes(),
            _timed_cost(shape, {name: timings[place, name] for name in calls_of_shape}, training, load),
        )
        for place, (shape, training, calls_of_shape) in enumerate(zip(shapes, trainings, calls, strict=True))
    ]


def cost_shape(storage: Storage, run: Run) -> PlainObject:
    """Return the shape of a run: all settings relevant for its cost, so that two runs of one shape cost the same.

    Args:
        storage: has the run's vocabulary.
        run: the run.
    """
    vocabulary = open_vocabulary(storage, run.vocabulary_id)
    pieces = vocabulary.pieces
    # Two vocabularies of one size may have different sizes before or after pruning.
    pruning = (
        {"unpruned": pieces.full_size, "pruned": pieces.used} if isinstance(pieces, HFVocabulary) else {}
    )
    return {
        "model": model_config(run).shape(),
        "decoding": run.decoding,
        "task": run.task,
        "models": len(run.members) or 1,
        "pieces": pieces.size,
        **pruning,
        "characters": vocabulary.characters.size if vocabulary.characters else 0,
        "context": [part.size for part in vocabulary.context],
        "tags": len(run_labels(storage.uri, run)),
    }


def shape_key(storage: Storage, run: Run) -> str:
    """Return the name of the stored sizes of a run's shape; equal shapes have equal names.

    Args:
        storage: has the run's vocabulary.
        run: the run.
    """
    return _key(storage, run)


def find_sizes(storage: Storage, run: Run) -> Cost | None:
    """The stored sizes of a run's shape; None if there are none."""
    return _find(storage, shape_key(storage, run))


def find_cost(
    storage: Storage, run: Run, machine: PlainObject | None = None, runtimes: Sequence[Runtime] = ()
) -> Cost | None:
    """Return the stored cost of a run's shape; None if it was not measured on this hardware in all runtimes.

    Args:
        storage: the store.
        run: the run.
        machine: description of the hardware (a processor, a GPU, or both); None for that of this process.
        runtimes: forms in which models are timed beside the float32 export.
    """
    if (stated := _stated_cost(run)) is not None:
        return stated
    cost = find_sizes(storage, run)
    for part in _split_hardware(machine or hardware()):
        timed = _find(storage, _key(storage, run, hardware=part)) if cost is not None else None
        if cost is None or timed is None:
            return None
        cost = _merge(cost, timed)
    assert cost is not None
    needed = [ENDINGS[runtime] for runtime in runtimes if not (runtime == "int8" and cost.no_export)]
    if any(f"{LATENCY.name}{ending}" not in cost.figures for ending in needed):
        return None
    return cost


def _stated_cost(run: Run) -> Cost | None:
    """The cost of an annotator, which is not measured: its latency, if the sweep file states it; None for a model."""
    if not is_annotator(run):
        return None
    config = model_config(run)
    shape = {"annotator": config.kind}
    if not config.stated_costs:
        return Cost({}, shape, {}, no_export=config.no_export_reason)
    note = "its time is that of teachers.latency_ms, and its size is not known: no compression"
    return Cost(dict(config.stated_costs), shape, {}, notes=(note,))


def store_cost(storage: Storage, run: Run, measured: MeasuredCost) -> Cost:
    """Store the cost of a run's shape, in place of an earlier one; return the cost."""
    storage.write_json(_file_name(shape_key(storage, run)), measured.sizes.to_plain())
    storage.write_json(
        _file_name(_key(storage, run, hardware=measured.timed.hardware)), measured.timed.to_plain()
    )
    return measured.cost


def add_cost_note(storage: Storage, run: Run, machine: PlainObject, text: str) -> Cost:
    """Add a sentence to a stored cost; return the cost."""
    sizes, timed = find_sizes(storage, run), _find(storage, _key(storage, run, hardware=machine))
    assert sizes is not None
    assert timed is not None
    notes = tuple(dict.fromkeys([*timed.notes, text]))
    return store_cost(storage, run, MeasuredCost(sizes, replace(timed, notes=notes)))


def measure_cost(store_uri: str, run: Run, runtimes: Sequence[Runtime] = ()) -> Cost:
    """Return the cost of the run's shape; measure it if it is not stored.

    Call it only while nothing else computes on the machine.

    Args:
        store_uri: of the store.
        run: the run.
        runtimes: forms in which models are timed beside the float32 export.
    """
    storage = Storage(store_uri)
    cost = find_cost(storage, run, runtimes=runtimes)
    return cost or store_cost(storage, run, measure_together(storage, [run], runtimes)[0])


def _split_hardware(machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parts of a hardware with separate costs in the store: the processor, the GPU."""
    parts = {name: value for name, value in machine.items() if name != GPU}, {GPU: machine.get(GPU)}
    return [part for part in parts if any(part.values())]


def _key(storage: Storage, run: Run, **machine: Mapping[str, Any]) -> str:
    sizes = [figure.name for figure in SIZES]  # a new size makes all stored costs outdated
    return identity("cost", {"format": FORMAT, "sizes": sizes, "shape": cost_shape(storage, run), **machine})


def _file_name(key: str) -> str:
    return f"costs/{key}.json"


def _find(storage: Storage, key: str) -> Cost | None:
    return storage.find_json(_file_name(key), Cost.from_plain)
