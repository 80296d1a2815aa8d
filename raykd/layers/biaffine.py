"""A head over spans: every pair of a first and a last word, for every label.

Shapes: B batch, T time (words), D size, S biaffine size, L labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from typing_extensions import override

from raykd.errors import ExportError
from raykd.layers.dropout import Dropout
from raykd.layers.heads import Head, append_one, full_precision
from raykd.structures import Spans, SpanTags

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.layers.graph import Graph, Value
    from raykd.structures import LegalTransitions


class BiaffineHead(Head):
    """score[i, j, l] = [s_i; 1]ᵀ U_l [e_j; 1] (Yu et al., ACL 2020, §3), s and e projections of the words' states.

    s projects a word as the first of an entity, e as the last. The appended ones give the linear terms and the bias of
    the paper's equation. Scores are relative to "no entity", which scores 0. U starts at zero (Dozat &
    Manning 2017), where all segmentations are equally probable.

    Args:
        inputs: components D of a word's state.
        tags: BIOES tags of the entities' labels; they also give the number of labels L.
        size: components S of a projection.
        dropout: dropout of the projections.
    """

    def __init__(self, inputs: int, tags: SpanTags, *, size: int, dropout: float = 0.0):
        super().__init__()
        self.first, self.last = (
            nn.Sequential(nn.Linear(inputs, size), nn.ReLU(), Dropout(dropout)) for _ in range(2)
        )
        self.weights = nn.Parameter(torch.zeros(tags.labels, size + 1, size + 1))
        self.tags = tags

    @override
    def forward(
        self, states_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> Spans:
        first_BTS, last_BTS = append_one(self.first(states_BTD)), append_one(self.last(states_BTD))
        scores_BLTT = (first_BTS[:, None] @ self.weights) @ last_BTS[:, None].transpose(2, 3)
        return Spans(full_precision(scores_BLTT.permute(0, 2, 3, 1)), lengths_B, self.tags)

    @override
    def add_to(
        self, graph: Graph, states_BTD: Value, lengths_B: Value, legal: LegalTransitions | None = None
    ) -> tuple[Value, Value]:
        raise ExportError("it scores spans, which have no ONNX form; export a model that labels words")
