"""A batch of dependency arcs: each word of a sentence has one head, another word or the root.

Shapes: B batch, T time (words, padded), H = T + 1 heads.
Head 0 is the root, head j the word j − 1. An analysis is one head for each word and scores the sum of its arcs:

    score(heads) = Σ_t scores[t, heads[t]]

`allowed` says which analyses there are:

    heads              every word takes any head but itself (Dozat & Manning 2017; Wang et al., ACL 2021, cases 1b, 2b)
    trees              following the heads, every word comes to the root; arcs may cross
    projective_trees   trees none of whose arcs cross, those of the root, left of the sentence, included

With `single_root` exactly one word has the root as its head, as Universal Dependencies demand. A score of −∞ forbids
an arc. An analysis is a labelling whose tags are the heads, so the operations of chains are those of arcs too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from raykd.structures.device import holds

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Float

Allowed = Literal["heads", "trees", "projective_trees"]
ALLOWED = ("heads", "trees", "projective_trees")


@dataclass(frozen=True, eq=False)
class Arcs:
    """Scores of every possible arc of a batch of ragged sentences, and which analyses are allowed; checked once, here.

    scores_BTH: floating point [B, T, T + 1], [b, t, h] of word t under head h; what lies beyond a sentence's length,
    and a word under itself, are not read.
    lengths_B: integers [B] in 1..T.

    Half-precision scores are widened to float32. Raises ValueError where shapes, dtypes, devices or lengths do not fit
    together, and where independent heads are to have a single root.
    """

    scores_BTH: Tensor
    lengths_B: Tensor
    allowed: Allowed = "heads"
    single_root: bool = False

    def __post_init__(self) -> None:
        _check(self)
        if self.dtype not in (torch.float32, torch.float64):
            object.__setattr__(self, "scores_BTH", self.scores_BTH.float())

    @property
    def batch(self) -> int:
        return self.scores_BTH.shape[0]

    @property
    def time(self) -> int:
        return self.scores_BTH.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.scores_BTH.dtype

    @property
    def device(self) -> torch.device:
        return self.scores_BTH.device

    @property
    def mask_BT(self) -> Bool[Tensor, "batch time"]:
        """True on words, False on padding."""
        return torch.arange(self.time, device=self.device) < self.lengths_B[:, None]

    @property
    def mask_BTH(self) -> Bool[Tensor, "batch time head"]:
        """True where an arc is possible: from a word to the root or to another word of its sentence."""
        heads_H = torch.arange(self.time + 1, device=self.device)
        other_TH = heads_H != heads_H[1:, None]
        return other_TH & (heads_H <= self.lengths_B[:, None])[:, None] & self.mask_BT[:, :, None]

    def possible(self) -> Float[Tensor, "batch time head"]:
        """The scores, −∞ where no arc is possible."""
        return torch.where(self.mask_BTH, self.scores_BTH, float("-inf"))

    def as_trees(self, *, projective: bool = False, single_root: bool = True) -> Arcs:
        """The same scores over trees. Its best tree is the repair of heads that are none."""
        return replace(self, allowed="projective_trees" if projective else "trees", single_root=single_root)

    def map(self, change: Callable[[Tensor], Tensor]) -> Arcs:
        """The arcs whose scores are `change(scores)`; divided by ϑ, for example, for a global temperature ϑ."""
        return replace(self, scores_BTH=change(self.scores_BTH))


def _check(arcs: Arcs) -> None:
    scores, lengths = arcs.scores_BTH, arcs.lengths_B
    if scores.dim() != 3 or not scores.is_floating_point() or scores.shape[2] != scores.shape[1] + 1:
        raise ValueError(
            f"arc scores must be floating point [batch, time, time + 1]; got {scores.dtype} {list(scores.shape)}"
        )
    B, T, _ = scores.shape
    if T < 1:
        raise ValueError(f"arc scores need at least one word; got {list(scores.shape)}")
    if tuple(lengths.shape) != (B,) or lengths.is_floating_point() or lengths.device != scores.device:
        raise ValueError(
            f"lengths must be integers [{B}] on {scores.device}; got {lengths.dtype} {list(lengths.shape)} on "
            f"{lengths.device}"
        )
    if B and not holds((lengths >= 1) & (lengths <= T)):
        raise ValueError(f"lengths must lie in 1..{T} (the scores' time); got {lengths.tolist()}")
    if arcs.allowed not in ALLOWED:
        raise ValueError(f"allowed must be one of {', '.join(ALLOWED)}; got {arcs.allowed!r}")
    if arcs.single_root and arcs.allowed == "heads":
        raise ValueError(
            "heads that are independent of each other cannot have a single root; set allowed: trees"
        )
