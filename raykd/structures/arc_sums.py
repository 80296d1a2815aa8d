"""Sums over all analyses of a sentence into dependency arcs: log-partition, marginals of arcs, entropy.

Shapes: B batch, T time (words), H = T + 1 heads.
Heads that are independent are a softmax for each word. Trees are summed by compiled kernels on the CPU, which give
log Z and, from one more sweep, its gradient, and by `arc_reference.py` on CUDA and where a second derivative is
asked for; marginals with a gradient are already one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import Function

from raykd.structures import arc_reference, engine
from raykd.structures.log_space import log_sum

if TYPE_CHECKING:
    from jaxtyping import Float

    from raykd.structures.arcs import Arcs

_NONE = float("-inf")


def log_partition(arcs: Arcs) -> Float[Tensor, " batch"]:
    """log Z [B]: the log of the summed exponentiated scores of all allowed analyses, in nats; −∞ where there is none.

    Differentiable any number of times; its gradient in the scores is the marginals.
    """
    return _log_partition_64(arcs).to(arcs.dtype)


def token_marginals(arcs: Arcs) -> Float[Tensor, "batch time head"]:
    """p(the head of t is h) [B, T, H]: zero on padding, each word's row sums to one; zero where no analysis is allowed.

    Differentiable; of trees by plain PyTorch, which is slow, where a gradient is asked for.
    """
    if arcs.allowed == "heads":
        return _head_logs(arcs).exp()
    scores_BTH = arcs.scores_BTH
    if torch.is_grad_enabled() and scores_BTH.requires_grad:
        total = arc_reference.log_partition(arcs)
        return torch.autograd.grad(total.sum(), scores_BTH, create_graph=True)[0]
    return _tree_sums(arcs, marginals=True)[1].to(arcs.dtype)


def head_log_marginals(arcs: Arcs) -> Float[Tensor, "batch time head"]:
    """log p(the head of t is h) [B, T, H], −∞ where the marginal is zero. Differentiable."""
    if arcs.allowed == "heads":
        return _head_logs(arcs)
    marginals_BTH = token_marginals(arcs)
    possible_BTH = marginals_BTH > 0
    return torch.where(possible_BTH, torch.where(possible_BTH, marginals_BTH, 1).log(), _NONE)


def entropy(arcs: Arcs) -> Float[Tensor, " batch"]:
    """H(p) = −Σ_y p(y) log p(y) [B] over all allowed analyses: log Z − ⟨μ, scores⟩."""
    marginals_BTH = token_marginals(arcs).double()
    expected_BTH = marginals_BTH * torch.where(marginals_BTH > 0, arcs.scores_BTH, 0)
    return (_log_partition_64(arcs) - expected_BTH.sum((1, 2))).to(arcs.dtype)


def _head_logs(arcs: Arcs) -> Tensor:
    """log softmax over each word's heads; −∞ throughout a sentence of which a word has no head."""
    scores_BTH = arcs.possible()
    total_BT = log_sum(scores_BTH, scores_BTH != _NONE, 2)
    some_B = ((total_BT != _NONE) | ~arcs.mask_BT).all(1)
    open_BTH = (scores_BTH != _NONE) & some_B[:, None, None]
    total_BT = torch.where(total_BT == _NONE, 0, total_BT)
    return torch.where(open_BTH, torch.where(open_BTH, scores_BTH, 0) - total_BT[:, :, None], _NONE)


def _log_partition_64(arcs: Arcs) -> Tensor:
    """log Z [B] in float64."""
    if arcs.allowed == "heads":
        scores_BTH = arcs.possible()
        total_BT = log_sum(scores_BTH, scores_BTH != _NONE, 2).double()
        log_z_B = torch.where(arcs.mask_BT, total_BT, 0).sum(1)
        return torch.where(log_z_B == _NONE, _NONE, log_z_B)  # no gradient where a word has no head
    return _LogPartition.apply(arcs.scores_BTH, arcs)  # type: ignore[return-value]


class _LogPartition(Function):
    """log Z [B] of trees in float64; `backward` scales the marginals instead of going back through the recursion."""

    @staticmethod
    def forward(ctx: Any, scores_BTH: Tensor, arcs: Arcs) -> Tensor:
        ctx.save_for_backward(scores_BTH)
        ctx.arcs = replace(arcs, scores_BTH=scores_BTH.detach())
        log_z_B, ctx.marginals_BTH = _tree_sums(arcs, marginals=ctx.needs_input_grad[0])
        return log_z_B

    @staticmethod
    def backward(ctx: Any, scale_B: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        (scores_BTH,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            total_B = arc_reference.log_partition(replace(ctx.arcs, scores_BTH=scores_BTH))
            return torch.autograd.grad(total_B, scores_BTH, scale_B, create_graph=True)[0], None
        return (ctx.marginals_BTH * scale_B[:, None, None]).to(scores_BTH.dtype), None


def _tree_sums(arcs: Arcs, *, marginals: bool) -> tuple[Tensor, Tensor]:
    """log Z [B] and, if requested, marginals [B, T, H] of trees, in float64 and without a graph."""

    def plain() -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            leaf = arcs.scores_BTH.detach().double().requires_grad_(marginals)
            log_z_B = arc_reference.log_partition(replace(arcs, scores_BTH=leaf))
        if not marginals:
            return log_z_B, leaf
        return log_z_B.detach(), torch.autograd.grad(log_z_B.sum(), leaf)[0]

    return engine.attempt(arcs, "tree_sums", plain, marginals=marginals)
