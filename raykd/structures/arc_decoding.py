"""Dependency trees: checks of heads, and the best trees.

Shapes: B batch, T time (words), H = T + 1 heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures import engine
from raykd.structures.arcs import Arcs

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def best_trees(arcs: Arcs) -> tuple[Int[Tensor, "batch time"], Float[Tensor, " batch"]]:
    """Return the heads of the best trees [B, T] (zero on padding) and their scores [B].

    A sentence without any tree has score −∞ and heads 0. Compiled code computes on the CPU, wherever the scores are.

    Args:
        arcs: Scores of all arcs.

    Raises:
        RuntimeError: The compiled code cannot be loaded or run.
    """
    on_cpu = Arcs(arcs.scores_BTH.detach().cpu(), arcs.lengths_B.cpu())
    heads_BT, score_B = engine.attempt(on_cpu, "best_trees", lambda: _without_compiler(on_cpu))
    return heads_BT.to(arcs.device), score_B.to(arcs.device, arcs.dtype)


def are_trees(arcs: Arcs, heads_BT: Int[Tensor, "batch time"]) -> Bool[Tensor, " batch"]:
    """Check that heads are a tree with one word under the root; True for trees [B].

    Args:
        arcs: Scores of all arcs; −∞ forbids an arc.
        heads_BT: Head of each word; heads on padding are not read.
    """
    heads_BT = heads_BT.masked_fill(~arcs.mask_BT, 0)
    possible_BT = arcs.mask_BTH.gather(2, heads_BT[:, :, None]).squeeze(2) | ~arcs.mask_BT
    under_root_B = ((heads_BT == 0) & arcs.mask_BT).sum(1)
    return possible_BT.all(1) & _reach_root(heads_BT) & (under_root_B == 1)


def _reach_root(heads_BT: Tensor) -> Tensor:
    """Check that all words lead to the root."""
    ancestor_BH = torch.cat([torch.zeros_like(heads_BT[:, :1]), heads_BT], 1)  # the root is its own
    for _ in range(heads_BT.shape[1].bit_length()):  # each pass doubles the number of arcs that are followed
        ancestor_BH = ancestor_BH.gather(1, ancestor_BH)
    return (ancestor_BH == 0).all(1)


def _without_compiler(arcs: Arcs) -> tuple[Tensor, Tensor]:
    if arcs.batch:
        raise RuntimeError("the best trees need numba, and its compiled code failed here; reinstall numba")
    return arcs.lengths_B.new_zeros(0, arcs.time, dtype=torch.long), arcs.scores_BTH.new_zeros(0).double()
