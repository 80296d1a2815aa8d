"""A batch of dependency arcs: each word of a sentence has one head, another word or the root.

Shapes: B batch, T time (words, padded), H = T + 1 heads.
Head 0 is the root, head j the word j − 1. An analysis is one head for each word and scores the sum of its arcs:

    score(heads) = Σ_t scores[t, heads[t]]

A model's heads are independent: every word takes any head but itself (Dozat & Manning 2017; Wang et al., ACL 2021,
cases 1b, 2b). Trees are the analyses in which the heads of each word lead to the root, and the root is the head of
exactly one word, as Universal Dependencies demand; arcs may cross (`best_trees`). A score of −∞ forbids an arc.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from raykd.structures.log_space import log_sum
from raykd.structures.padding import PaddedBatch, check_form, check_lengths

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@dataclass(frozen=True, eq=False)
class Arcs(PaddedBatch):
    """Scores of all possible arcs of a batch of ragged sentences; checked once, here.

    Half-precision scores are converted to float32.

    Attributes:
        scores_BTH: Floating point [B, T, T + 1]; [b, t, h] is the score of word t under head h. Values beyond a
            sentence's length, and of a word under itself, are not read.
        lengths_B: Integers [B] in 1..T.

    Raises:
        ValueError: Shapes, dtypes, devices or lengths do not fit together.
    """

    scores_BTH: Tensor
    lengths_B: Tensor
    rows_field: ClassVar[str] = "scores_BTH"

    def __post_init__(self) -> None:
        _check(self.scores_BTH, self.lengths_B)
        self.widen(self.rows_field)

    @property
    def mask_BTH(self) -> Bool[Tensor, "batch time head"]:
        """True for possible arcs: from a word to the root or to another word of its sentence."""
        heads_H = torch.arange(self.time + 1, device=self.device)
        not_itself_TH = heads_H != heads_H[1:, None]
        return not_itself_TH & (heads_H <= self.lengths_B[:, None])[:, None] & self.mask_BT[:, :, None]

    def possible(self) -> Float[Tensor, "batch time head"]:
        """Return the scores, −∞ for impossible arcs."""
        return torch.where(self.mask_BTH, self.scores_BTH, -inf)


def head_log_marginals(arcs: Arcs) -> Float[Tensor, "batch time head"]:
    """Return log p(the head of t is h) [B, T, H] of independent heads. Differentiable.

    Impossible arcs have −∞, as have all arcs of a sentence in which a word has no possible head.

    Args:
        arcs: Scores of all arcs.
    """
    scores_BTH = arcs.possible()
    total_BT = log_sum(scores_BTH, 2)
    has_heads_B = ((total_BT != -inf) | ~arcs.mask_BT).all(1)
    possible_BTH = (scores_BTH != -inf) & has_heads_B[:, None, None]
    # the inner masks keep −∞ − −∞ out of the gradient
    total_BT = torch.where(total_BT == -inf, 0, total_BT)
    return torch.where(possible_BTH, torch.where(possible_BTH, scores_BTH, 0) - total_BT[:, :, None], -inf)


def _check(scores: Tensor, lengths: Tensor) -> None:
    with_root = scores.dim() == 3 and scores.shape[2] == scores.shape[1] + 1
    check_form(scores, "arc scores", "batch, time, time + 1", fits=with_root)
    if scores.shape[1] < 1:
        raise ValueError(f"arc scores need at least one word; got {list(scores.shape)}")
    check_lengths(lengths, scores, "arc scores")
