"""Heads: the score of given ones, and the best allowed ones.

Shapes: B batch, T time (words), H = T + 1 heads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures import engine
from raykd.structures.device import holds

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from raykd.structures.arcs import Arcs

_NONE = float("-inf")


def score(arcs: Arcs, heads_BT: Int[Tensor, "batch time"]) -> Float[Tensor, " batch"]:
    """The scores of given heads [B], −∞ where they are not allowed. Differentiable.

    Heads on padding are not read. Raises ValueError where the shape does not fit the arcs or a head is out of range.
    """
    heads_BT = _checked(arcs, heads_BT)
    scores_BT = arcs.scores_BTH.gather(2, heads_BT[:, :, None]).squeeze(2)
    total_B = torch.where(arcs.mask_BT, scores_BT, 0).sum(1, dtype=torch.float64).to(arcs.dtype)
    return torch.where(is_allowed(arcs, heads_BT), total_B, _NONE)


def viterbi(arcs: Arcs) -> tuple[Int[Tensor, "batch time"], Float[Tensor, " batch"]]:
    """The best allowed heads [B, T] (zero on padding) and their score [B], −∞ (and heads 0) where there are none.

    Independent heads are each word's best. Trees are found on the CPU, by compiled code, wherever the scores are.
    """
    with torch.no_grad():
        if arcs.allowed == "heads":
            best_BT, heads_BT = arcs.possible().max(2)
            score_B = torch.where(arcs.mask_BT, best_BT, 0).sum(1, dtype=torch.float64)
            return heads_BT * (arcs.mask_BT & (score_B != _NONE)[:, None]), score_B.to(arcs.dtype)
        on_cpu = replace(arcs, scores_BTH=arcs.scores_BTH.cpu(), lengths_B=arcs.lengths_B.cpu())
        heads_BT, score_B = engine.attempt(on_cpu, "best_trees", lambda: _without_compiler(on_cpu))
        return heads_BT.to(arcs.device), score_B.to(arcs.device, arcs.dtype)


def is_allowed(arcs: Arcs, heads_BT: Int[Tensor, "batch time"]) -> Bool[Tensor, " batch"]:
    """Whether heads are an analysis that the arcs allow [B]; a word under itself, or under padding, never is one."""
    heads_BT = heads_BT.masked_fill(~arcs.mask_BT, 0)
    possible_BT = arcs.mask_BTH.gather(2, heads_BT[:, :, None]).squeeze(2) | ~arcs.mask_BT
    allowed_B = possible_BT.all(1)
    if arcs.allowed == "heads":
        return allowed_B
    allowed_B = allowed_B & _reach_root(heads_BT)
    if arcs.single_root:
        allowed_B = allowed_B & (((heads_BT == 0) & arcs.mask_BT).sum(1) == 1)
    return allowed_B & ~_cross(heads_BT, arcs.mask_BT) if arcs.allowed == "projective_trees" else allowed_B


def _reach_root(heads_BT: Tensor) -> Tensor:
    """Whether every word comes to the root; each pass doubles the number of arcs that are followed."""
    up_BH = torch.cat([torch.zeros_like(heads_BT[:, :1]), heads_BT], 1)
    for _ in range(heads_BT.shape[1].bit_length()):
        up_BH = up_BH.gather(1, up_BH)
    return (up_BH == 0).all(1)


def _cross(heads_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Whether any two arcs cross: one begins inside the other and ends outside of it."""
    words_T = torch.arange(1, heads_BT.shape[1] + 1, device=heads_BT.device)
    low_BT, high_BT = torch.minimum(heads_BT, words_T), torch.maximum(heads_BT, words_T)
    inside_BTT = (low_BT[:, :, None] < low_BT[:, None]) & (low_BT[:, None] < high_BT[:, :, None])
    crosses_BTT = inside_BTT & (high_BT[:, None] > high_BT[:, :, None])
    return (crosses_BTT & mask_BT[:, :, None] & mask_BT[:, None]).flatten(1).any(1)


def _checked(arcs: Arcs, heads_BT: Tensor) -> Tensor:
    """Heads as int64 with zeros on padding."""
    if tuple(heads_BT.shape) != (arcs.batch, arcs.time):
        raise ValueError(f"heads must be [{arcs.batch}, {arcs.time}]; got {list(heads_BT.shape)}")
    heads_BT = heads_BT.long().masked_fill(~arcs.mask_BT, 0)
    if heads_BT.numel():
        lowest, highest = heads_BT.aminmax()
        if not holds((lowest >= 0) & (highest <= arcs.time)):
            raise ValueError(f"heads must lie in 0..{arcs.time}; got {int(lowest)}..{int(highest)}")
    return heads_BT


def _without_compiler(arcs: Arcs) -> tuple[Tensor, Tensor]:
    if arcs.batch:
        raise RuntimeError(
            "the best trees are found by code that numba compiles, and that failed here; repair numba"
        )
    return arcs.lengths_B.new_zeros(0, arcs.time, dtype=torch.long), arcs.scores_BTH.new_zeros(0).double()
