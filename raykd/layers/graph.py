"""A model as an ONNX graph, built node by node.

A layer that can be exported has a method `add_to(graph, …)` next to its `forward`. It adds nodes for the same
computation: its arguments are names of values of the graph, and it returns the name of its output. Names have the shape
suffixes of the tensors that they stand for.
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
"""Name of a value of a graph."""
Kind = tuple[int, Sequence[int | str] | None]
"""Element type of a value, by ONNX's number for it, and its shape; None: any shape."""
Attribute = int | float | str | Sequence[int] | onnx.GraphProto
"""An attribute of a node: an argument of its operator that is no value of the graph."""

Dtype = Literal["float32", "int32", "int64"]
_TYPES = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64}

OPSET, IR_VERSION = 20, 10
"""Versions of ONNX's operators and format; ONNX Runtime reads them from release 1.17 on."""

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
"""Inputs of a graph and their axes: the arrays of a `TokenBatch`, all int64. The last two only where the model reads
characters."""
CHARACTER_INPUTS = ("characters", "character_lengths")
LABELS, SCORES = "labels", "scores"
"""Outputs of a graph: the best labels, int64 [B, T], 0 on padding; and the emission scores, float32 [B, T, Y]."""


@dataclass(frozen=True)
class Batch:
    """Names of the inputs of a graph, under the field names of a `TokenBatch`."""

    pieces_BP: Value = "pieces"
    piece_lengths_B: Value = "piece_lengths"
    first_BT: Value = "first"
    lengths_B: Value = "lengths"
    characters_BTC: Value = "characters"
    character_lengths_BT: Value = "character_lengths"


def graph_inputs(batch: TokenBatch, names: Iterable[str] = INPUTS) -> dict[str, np.ndarray]:
    """Return the inputs of a graph for one batch.

    Args:
        batch: encoded sentences.
        names: inputs that the graph reads, keys of `INPUTS`.

    Raises:
        ValueError: the batch lacks one of them.
    """
    arrays = {field.default: getattr(batch, field.name) for field in fields(Batch)}
    inputs = {name: arrays[name] for name in names}
    missing = [name for name, value in inputs.items() if value is None]
    if missing:
        raise ValueError(
            f"the graph reads {', '.join(missing)}, which the batch lacks: encode it with its characters"
        )
    return {name: value.cpu().numpy() for name, value in inputs.items() if value is not None}


@contextmanager
def quiet_export() -> Iterator[None]:
    """Silence warnings, and log records below the level of errors: exporters write both."""
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
    """A growing ONNX graph.

    Args:
        prefix: beginning of the names of its values, which must differ from those of a surrounding graph.
    """

    def __init__(self, prefix: str = ""):
        self._prefix = prefix
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[TensorProto] = []

    def add(self, op: str, *inputs: Value, **attributes: Attribute) -> Value:
        """Add a node and return the name of the output.

        Args:
            op: ONNX operator of the node.
            *inputs: names of the operator's inputs.
            **attributes: attributes of the operator.
        """
        return self.add_with_outputs(op, *inputs, outputs=1, **attributes)[0]

    def add_with_outputs(self, op: str, *inputs: Value, outputs: int, **attributes: Attribute) -> list[Value]:
        """Add a node with several outputs and return the names.

        Args:
            op: ONNX operator of the node.
            *inputs: names of the operator's inputs.
            outputs: number of outputs.
            **attributes: attributes of the operator.
        """
        name = f"{self._prefix}{op}_{len(self._nodes)}"
        names = [f"{name}_{place}" for place in range(outputs)]
        node = helper.make_node(op, list(inputs), names, name=name)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in sorted(attributes.items()))
        self._nodes.append(node)
        return names

    def constant(self, value: Tensor | np.ndarray | list[int] | int | float) -> Value:
        """Add a constant and return the name.

        Args:
            value: a tensor, stored in its own type (float64 as float32), or Python numbers, stored as int64 or float32.
        """
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)  # type: ignore[union-attr]
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = f"{self._prefix}constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def cast(self, value: Value, dtype: Dtype) -> Value:
        """Convert a value to a type."""
        return self.add("Cast", value, to=_TYPES[dtype])

    def linear(self, layer: nn.Linear, inputs: Value) -> Value:
        """Apply a linear layer to the last axis."""
        product = self.add("MatMul", inputs, self.constant(layer.weight.T))
        return self.add("Add", product, self.constant(layer.bias))

    def norm(self, layer: nn.LayerNorm, inputs: Value) -> Value:
        """Apply layer normalisation to the last axis."""
        weights = self.constant(layer.weight), self.constant(layer.bias)
        return self.add("LayerNormalization", inputs, *weights, epsilon=layer.eps)

    def unsqueeze(self, value: Value, *axes: int) -> Value:
        """Insert axes of length 1."""
        return self.add("Unsqueeze", value, self.constant(list(axes)))

    def reshape(self, value: Value, *sizes: int | Value) -> Value:
        """Change the shape of a value.

        Args:
            value: name of the value.
            *sizes: a number for each axis, 0 to keep its size, -1 for the rest; or the name of a value [1].
        """
        if all(isinstance(size, int) for size in sizes):
            return self.add("Reshape", value, self.constant([int(size) for size in sizes]))
        parts = [size if isinstance(size, str) else self.constant([size]) for size in sizes]
        return self.add("Reshape", value, self.add("Concat", *parts, axis=0))

    def size(self, value: Value, axis: int) -> Value:
        """Return the length of an axis, [1]."""
        return self.add("Shape", value, start=axis, end=axis + 1)

    def positions(self, value: Value, axis: int) -> Value:
        """Return 0, 1, … along an axis."""
        return self.add(
            "Range", self.constant(0), self.add("Squeeze", self.size(value, axis)), self.constant(1)
        )

    def length_mask(self, positions_T: Value, lengths_B: Value) -> Value:
        """Return a mask [B, T] of the positions within the lengths."""
        return self.add("Less", positions_T, self.unsqueeze(lengths_B, 1))

    def take(self, vectors_BPD: Value, places_BT: Value) -> Value:
        """Return the vectors [B, T, D] at given places of each sentence.

        Args:
            vectors_BPD: name of the vectors.
            places_BT: name of the places, from 0 to P − 1.
        """
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
        """Apply a step to the rows of an array in turn, carrying a state.

        Args:
            step: step(graph, state, row) adds the nodes of one step and returns the next state and a row of the output.
            state: name of the first state.
            rows: name of the array, with the rows along its first axis.
            dtype: type of states, rows and output.
            reverse: go from the last row to the first.

        Returns:
            Name of the output, with one row for each row of `rows`.
        """
        body = Graph(f"{self._prefix}scan_{len(self._nodes)}_")
        state_before, row = f"{body._prefix}state", f"{body._prefix}row"
        state_after, output = step(body, state_before, row)
        kind = (_TYPES[dtype], None)
        inner = body.graph_proto("step", {state_before: kind, row: kind}, {state_after: kind, output: kind})
        directions = {"scan_input_directions": [int(reverse)], "scan_output_directions": [int(reverse)]}
        return self.add_with_outputs(
            "Scan", state, rows, outputs=2, body=inner, num_scan_inputs=1, **directions
        )[1]

    def graph_proto(
        self, name: str, inputs: Mapping[str, Kind], outputs: Mapping[str, Kind]
    ) -> onnx.GraphProto:
        """Return the nodes added so far as a graph between inputs and outputs.

        Args:
            name: name of the graph.
            inputs: type and shape of each input.
            outputs: type and shape of each output.
        """
        input_infos, output_infos = (
            [helper.make_tensor_value_info(value, *kind) for value, kind in side.items()]
            for side in (inputs, outputs)
        )
        return helper.make_graph(self._nodes, name, input_infos, output_infos, self._constants)

    def add_labels_to(self, model: onnx.ModelProto, labels_BT: Value) -> None:
        """Append the nodes to a finished model and make the best labels the first output.

        Args:
            model: a model with the scores as its only output, whose values the nodes read.
            labels_BT: name of the best labels.
        """
        self._nodes.append(helper.make_node("Identity", [labels_BT], [LABELS], name=LABELS))
        (scores,) = model.graph.output
        axes = [axis.dim_param or axis.dim_value for axis in scores.type.tensor_type.shape.dim[:2]]
        model.graph.output.insert(0, helper.make_tensor_value_info(LABELS, TensorProto.INT64, axes))
        model.graph.node.extend(self._nodes)
        model.graph.initializer.extend(self._constants)

    def model_proto(
        self,
        labels_BT: Value,
        scores_BTY: Value,
        *,
        unit: Literal["word", "sentence"],
        reads_characters: bool,
    ) -> onnx.ModelProto:
        """Return the finished model from a batch of sentences to labels and scores.

        Args:
            labels_BT: name of the best labels.
            scores_BTY: name of the emission scores.
            unit: one label for each word, or for each sentence.
            reads_characters: keep the inputs that only a model with characters reads.
        """
        for value, name in ((labels_BT, LABELS), (scores_BTY, SCORES)):
            self._nodes.append(helper.make_node("Identity", [value], [name], name=name))
        label = ("batch", "word" if unit == "word" else 1)
        inputs = {
            k: (TensorProto.INT64, v)
            for k, v in INPUTS.items()
            if reads_characters or k not in CHARACTER_INPUTS
        }
        outputs = {LABELS: (TensorProto.INT64, label), SCORES: (TensorProto.FLOAT, (*label, "tag"))}
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(
            self.graph_proto("model", inputs, outputs),
            opset_imports=[opset],
            ir_version=IR_VERSION,
            producer_name="raykd",
        )
