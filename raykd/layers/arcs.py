"""The parser's head: scores of every possible head of a word, and of every relation to that head.

Shapes: B batch, T time (words), D size, H = T + 1 heads (0 the root, h the word h − 1), R relations, A and S sizes of
projections. A labelled arc is one label of its word: number head · R + relation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from typing_extensions import override

from raykd.errors import ExportError
from raykd.layers.dropout import VariationalDropout
from raykd.layers.heads import Head, append_one, full_precision
from raykd.structures import Chain
from raykd.structures.arcs import Arcs
from raykd.structures.labelled_arcs import FORBIDDEN, LabelledArcs

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.layers.graph import Graph, Value
    from raykd.structures import LegalTransitions


class ParserHead(Head):
    """log P(head) + log P(relation | head) of every labelled arc (Dozat & Manning 2017, §2.2).

        arc[i, h] = d_iᵀ U e_h + uᵀ e_h          relation[i, h, r] = [d′_i; 1]ᵀ V_r [e′_h; 1]

    d and e are projections of a word's state as dependent and as head; arcs and relations have separate ones. The
    root's state is a parameter. Each word's heads are normalised separately, without the constraint that they form a
    tree ("local head selection", Wang et al. 2021, case 1b). So are the relations for each head.

    Args:
        inputs: components D of a word's state.
        relations: number of relations R.
        arc_dim: components A of a projection for arcs.
        relation_dim: components S of a projection for relations.
        dropout: dropout of the projections, one mask for all words of a sentence.
    """

    def __init__(self, inputs: int, relations: int, *, arc_dim: int, relation_dim: int, dropout: float = 0.0):
        super().__init__()
        self.root = nn.Parameter(torch.zeros(inputs))
        self.arc_dependent, self.arc_head = (projection(inputs, arc_dim, dropout) for _ in range(2))
        self.relation_dependent, self.relation_head = (
            projection(inputs, relation_dim, dropout) for _ in range(2)
        )
        self.arcs = nn.Parameter(torch.zeros(arc_dim + 1, arc_dim))
        self.relations = nn.Parameter(torch.zeros(relations, relation_dim + 1, relation_dim + 1))

    def forward(
        self, states_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> Chain:
        """Return a chain without transitions over H · R labels: the heads of words are independent.

        Args:
            states_BTD: states of the words.
            lengths_B: words of each sentence.
        """
        arcs_BTH, relations_BTHR = self.scores(states_BTD, lengths_B)
        return LabelledArcs(arcs_BTH.log_softmax(2), relations_BTHR.log_softmax(3), lengths_B).chain()

    def scores(
        self, states_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch time head"], Float[Tensor, "batch time head relation"]]:
        """Return the scores of arcs and of relations.

        Args:
            states_BTD: states of the words.
            lengths_B: words of each sentence.

        Returns:
            Scores of arcs [B, T, H], `FORBIDDEN` for a head outside the sentence and for the word itself, and of
            relations [B, T, H, R].
        """
        heads_BHD = self.with_root(states_BTD)
        arcs_BTH = (
            append_one(self.arc_dependent(states_BTD)) @ self.arcs @ self.arc_head(heads_BHD).transpose(1, 2)
        )
        # Heads first: the second product then gives [B, T, H, R] in memory order, and neither product copies.
        dependent_BTS, head_BHS = (
            append_one(project(states))
            for project, states in ((self.relation_dependent, states_BTD), (self.relation_head, heads_BHD))
        )
        head_part_BHRS = (head_BHS @ self.relations.flatten(0, 1).t()).unflatten(2, self.relations.shape[:2])
        relations_BTHR = (dependent_BTS @ head_part_BHRS.flatten(1, 2).transpose(1, 2)).unflatten(
            2, head_part_BHRS.shape[1:3]
        )
        arcs = Arcs(full_precision(arcs_BTH), lengths_B)
        # Padding may have any head, so that its softmax is finite.
        impossible_BTH = arcs.mask_BT[:, :, None] & ~arcs.mask_BTH
        return arcs.scores_BTH.masked_fill(impossible_BTH, FORBIDDEN), full_precision(relations_BTHR)

    def with_root(self, states_BTD: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch head size"]:
        """Return the states of all possible heads: the root's, then those of the words.

        Args:
            states_BTD: states of the words.
        """
        root_B1D = self.root.expand(len(states_BTD), 1, -1).to(states_BTD.dtype)
        return torch.cat([root_B1D, states_BTD], 1)

    @override
    def add_to(
        self, graph: Graph, states_BTD: Value, lengths_B: Value, legal: LegalTransitions | None = None
    ) -> tuple[Value, Value]:
        raise ExportError("it scores arcs, which have no ONNX form; export a student, which labels words")


def projection(inputs: int, size: int, dropout: float) -> nn.Sequential:
    """Return the projection of a word's state as a dependent or as a head (Dozat & Manning 2017, §2.1)."""
    return nn.Sequential(nn.Linear(inputs, size), nn.LeakyReLU(0.1), VariationalDropout(dropout))
