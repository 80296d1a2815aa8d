"""What a shape costs: parameters, bytes, latency. It depends on the shape alone, so it is known before training.

A new cost is a function here, a line of `MEASURES`, and an entry of `raykd/figures.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import ray
import torch
from torch.nn import Parameter

from raykd.corpora.pretrained import HFVocabulary
from raykd.errors import ExportError
from raykd.figures import BYTES, PARAMETERS, PRUNED, UNPRUNED
from raykd.identity import identity
from raykd.layers import Ensemble, Model, Tagger
from raykd.results import Cost
from raykd.runs.cluster import PROBE
from raykd.runs.data import corpus_of
from raykd.runs.deployed import Session, deployed
from raykd.runs.latency import BATCH, hardware, labelling, synthetic_batch, time_in_turns, time_training
from raykd.runs.models import build_model, model_config
from raykd.runs.run import Run
from raykd.runs.vocabularies import StoredVocabulary, open_vocabulary
from raykd.storage import Storage

FORMAT = 5


def _size(model: Model, vocabulary: StoredVocabulary) -> dict[str, float]:
    figures, own = size_of(model.all_parameters()), vocabulary.pieces
    if not isinstance(own, HFVocabulary):
        return figures
    matrices = _piece_matrices(model)
    for figure, rows in ((UNPRUNED, own.full_size), (PRUNED, own.used)):
        if rows == 0:
            del figures[figure.name]  # its vocabulary was not made for a text
        elif rows != own.size:
            figures[figure.name] += sum((rows - len(each)) * each.shape[1] for each in matrices)
    return figures


def _piece_matrices(model: Model) -> list[torch.Tensor]:
    """The vectors of pieces of a model, or of each member of an ensemble, that has any."""
    found = []
    for each in model.members if isinstance(model, Ensemble) else [model]:
        with suppress(ValueError):
            found.append(each.embedding_matrix())  # type: ignore[operator]
    return found


def size_of(parameters: Iterable[Parameter]) -> dict[str, float]:
    """How many they are, whichever vocabulary is pruned, and their bytes."""
    every = list(parameters)
    count = sum(each.numel() for each in every)
    return {
        **{figure.name: count for figure in (PARAMETERS, UNPRUNED, PRUNED)},
        BYTES.name: sum(each.numel() * each.element_size() for each in every),
    }


def _latency(model: Model, vocabulary: StoredVocabulary) -> dict[str, float]:
    """Latencies in PyTorch and, with the file sizes, as ONNX Runtime runs it, where it has such a form."""
    batches = {"": synthetic_batch(1, vocabulary), "_batch32": synthetic_batch(BATCH, vocabulary)}
    calls = {name: labelling(model, batch) for name, batch in batches.items()}
    figures: dict[str, float] = {}
    with suppress(ExportError):
        files = deployed(model)
        figures = {"bytes_onnx": len(files.float32), "bytes_onnx_int8": len(files.int8)}
        for form, file in (("onnx", files.float32), ("int8", files.int8)):
            session = Session(file)
            calls |= {f"{name}_{form}": partial(session.labels, batch) for name, batch in batches.items()}
    for name, (p50, p90) in time_in_turns(calls).items():
        figures[f"latency_ms{name}"] = p50
        if name in batches:
            figures[f"latency_ms{name}_p90"] = p90
    return figures


def _training(model: Model, vocabulary: StoredVocabulary) -> dict[str, float]:
    """Pieces a second of training on labels; a distillation loss adds a tenth at most."""
    batch = synthetic_batch(BATCH, vocabulary)
    if isinstance(model, Ensemble):
        return {}  # its members are trained, each by itself
    if isinstance(model, Tagger) and model.context is not None:
        # In training what encoders give is read from the store.
        batch = replace(batch, features_BTD=torch.randn(*batch.first_BT.shape, model.context.output_size))
    seconds = time_training(deepcopy(model), batch)
    return {"training_pieces_per_s": round(int(batch.piece_lengths_B.sum()) / seconds, 1)}


MEASURES: Sequence[Callable[[Model, StoredVocabulary], dict[str, float]]] = (
    _size,
    _latency,
    _training,
)
"""Each gives figures of an untrained model, which is not to be changed, by their names in `raykd/figures.py`."""


def shape_of(storage: Storage, run: Run) -> dict[str, Any]:
    """All that a run's cost depends on; two runs of one shape cost the same."""
    vocabulary = open_vocabulary(storage, run.vocabulary_id)
    pieces = vocabulary.pieces
    # Two vocabularies of one size may have been pruned from others, or be pruned to others.
    other = {"unpruned": pieces.full_size, "pruned": pieces.used} if isinstance(pieces, HFVocabulary) else {}
    return {
        "model": model_config(run).shape(),
        "task": run.task,
        "models": len(run.members) or 1,
        "pieces": pieces.size,
        **other,
        "characters": vocabulary.characters.size if vocabulary.characters else 0,
        "context": [own.size for own in vocabulary.context],
        "tags": len(corpus_of(storage.uri, run.corpus_id).tag_set),
    }


def cost_key(storage: Storage, run: Run) -> str:
    """Where the cost of a run's shape on this hardware is kept."""
    # A cost that lacks a figure which was added since is another one.
    measures = [measure.__name__ for measure in MEASURES]
    known = {"format": FORMAT, "shape": shape_of(storage, run), "hardware": hardware(), "measures": measures}
    return identity("cost", known)


def find_cost(storage: Storage, run: Run) -> Cost | None:
    """The cost of the run's shape, if it was measured on this hardware before."""
    name = f"costs/{cost_key(storage, run)}.json"
    return storage.read_json(name, Cost.from_plain) if storage.exists(name) else None


def measure_cost(store_uri: str, run: Run) -> Cost:
    """The figures of the run's shape. The weights do not matter, so an untrained model is measured.

    Call it where nothing else computes.
    """
    storage = Storage(store_uri)
    found = find_cost(storage, run)
    if found is not None:
        return found
    model = build_model(storage, run, dropout=0.0).eval()
    vocabulary = open_vocabulary(storage, run.vocabulary_id)
    figures = {name: value for measure in MEASURES for name, value in measure(model, vocabulary).items()}
    shared = {key: size_of(own) for key, own in model.frozen().items()}
    cost = Cost(figures, shape_of(storage, run), hardware(), shared)
    storage.write_json(f"costs/{cost_key(storage, run)}.json", cost.to_plain())
    return cost


def measure_all(store_uri: str, runs: Sequence[Run], done: Callable[[], None]) -> None:
    """Measure each run's shape, one after the other, on the reserved probe resource. Results are kept in the store."""
    if not runs:
        return
    # A cluster may reserve a quiet node for this by the custom resource; otherwise any one CPU serves.
    reserved: dict[str, float] = {PROBE: 1} if ray.cluster_resources().get(PROBE) else {}
    task: Any = ray.remote(num_cpus=1, resources=reserved, max_calls=0)(_measure)
    for run in runs:
        ray.get(task.remote(store_uri, run.to_plain()))
        done()


def _measure(store_uri: str, plain: dict[str, Any]) -> None:
    measure_cost(store_uri, Run.from_plain(plain))
