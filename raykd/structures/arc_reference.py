"""Sums over dependency trees by plain operations: in words, the algorithms that the kernels compile.

Shapes: B batch, T time (words), H = T + 1 heads, N = words of a span. All in float64; autograd differentiates any
number of times, and this is what computes on CUDA.

Non-projective (Tutte's matrix-tree theorem; Koo et al. 2007, Smith & Smith 2007). Z is a determinant of the Laplacian,
which is found here by removing one word after the other (`log_trees`): every arc t → k to the removed word k goes
on to one of k's heads,

    a[t, h] ← a[t, h] + a[t, k] a[k, h] / p_k        p_k = Σ_h a[k, h] over k's heads that are left,  Z = Π_k p_k

which is Gaussian elimination with the pivots summed anew (Grassmann, Taksar & Heyman 1985): nothing is ever
subtracted, so that two words that choose each other with certainty cost no digits, where a determinant by LU loses
all. With a single root the root's weights count as infinitely small: p_k leaves the root out, except for the last
word, whose only head is the root.

Projective (Eisner 1996): an arc j → i closes the words between them, S = Σ_k R[i, k] L[k + 1, j]; R[i, j] are the words
i..j under i, L[i, j] those under j.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures.log_space import log_sum

if TYPE_CHECKING:
    from raykd.structures.arcs import Arcs

_NONE = float("-inf")


def log_partition(arcs: Arcs) -> Tensor:
    """log Z [B] in float64, −∞ where there is no tree."""
    log_z_B = (log_projective if arcs.allowed == "projective_trees" else log_trees)(arcs)
    return torch.where(log_z_B == _NONE, _NONE, log_z_B)  # no gradient where there is no tree


def log_trees(arcs: Arcs) -> Tensor:
    """log Z of non-projective trees [B] in float64. Words are removed in any order that leaves each a head."""
    scores_BTH = arcs.possible().double()
    peak_BT1 = scores_BTH.detach().amax(2, keepdim=True)
    peak_BT1 = torch.where(peak_BT1 == _NONE, 0, peak_BT1)
    weights_BTH = (scores_BTH - peak_BT1).exp()
    root_BT, others_BTT = weights_BTH[:, :, 0], weights_BTH[:, :, 1:]
    left_BT, rows_B = arcs.mask_BT, torch.arange(arcs.batch, device=arcs.device)
    log_z_B = torch.where(arcs.mask_BT, peak_BT1.squeeze(2), 0).sum(1)
    for step in range(arcs.time):
        words_BT = others_BTT.sum(2)
        last_B = arcs.lengths_B - 1 == step
        heads_BT = torch.where(last_B[:, None], root_BT, words_BT if arcs.single_root else words_BT + root_BT)
        k_B = torch.where(left_BT, heads_BT.detach(), -1).argmax(1)
        now_B = left_BT[rows_B, k_B]
        pivot_B = heads_BT[rows_B, k_B]
        some_B = now_B & (pivot_B > 0)
        log_pivot_B = torch.where(pivot_B == 0, _NONE, torch.where(some_B, pivot_B, 1).log())
        log_z_B = log_z_B + torch.where(now_B, log_pivot_B, 0)
        share_BT = (
            torch.where(some_B[:, None], others_BTT[rows_B, :, k_B], 0)
            / torch.where(some_B, pivot_B, 1)[:, None]
        )
        left_BT = left_BT.clone()
        left_BT[rows_B, k_B] = False
        root_BT = root_BT + share_BT * root_BT[rows_B, k_B][:, None]
        others_BTT = others_BTT + share_BT[:, :, None] * others_BTT[rows_B, k_B][:, None]
        keep_BTT = left_BT[:, :, None] & left_BT[:, None]
        keep_BTT = keep_BTT & ~torch.eye(arcs.time, dtype=torch.bool, device=arcs.device)
        others_BTT = torch.where(keep_BTT, others_BTT, 0)
    return log_z_B


def log_projective(arcs: Arcs) -> Tensor:
    """log Z of projective trees [B] in float64, spans of one width after the other: `right[w][:, i]` is R[i, i + w]."""
    T = arcs.time
    # arcs of the padding may be anything that is finite: no span of the sentence holds one
    scores_BTH = torch.where(arcs.mask_BT[:, :, None], arcs.scores_BTH.double(), 0)
    arcs_BTT = torch.where(arcs.mask_BT[:, None], scores_BTH[:, :, 1:], 0)
    single_BT = arcs_BTT.new_zeros(arcs.batch, T)
    right, left, right_arc, left_arc = (
        [single_BT],
        [single_BT],
        [single_BT],
        [single_BT],
    )  # arcs of width 0 are not read
    for w in range(1, T):
        N = T - w
        closed_BN = _join([(right[d][:, :N], left[w - 1 - d][:, d + 1 : d + 1 + N]) for d in range(w)])
        right_arc.append(closed_BN + arcs_BTT.diagonal(-w, 1, 2))
        left_arc.append(closed_BN + arcs_BTT.diagonal(w, 1, 2))
        right.append(_join([(right_arc[d][:, :N], right[w - d][:, d : d + N]) for d in range(1, w + 1)]))
        left.append(_join([(left[d][:, :N], left_arc[w - d][:, d : d + N]) for d in range(w)]))
    return _under_root(arcs, scores_BTH[:, :, 0], left, right)


def _under_root(arcs: Arcs, root_BT: Tensor, left: list[Tensor], right: list[Tensor]) -> Tensor:
    """The root's words from left to right: each stands over the words before it and after it up to the next's."""
    before, arcs_of_root = [root_BT.new_zeros(arcs.batch)], []
    for j in range(arcs.time):
        starts = range(1 if arcs.single_root else j + 1)
        into_B = _join([(before[i][:, None], left[j - i][:, i : i + 1]) for i in starts])[:, 0]
        arcs_of_root.append(into_B + root_BT[:, j])
        parts = [(arcs_of_root[i][:, None], right[j - i][:, i : i + 1]) for i in range(j + 1)]
        before.append(_join(parts)[:, 0])
    return torch.stack(before, 1).gather(1, arcs.lengths_B[:, None].long())[:, 0]


def _join(parts: list[tuple[Tensor, Tensor]]) -> Tensor:
    """log Σ exp(a + b) over the pairs [B, N]."""
    terms_BNK = torch.stack([a for a, _ in parts], 2) + torch.stack([b for _, b in parts], 2)
    return log_sum(terms_BNK, terms_BNK != _NONE, 2)
