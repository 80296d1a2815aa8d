"""The second-order parser's head, which also scores pairs of arcs: siblings, and a word with its grandparent.

Shapes: B batch, T time (words), D size, H = T + 1 heads (0 the root, h the word h − 1), R relations, K rank of a pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn
from typing_extensions import override

from raykd.errors import ExportError
from raykd.layers.arcs import ParserHead, projection
from raykd.layers.heads import Head
from raykd.structures import head_log_marginals, mean_field
from raykd.structures.arcs import Arcs
from raykd.structures.labelled_arcs import LabelledArcs

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.layers.graph import Graph, Value
    from raykd.structures import Chain, LegalTransitions


class SecondOrderParserHead(Head):
    """Scores of arcs and of pairs of arcs, from which mean field computes P(head) (Wang & Tu, AACL 2020, §2).

        sib[h, t, u] = Σ_k a_h[k] b_t[k] b_u[k]          words t and u under head h
        gp[m, t, g] = Σ_k c_m[k] d_t[k] e_g[k]           word t under word m, which is under head g

    The scores of single arcs and of relations are those of `ParserHead`. The factors a to e are projections of a word's
    state, one for each place in a pair, each followed by a linear map: the decomposition of a tensor over three words
    into K terms (Wang et al., ACL 2019, §3.2). Siblings share b, so their score is symmetric. All pairs score zero
    before training, where the head equals `ParserHead`.

    Args:
        inputs: components D of a word's state.
        relations: number of relations R.
        arc_dim: components of a projection for arcs.
        relation_dim: components of a projection for relations.
        pair_dim: components of a projection for pairs, and terms K of a pair's score.
        iterations: iterations of mean field.
        dropout: dropout of the projections, one mask for all words of a sentence.
    """

    def __init__(
        self,
        inputs: int,
        relations: int,
        *,
        arc_dim: int,
        relation_dim: int,
        pair_dim: int,
        iterations: int,
        dropout: float = 0.0,
    ):
        super().__init__()
        sizes = {"arc_dim": arc_dim, "relation_dim": relation_dim, "dropout": dropout}
        self.first_order, self.iterations = ParserHead(inputs, relations, **sizes), iterations
        places = ("sibling_head", "sibling", "grandparent_middle", "grandparent_word", "grandparent")
        self.pairs = nn.ModuleDict(
            {
                place: nn.Sequential(*projection(inputs, pair_dim, dropout), nn.Linear(pair_dim, pair_dim))
                for place in places
            }
        )
        for place in ("sibling_head", "grandparent"):
            # Only one factor of each product is zero: if all were, none would have a gradient.
            for parameter in self.pairs[place][-1].parameters():  # type: ignore[index]
                nn.init.zeros_(parameter)

    def forward(
        self, states_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> Chain:
        """Return a chain without transitions over H · R labels: the heads of words are independent.

        Args:
            states_BTD: states of the words.
            lengths_B: words of each sentence.
        """
        arcs_BTH, relations_BTHR = self.first_order.scores(states_BTD, lengths_B)
        siblings_BHTT, grandparents_BTTH = self.pair_scores(states_BTD)
        arcs = mean_field(
            Arcs(arcs_BTH, lengths_B),
            siblings_BHTT=siblings_BHTT,
            grandparents_BTTH=grandparents_BTTH,
            iterations=self.iterations,
        )
        return LabelledArcs(head_log_marginals(arcs), relations_BTHR.log_softmax(3), lengths_B).chain()

    def pair_scores(
        self, states_BTD: Float[Tensor, "batch time size"]
    ) -> tuple[Float[Tensor, "batch head time time"], Float[Tensor, "batch time time head"]]:
        """Return the scores of all pairs of arcs, impossible ones included.

        Args:
            states_BTD: states of the words.

        Returns:
            Scores sib[b, h, t, u] of siblings and gp[b, m, t, g] of grandparents.
        """
        heads_BHD = self.first_order.with_root(states_BTD)
        a_BHK, e_BHK = (self.pairs[place](heads_BHD) for place in ("sibling_head", "grandparent"))
        b_BTK, c_BTK, d_BTK = (
            self.pairs[place](states_BTD) for place in ("sibling", "grandparent_middle", "grandparent_word")
        )
        return _trilinear(a_BHK, b_BTK, b_BTK), _trilinear(c_BTK, d_BTK, e_BHK)

    @override
    def add_to(
        self, graph: Graph, states_BTD: Value, lengths_B: Value, legal: LegalTransitions | None = None
    ) -> tuple[Value, Value]:
        raise ExportError("it scores arcs, which have no ONNX form; export a student, which labels words")


def _trilinear(x_BIK: Tensor, y_BJK: Tensor, z_BLK: Tensor) -> Tensor:
    """Return Σ_k x[i, k] y[j, k] z[l, k] for all i, j and l, [B, I, J, L]."""
    xy_BIJK = x_BIK[:, :, None] * y_BJK[:, None]
    # One matrix product per sentence: broadcasting would do I of them, and copy z for each.
    return (xy_BIJK.flatten(1, 2) @ z_BLK.transpose(1, 2)).unflatten(1, xy_BIJK.shape[1:3])
