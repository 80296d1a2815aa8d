"""ONNX graphs of models whose layers are not raykd's, traced by PyTorch's exporter.

Tracing takes seconds; `layers/graph.py` takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING

import torch
from torch import nn
from typing_extensions import override

from raykd.errors import ExportError
from raykd.layers.graph import CHARACTER_INPUTS, INPUTS, SCORES, Graph, quiet_export
from raykd.layers.graph_viterbi import add_best_labels_to

if TYPE_CHECKING:
    from onnx import ModelProto
    from torch import Tensor

    from raykd.structures import LegalTransitions

Scores = Callable[["Tensor", "Tensor", "Tensor", "Tensor"], "Tensor"]


class _Traced(nn.Module):
    def __init__(self, model: nn.Module, scores: Scores):
        super().__init__()
        self.model, self.scores = model, scores

    @override
    def forward(self, pieces: Tensor, piece_lengths: Tensor, first: Tensor, lengths: Tensor) -> Tensor:
        return self.scores(pieces, piece_lengths, first, lengths)


def trace_to_onnx(model: nn.Module, scores: Scores, legal: LegalTransitions | None) -> ModelProto:
    """Trace a function of a model and add the best labels to the graph.

    Args:
        model: the network whose parameters the graph holds.
        scores: from pieces, piece lengths, first pieces and lengths of a batch to the emission scores [B, T, Y]. The
            operations must be the same for all values.
        legal: labellings among which the best one is sought; None: all of them.

    Returns:
        The graph from a batch to labels and scores.

    Raises:
        ExportError: the exporter fails.
    """
    names = [name for name in INPUTS if name not in CHARACTER_INPUTS]
    sizes = {size: torch.export.Dim(size) for name in names for size in INPUTS[name]}
    axes = {name: {axis: sizes[size] for axis, size in enumerate(INPUTS[name])} for name in names}
    places_BT = torch.arange(5).expand(3, 5)
    example = (
        torch.ones(3, 7, dtype=torch.long),
        torch.tensor([7, 6, 5]),
        places_BT,
        torch.tensor([5, 2, 3]),
    )
    try:
        # The exporter prints the graph as far as it got.
        with torch.no_grad(), quiet_export(), redirect_stderr(StringIO()), redirect_stdout(StringIO()):
            program = torch.onnx.export(
                _Traced(model, scores).eval(), example, dynamo=True, dynamic_shapes=axes,
                input_names=names, output_names=[SCORES], verbose=False,
            )  # fmt: skip
    # The exporter and the model are foreign code, which may raise anything.
    except Exception as error:
        raise ExportError(f"PyTorch's exporter cannot export this model ({_reason(error)})") from error
    model_proto: ModelProto = program.model_proto  # type: ignore[union-attr]
    # Shapes of intermediate values, which are wrong once a weight is transposed for quantization.
    del model_proto.graph.value_info[:]
    decoding = Graph("labels_")
    decoding.add_labels_to(model_proto, add_best_labels_to(decoding, SCORES, "lengths", legal))
    return model_proto


def _reason(error: BaseException) -> str:
    """Return the first line of the error at the beginning of a chain of errors."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).strip().split("\n")[0].rstrip(".")
