"""A model as an ONNX graph, built node by node.

A layer that can be exported has `add_to(graph, …)` next to its `forward`: the same computation, from names of values of
the graph to the name of its output. Names have the shape suffixes of the tensors that they stand for.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from torch import Tensor, nn

    from raykd.corpora.encoded_text import TokenBatch

Value = str
"""The name of a value of a graph."""
Kind = tuple[int, Sequence[int | str] | None]
"""The type of a value's numbers, as ONNX counts types, and its shape; None: of any."""
Attribute = int | float | str | Sequence[int] | onnx.GraphProto
"""What a node's operator is told beside its inputs."""

Dtype = Literal["float32", "int32", "int64"]
_TYPES = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64}

OPSET, IR_VERSION = 20, 10
"""ONNX Runtime reads these from 1.17 on."""

INPUTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pieces": ("batch", "piece"),
        "piece_lengths": ("batch",),
        "first": ("batch", "word"),
        "lengths": ("batch",),
        "characters": ("batch", "word", "character"),
        "character_lengths": ("batch", "word"),
    }
)
"""What a graph reads: the numbers of a `TokenBatch`, all int64. The last two where the model reads characters."""
SPELLING = ("characters", "character_lengths")
LABELS, SCORES = "labels", "scores"
"""What it gives: the best labels, int64 [B, T], 0 on padding; and their emission scores, float32 [B, T, Y]."""


@dataclass(frozen=True)
class Batch:
    """The inputs of a graph, under the names of a `TokenBatch`."""

    pieces_BP: Value = "pieces"
    piece_lengths_B: Value = "piece_lengths"
    first_BT: Value = "first"
    lengths_B: Value = "lengths"
    characters_BTC: Value = "characters"
    character_lengths_BT: Value = "character_lengths"


def numbers_of(batch: TokenBatch, names: Iterable[str] = INPUTS) -> dict[str, np.ndarray]:
    """The inputs of a graph, for one batch. Raises ValueError where it has not what the graph reads."""
    own = {field.default: getattr(batch, field.name) for field in fields(Batch)}
    numbers = {name: own[name] for name in names}
    lacking = [name for name, value in numbers.items() if value is None]
    if lacking:
        raise ValueError(
            f"the graph reads {', '.join(lacking)}, the batch has none: encode it with its characters"
        )
    return {name: value.cpu().numpy() for name, value in numbers.items() if value is not None}


@contextmanager
def without_notes() -> Iterator[None]:
    """For exporters: without warnings, and without what libraries log on the root logger below the level of errors."""
    root, silent, disabled = logging.getLogger(), logging.NullHandler(), logging.root.manager.disable
    # Python's logging.warning() adds a handler of its own to a root logger that has none.
    root.addHandler(silent)
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        root.removeHandler(silent)


class Graph:
    """A graph that grows. `prefix` begins its values' names, which must differ from those of a graph around it."""

    def __init__(self, prefix: str = ""):
        self._prefix = prefix
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[TensorProto] = []

    def add(self, op: str, *inputs: Value, **attributes: Attribute) -> Value:
        """Add a node of the operator `op`; the name of its output."""
        return self.several(op, *inputs, outputs=1, **attributes)[0]

    def several(self, op: str, *inputs: Value, outputs: int, **attributes: Attribute) -> list[Value]:
        """Add a node with several outputs; their names."""
        name = f"{self._prefix}{op}_{len(self._nodes)}"
        names = [f"{name}_{place}" for place in range(outputs)]
        node = helper.make_node(op, list(inputs), names, name=name)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in sorted(attributes.items()))
        self._nodes.append(node)
        return names

    def constant(self, value: Tensor | np.ndarray | list[int] | int | float) -> Value:
        """A constant: a tensor with its own type, Python's integers as int64, its other numbers as float32."""
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)  # type: ignore[union-attr]
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = f"{self._prefix}constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def cast(self, value: Value, dtype: Dtype) -> Value:
        """`value` in another type."""
        return self.add("Cast", value, to=_TYPES[dtype])

    def linear(self, layer: nn.Linear, inputs: Value) -> Value:
        """A linear layer on the last axis."""
        product = self.add("MatMul", inputs, self.constant(layer.weight.T))
        return self.add("Add", product, self.constant(layer.bias))

    def norm(self, layer: nn.LayerNorm, inputs: Value) -> Value:
        """Layer normalisation of the last axis."""
        weights = self.constant(layer.weight), self.constant(layer.bias)
        return self.add("LayerNormalization", inputs, *weights, epsilon=layer.eps)

    def unsqueeze(self, value: Value, *axes: int) -> Value:
        """`value` with axes of length 1."""
        return self.add("Unsqueeze", value, self.constant(list(axes)))

    def reshape(self, value: Value, *sizes: int | Value) -> Value:
        """`value` in another shape: each size is a number, 0 for the axis as it is, -1 for the rest, or a value [1]."""
        if all(isinstance(size, int) for size in sizes):
            return self.add("Reshape", value, self.constant([int(size) for size in sizes]))
        parts = [size if isinstance(size, str) else self.constant([size]) for size in sizes]
        return self.add("Reshape", value, self.add("Concat", *parts, axis=0))

    def size(self, value: Value, axis: int) -> Value:
        """The length of an axis, [1]."""
        return self.add("Shape", value, start=axis, end=axis + 1)

    def places(self, value: Value, axis: int) -> Value:
        """0, 1, … along an axis."""
        return self.add(
            "Range", self.constant(0), self.add("Squeeze", self.size(value, axis)), self.constant(1)
        )

    def inside(self, places_T: Value, lengths_B: Value) -> Value:
        """Which places [B, T] are within the lengths."""
        return self.add("Less", places_T, self.unsqueeze(lengths_B, 1))

    def take(self, vectors_BPD: Value, places_BT: Value) -> Value:
        """The vectors [B, T, D] at the places of each sentence."""
        return self.add("GatherND", vectors_BPD, self.unsqueeze(places_BT, 2), batch_dims=1)

    def scan(
        self,
        step: Callable[[Graph, Value, Value], tuple[Value, Value]],
        state: Value,
        rows: Value,
        *,
        dtype: Dtype,
        reverse: bool = False,
    ) -> Value:
        """Walk along the first axis of `rows`, or back: step(graph, state, row) gives the next state and a row of the
        output. All of them have the same `dtype`.
        """
        body = Graph(f"{self._prefix}scan_{len(self._nodes)}_")
        before, row = f"{body._prefix}state", f"{body._prefix}row"
        after, output = step(body, before, row)
        kind = (_TYPES[dtype], None)
        inner = body.graph("step", {before: kind, row: kind}, {after: kind, output: kind})
        way = {"scan_input_directions": [int(reverse)], "scan_output_directions": [int(reverse)]}
        return self.several("Scan", state, rows, outputs=2, body=inner, num_scan_inputs=1, **way)[1]

    def graph(self, name: str, inputs: Mapping[str, Kind], outputs: Mapping[str, Kind]) -> onnx.GraphProto:
        """What it is now, between inputs and outputs: name → (type, shape)."""
        begin, end = (
            [helper.make_tensor_value_info(value, *kind) for value, kind in side.items()]
            for side in (inputs, outputs)
        )
        return helper.make_graph(self._nodes, name, begin, end, self._constants)

    def add_labels_to(self, model: onnx.ModelProto, labels_BT: Value) -> None:
        """Add its nodes, which read values of `model`, to that model, whose first output the labels become; its other
        one is the scores.
        """
        self._nodes.append(helper.make_node("Identity", [labels_BT], [LABELS], name=LABELS))
        (scores,) = model.graph.output
        axes = [axis.dim_param or axis.dim_value for axis in scores.type.tensor_type.shape.dim[:2]]
        model.graph.output.insert(0, helper.make_tensor_value_info(LABELS, TensorProto.INT64, axes))
        model.graph.node.extend(self._nodes)
        model.graph.initializer.extend(self._constants)

    def model(
        self,
        labels_BT: Value,
        scores_BTY: Value,
        *,
        unit: Literal["word", "sentence"],
        spelling: bool,
    ) -> onnx.ModelProto:
        """The finished model, which gives labels and scores of a batch of sentences."""
        for value, name in ((labels_BT, LABELS), (scores_BTY, SCORES)):
            self._nodes.append(helper.make_node("Identity", [value], [name], name=name))
        label = ("batch", "word" if unit == "word" else 1)
        inputs = {k: (TensorProto.INT64, v) for k, v in INPUTS.items() if spelling or k not in SPELLING}
        outputs = {LABELS: (TensorProto.INT64, label), SCORES: (TensorProto.FLOAT, (*label, "tag"))}
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(
            self.graph("model", inputs, outputs),
            opset_imports=[opset],
            ir_version=IR_VERSION,
            producer_name="raykd",
        )
