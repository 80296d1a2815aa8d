"""A model of someone else's code as an ONNX graph, traced by PyTorch's exporter. Takes seconds, where `layers/graph.py`
takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import nn

from raykd.errors import ExportError
from raykd.layers.graph import INPUTS, SCORES, SPELLING, Graph, without_notes
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

    def forward(self, pieces: Tensor, piece_lengths: Tensor, first: Tensor, lengths: Tensor) -> Tensor:
        return self.scores(pieces, piece_lengths, first, lengths)


def traced(model: nn.Module, scores: Scores, legal: LegalTransitions | None) -> ModelProto:
    """The graph of `scores`, which computes with `model`, and of the best labels: from pieces, piece lengths, first
    pieces and lengths of a batch to labels and scores. Which operations it does must not depend on their values.

    Raises:
        ExportError: the exporter fails.
    """
    names = [name for name in INPUTS if name not in SPELLING]
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
        with torch.no_grad(), without_notes():
            program = torch.onnx.export(
                _Traced(model, scores).eval(), example, dynamo=True, dynamic_shapes=axes,
                input_names=names, output_names=[SCORES], verbose=False,
            )  # fmt: skip
    # Someone else's code may fail in any way: the model has no graph then.
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        raise ExportError(f"PyTorch's exporter gives no ONNX graph of this model ({reason})") from error
    graph: ModelProto = program.model_proto  # type: ignore[union-attr]
    # The shapes of what is computed on the way, which no longer fit where a weight is transposed to be quantized.
    del graph.graph.value_info[:]
    _add_labels(graph, legal)
    return graph


def _add_labels(model: ModelProto, legal: LegalTransitions | None) -> None:
    """Add the best labels by its scores to the outputs of a traced model."""
    graph = Graph("labels_")
    graph.add_labels_to(model, add_best_labels_to(graph, SCORES, "lengths", legal))
