"""What a shape costs: parameters, bytes, latency. It depends on the shape alone, so it is known before training.

Sizes are the same everywhere; what is timed holds for the processor of the node that timed it, and is kept by its name.
A new cost is a function here, a line of `COMPUTED` or `TIMED`, and an entry of `raykd/figures.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import ray
import torch
from ray.exceptions import RayTaskError, TaskUnschedulableError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from torch.nn import Parameter

from raykd.corpora.pretrained import HFVocabulary
from raykd.errors import ExportError, PlacementError, StoreError
from raykd.figures import BYTES, PARAMETERS, PRUNED, UNPRUNED
from raykd.identity import identity
from raykd.layers import Ensemble, Model, Tagger
from raykd.layers.pointer_generator import PointerGenerator
from raykd.results import Cost
from raykd.runs.cluster import topology
from raykd.runs.data import labels_of
from raykd.runs.deployed import Session, deployed
from raykd.runs.growth import places
from raykd.runs.latency import BATCH, hardware, labelling, synthetic_batch, time_in_turns, time_training
from raykd.runs.models import build_model, model_config
from raykd.runs.nodes import Nodes
from raykd.runs.placement import PROBE, check_target, latency_node
from raykd.runs.processor import processor
from raykd.runs.progress import Listener
from raykd.runs.resources import LatencyTarget, Resources, targeted
from raykd.runs.run import Run
from raykd.runs.topology import Group, Node, Topology
from raykd.runs.vocabularies import StoredVocabulary, open_vocabulary
from raykd.storage import Storage

FORMAT = 6


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
    if isinstance(model, PointerGenerator):
        # In training the steps are given, here one for each word.
        steps = {"steps_BS": torch.zeros_like(batch.first_BT), "step_lengths_B": batch.lengths_B}
        batch = replace(batch, **steps)
    seconds = time_training(deepcopy(model), batch)
    return {"training_pieces_per_s": round(int(batch.piece_lengths_B.sum()) / seconds, 1)}


Measure = Callable[[Model, StoredVocabulary], dict[str, float]]
COMPUTED: Sequence[Measure] = (_size,)
"""Each gives figures of an untrained model, which is not to be changed, by their names in `raykd/figures.py`. These are
the same on every machine."""
TIMED: Sequence[Measure] = (_latency, _training)
"""The same, of what depends on the machine."""


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
        "tags": len(labels_of(storage.uri, run)),
    }


def shape_key(storage: Storage, run: Run) -> str:
    """Where the sizes of a run's shape are kept: two runs of one shape have the same."""
    return _key(storage, run, COMPUTED)


def find_cost(storage: Storage, run: Run, on: Mapping[str, Any] | None = None) -> Cost | None:
    """The cost of the run's shape, if it was measured before on this hardware (by default that of this process)."""
    timed = _found(storage, _key(storage, run, TIMED, hardware=on or hardware()))
    sizes = _found(storage, shape_key(storage, run)) if timed else None
    if timed is None or sizes is None:
        return None
    return Cost({**sizes.figures, **timed.figures}, sizes.shape, timed.hardware, sizes.shared)


def measure_cost(store_uri: str, run: Run) -> Cost:
    """The figures of the run's shape. The weights do not matter, so an untrained model is measured.

    Call it where nothing else computes.
    """
    storage = Storage(store_uri)
    found = find_cost(storage, run)
    if found is not None:
        return found
    model = build_model(storage, run, dropout=0.0).eval()
    vocabulary, shape = open_vocabulary(storage, run.vocabulary_id), shape_of(storage, run)
    shared = {key: size_of(own) for key, own in model.frozen().items()}
    sizes = Cost(_measured(COMPUTED, model, vocabulary), shape, {}, shared)
    timed = Cost(_measured(TIMED, model, vocabulary), shape, hardware())
    storage.write_json(_name(shape_key(storage, run)), sizes.to_plain())
    storage.write_json(_name(_key(storage, run, TIMED, hardware=timed.hardware)), timed.to_plain())
    return Cost({**sizes.figures, **timed.figures}, shape, timed.hardware, shared)


def measure_all(
    store_uri: str,
    runs: Sequence[Run],
    *,
    resources: Resources,
    cluster: Topology,
    listener: Listener,
    nodes: Nodes | None = None,
) -> dict[str, Any]:
    """Measure each run's shape, one after the other, on one node: the one that `resources.latency` names. Results are
    kept in the store. Returns the hardware of this node. Where one of the `nodes` is to blame for a fault, another one
    measures.

    Raises:
        PlacementError: there is no such node, or it went away.
    """
    while True:
        try:
            return _measured_on_one(store_uri, runs, resources, cluster, listener, nodes)
        except (StoreError, RayTaskError):
            if nodes is None or not nodes.ask(again=True):
                raise


def _measured_on_one(
    store_uri: str,
    runs: Sequence[Run],
    resources: Resources,
    cluster: Topology,
    listener: Listener,
    nodes: Nodes | None,
) -> dict[str, Any]:
    target = resources.latency
    if cluster.grows and latency_node(target, topology()) is None:
        ask = targeted(target or LatencyTarget())
        places("latency", Group(ask), 1, cluster, listener, minutes=resources.wait_minutes)
    if nodes is not None:
        nodes.ask()
    now = replace(topology(without=nodes.avoid if nodes is not None else ()), may_add=())
    check_target(target, now)
    node = latency_node(target, now)
    assert node is not None
    on = hardware(_on(node, processor))
    storage = Storage(store_uri)
    todo = [run for run in runs if find_cost(storage, run, on) is None]
    listener.begin("latency", len(runs), done=len(runs) - len(todo))
    try:
        for run in todo:
            takes = _takes(target, node) | ({"CPU": 0.0} if cluster.slots_asleep else {})
            _on(node, _measure, store_uri, run.to_plain(), takes=takes)
            listener.advance("latency")
    except TaskUnschedulableError as error:
        raise PlacementError("the node on which latency is measured went away; start it again") from error
    return on


def _takes(target: LatencyTarget | None, node: Node) -> dict[str, float]:
    """What a measurement takes of its node; of a quiet one all, so that two sweeps do not disturb each other."""
    probe = {PROBE: 1.0} if target is None and node.resources.get(PROBE) else {}
    return targeted(target or LatencyTarget()) | probe


def _on(
    node: Node, function: Callable[..., Any], *arguments: Any, takes: Mapping[str, float] | None = None
) -> Any:
    """What `function` gives on this node."""
    if takes is None and node.id == ray.get_runtime_context().get_node_id():
        return function(*arguments)
    others = {name: amount for name, amount in (takes or {}).items() if name != "CPU"}
    here: Any = NodeAffinitySchedulingStrategy(node.id, soft=False)
    task: Any = ray.remote(
        num_cpus=(takes or {}).get("CPU", 0), resources=others, scheduling_strategy=here, max_calls=0
    )(function)
    return ray.get(task.remote(*arguments))


def _measure(store_uri: str, plain: dict[str, Any]) -> None:
    measure_cost(store_uri, Run.from_plain(plain))


def _measured(measures: Sequence[Measure], model: Model, vocabulary: StoredVocabulary) -> dict[str, float]:
    return {name: value for measure in measures for name, value in measure(model, vocabulary).items()}


def _key(storage: Storage, run: Run, measures: Sequence[Measure], **where: Any) -> str:
    # A cost that lacks a figure which was added since is another one.
    names = [measure.__name__ for measure in measures]
    return identity("cost", {"format": FORMAT, "shape": shape_of(storage, run), "measures": names, **where})


def _name(key: str) -> str:
    return f"costs/{key}.json"


def _found(storage: Storage, key: str) -> Cost | None:
    return storage.find_json(_name(key), Cost.from_plain)
