"""Calls of the kernels of chains and of trees: every operation that is compiled.

Tensors become arrays, blocks of chains and sentences of trees are shared among threads, compiled code is kept on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from raykd.structures.compiled import best, blocks, cache, products, spanning_trees, sums, tangents
from raykd.structures.compiled.blocks import Problem
from raykd.structures.compiled.lanes import REGISTER_BITS
from raykd.structures.compiled.threads import share_out
from raykd.structures.scaled import Sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from raykd.structures.arcs import Arcs
    from raykd.structures.chain import Chain

KIND = "compiled.launch"

cache.set_cache_folder((blocks, products, sums, tangents, best, spanning_trees))


def sum_product(chain: Chain, *, token: bool, pair: bool, sides: bool = False) -> Sums:
    """Run the forward-backward kernel; parts that are not requested are empty tensors."""
    B, T, Y = chain.emissions_BTY.shape
    new = chain.emissions_BTY.new_empty
    filled = Sums(
        torch.empty(B, dtype=torch.float64),
        torch.empty(B, dtype=torch.bool),
        new(B, T, Y) if token else new(0),
        new(B, Y, Y) if pair else new(0),
        new(B, T, Y) if sides else new(0),
        new(B, T, Y) if sides else new(0),
    )
    problem = as_problem(chain)
    arrays = sums.SumArrays(*(flat(part) for part in filled))
    over_blocks(problem, lambda first, last: sums.sum_product(problem, arrays, first, last))
    return filled


def covariance(chain: Chain, along_BTY: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the Hessian of log Z times a direction of the emissions: token and transition parts, and `ok`."""
    _, token_BTY, pair_BYY, ok_B = _tangent(chain, along_BTY, posterior=False, token=True, pair=True)
    return token_BTY, pair_BYY, ok_B


def posterior(
    chain: Chain, teacher_BTY: Tensor, *, token: bool, pair: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return Σ_t KL(q_t ‖ p_t) [B] in float64, its gradient (token and transition parts), and `ok`."""
    return _tangent(chain, teacher_BTY, posterior=True, token=token, pair=pair)


def _tangent(
    chain: Chain, direction_BTY: Tensor, *, posterior: bool, token: bool, pair: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    B, T, Y = chain.emissions_BTY.shape
    new, problem = chain.emissions_BTY.new_empty, as_problem(chain)
    value_B, log_z_B = torch.empty(2, B, dtype=torch.float64)
    ok_B = torch.empty(B, dtype=torch.bool)
    token_BTY, pair_BYY = new(B, T, Y) if token else new(0), new(B, Y, Y) if pair else new(0)
    none = flat(new(0))
    sum_arrays = sums.SumArrays(flat(log_z_B), flat(ok_B), none, none, none, none)
    parts = tangents.Tangents(flat(value_B), flat(token_BTY), flat(pair_BYY))
    direction = flat(direction_BTY.to(chain.dtype))
    over_blocks(
        problem, lambda a, b: tangents.tangent(problem, direction, posterior, sum_arrays, parts, a, b)
    )
    return value_B, token_BTY, pair_BYY, ok_B


def k_best(chain: Chain, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best labellings [B, K, T] and their scores [B, K] in float64."""
    paths_BKT = torch.empty(chain.batch, k, chain.time, dtype=torch.int64)
    scores_BK = torch.empty(chain.batch, k, dtype=torch.float64)
    problem, paths, scores = as_problem(chain), paths_BKT.numpy(), scores_BK.numpy()
    over_blocks(problem, lambda a, b: best.k_best(problem, paths, scores, a, b))
    return paths_BKT, scores_BK


def best_trees(arcs: Arcs) -> tuple[Tensor, Tensor]:
    """Return the best trees' heads [B, T], zero on padding, and their scores [B] in float64."""
    heads_BT = torch.empty(arcs.batch, arcs.time, dtype=torch.int64)
    score_B = torch.empty(arcs.batch, dtype=torch.float64)
    # In float64, so that the kernel is compiled once.
    scores, heads, totals = arcs.scores_BTH.double().contiguous().numpy(), heads_BT.numpy(), score_B.numpy()
    lengths = arcs.lengths_B.long().numpy()
    order = (-lengths).argsort(kind="stable")
    costs = lengths[order].astype(float) ** 3
    share_out(
        costs,
        costs.sum(),
        lambda first, last: spanning_trees.best_tree(scores, lengths, order, heads, totals, first, last),
    )
    return heads_BT, score_B


def as_problem(chain: Chain) -> Problem:
    """Return a CPU chain in the form of the kernels."""
    _, T, Y = chain.emissions_BTY.shape
    lengths = chain.lengths_B.long().numpy()
    return Problem(
        flat(chain.emissions_BTY),
        lengths,
        (-lengths).argsort(kind="stable"),
        *_scores(chain.transitions, 2, Y * Y, chain.dtype),
        *_scores(chain.start, 1, Y, chain.dtype),
        *_scores(chain.end, 1, Y, chain.dtype),
        T,
        Y,
    )


def _scores(scores: Tensor | None, shared_dims: int, size: int, dtype: torch.dtype) -> tuple[np.ndarray, int]:
    """Return scores as a flat array, and the step from one sentence's scores to the next's.

    Scores of `shared_dims` dimensions are shared by all sentences.
    """
    if scores is None:
        return np.zeros(size, np.float64 if dtype == torch.float64 else np.float32), 0
    return flat(scores), 0 if scores.dim() == shared_dims else size


def flat(tensor: Tensor) -> np.ndarray:
    """Return a tensor's numbers as a flat array, shared if the tensor is contiguous."""
    return tensor.detach().contiguous().view(-1).numpy()


def over_blocks(problem: Problem, work: Callable[[int, int], None]) -> None:
    """Call work(first, last) over all blocks of the problem, shared among threads by the number of tokens."""
    sentences_per_block = REGISTER_BITS // 8 // problem.emissions.itemsize
    costs = problem.lengths[problem.order[::sentences_per_block]]
    share_out(costs, problem.emissions.size * problem.tags, work)
