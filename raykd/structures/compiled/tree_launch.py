"""Calls the kernels of dependency trees, sentences shared among threads; compiled code is kept on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures.compiled import cache, eisner, matrix_tree, spanning_trees
from raykd.structures.compiled.threads import share_out

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from raykd.structures.arcs import Arcs

EXP = 20  # multiplications in the time of an exponential

cache.keep_together((matrix_tree, eisner, spanning_trees))


def tree_sums(arcs: Arcs, *, marginals: bool) -> tuple[Tensor, Tensor]:
    """log Z [B] of trees and, if requested, marginals of arcs [B, T, H], both in float64."""
    log_z_B = torch.empty(arcs.batch, dtype=torch.float64)
    marginals_BTH = torch.empty(arcs.scores_BTH.shape if marginals else (0, 0, 0), dtype=torch.float64)
    projective = arcs.allowed == "projective_trees"
    kernel = eisner.eisner if projective else matrix_tree.matrix_tree
    scores, found, into = _array(arcs.scores_BTH), log_z_B.numpy(), marginals_BTH.numpy()
    _over_sentences(
        arcs,
        EXP if projective else 1,
        lambda lengths, order, a, b: kernel(scores, lengths, order, arcs.single_root, found, into, a, b),
    )
    return log_z_B, marginals_BTH


def best_trees(arcs: Arcs) -> tuple[Tensor, Tensor]:
    """The best trees' heads [B, T], zero on padding, and their scores [B] in float64."""
    heads_BT = torch.empty(arcs.batch, arcs.time, dtype=torch.int64)
    score_B = torch.empty(arcs.batch, dtype=torch.float64)
    projective = arcs.allowed == "projective_trees"
    kernel = eisner.best_projective if projective else spanning_trees.best_tree
    scores, into, found = _array(arcs.scores_BTH), heads_BT.numpy(), score_B.numpy()
    _over_sentences(
        arcs,
        1,
        lambda lengths, order, a, b: kernel(scores, lengths, order, arcs.single_root, into, found, a, b),
    )
    return heads_BT, score_B


def _over_sentences(arcs: Arcs, each: int, work: Callable[[np.ndarray, np.ndarray, int, int], None]) -> None:
    """work(lengths, order, first, last) over all sentences, longest first; a sentence costs n³ times `each`."""
    lengths = arcs.lengths_B.long().numpy()
    order = (-lengths).argsort(kind="stable")
    costs = each * lengths[order].astype(float) ** 3
    share_out(costs, costs.sum(), lambda first, last: work(lengths, order, first, last))


def _array(tensor: Tensor) -> np.ndarray:
    """In float64: sums need it, and every kernel is compiled once."""
    return tensor.detach().double().contiguous().numpy()
