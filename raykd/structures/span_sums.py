"""Sums over all segmentations of a sentence: log-partition and marginals of BIOES tags.

Shapes: B batch, T time (words), L labels, Y tags, S = T + 1 boundaries of words.
F[j] is the logarithm of the summed exponentiated scores of all segmentations of the first j words, G[i] of the words
from i on. A segmentation of j + 1 words ends with an entity of the words i..j, or with word j outside:

    F[j + 1] = log Σ_{i ≤ j} exp(F[i] + w[i, j])     w[i, j] = log(Σ_l exp s[i, j, l] + [i = j]),  F[0] = 0
    μ[i, j, l] = exp(F[i] + s[i, j, l] + G[j + 1] − log Z),  log Z = F[n]

(Wang et al., ACL 2021, Appendix A, where →DP(k, F) is exp F[k − 1]; that page misprints I_l and Z.) w is known before
the recursion, so a step is one log-sum over the batch, and one recursion takes both directions. A word may always be
outside every entity, so F is at least 0 and no score of −∞ makes it NaN.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from raykd.structures.device import index_tensor
from raykd.structures.function_context import FunctionContext
from raykd.structures.labelled_spans import Spans
from raykd.structures.log_space import log_sum

if TYPE_CHECKING:
    from jaxtyping import Float


def log_partition(spans: Spans) -> Float[Tensor, " batch"]:
    """Return log Z [B]: the log of the summed exponentiated scores of all segmentations, in nats; at least 0.

    Differentiable; the gradient in the scores is the marginals of the entities.
    """
    return _LogPartition.apply(spans.scores_BTTL, spans).to(spans.dtype)  # type: ignore[union-attr]


def token_marginals(spans: Spans) -> Float[Tensor, "batch time tag"]:
    """Return p(y_t = y) [B, T, Y] of the BIOES tags: zero on padding, the rows of words sum to one. Differentiable.

    An entity that covers word t without beginning or ending there makes it I: Σ_{k<t} Σ_{j>t} μ[k, j, l]. The sum over
    k is cumulative: nothing is subtracted, so small probabilities stay accurate.
    """
    spans_BTTL, outside_BT = _entity_and_outside_marginals(spans)
    single_BTL = spans_BTTL.diagonal(dim1=1, dim2=2).transpose(1, 2)
    longer_TT = torch.ones_like(spans_BTTL[0, :, :, 0]).triu(1)
    longer_BTTL = spans_BTTL * longer_TT[:, :, None]
    before_BTTL = torch.cat([torch.zeros_like(longer_BTTL[:, :1]), longer_BTTL.cumsum(1)[:, :-1]], 1)
    inside_BTL = (before_BTTL * longer_TT[:, :, None]).sum(2)
    parts = (longer_BTTL.sum(2), inside_BTL, longer_BTTL.sum(1), single_BTL, outside_BT[:, :, None])
    place_Y = index_tensor(spans.tags.in_order, spans.device).argsort()
    return torch.cat(parts, 2)[:, :, place_Y]


class _Context(FunctionContext):
    spans: Spans
    sums: tuple[Tensor, Tensor]


class _LogPartition(Function):
    """log Z [B] in float64; `backward` scales the marginals instead of going back through the recursion."""

    @staticmethod
    def forward(ctx: _Context, scores_BTTL: Tensor, spans: Spans) -> Tensor:
        ctx.save_for_backward(scores_BTTL)
        ctx.spans = spans
        if not ctx.needs_input_grad[0]:
            return _forward(_steps(spans))[:, -1].clone()
        ctx.sums = _forward_and_backward(_steps(spans))
        return ctx.sums[0][:, -1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, scale_B: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (scores_BTTL,) = ctx.saved_tensors
        spans = ctx.spans.unchecked(scores_BTTL)
        return _span_marginals(spans, *ctx.sums) * scale_B.to(spans.dtype)[:, None, None, None], None


def _entity_and_outside_marginals(spans: Spans) -> tuple[Tensor, Tensor]:
    """Return marginals of entities [B, T, T, L] and of words outside all of them [B, T]."""
    scores_BTTL = spans.scores_BTTL
    if torch.is_grad_enabled() and scores_BTTL.requires_grad:
        outside_BT = scores_BTTL.new_zeros(spans.batch, spans.time, requires_grad=True)
        total = _reference(spans, outside_BT).sum()
        gradients = torch.autograd.grad(total, (scores_BTTL, outside_BT), create_graph=True)
        return gradients[0], gradients[1] * spans.mask_BT
    with torch.no_grad():
        before_BS, after_BS = _forward_and_backward(_steps(spans))
        outside_BT = (before_BS[:, :-1] + after_BS[:, 1:] - before_BS[:, -1:]).exp() * spans.mask_BT
        return _span_marginals(spans, before_BS, after_BS), outside_BT.to(spans.dtype)


def _span_marginals(spans: Spans, before_BS: Tensor, after_BS: Tensor) -> Tensor:
    around_BTT = before_BS[:, :-1, None] + after_BS[:, None, 1:] - before_BS[:, -1:, None]
    logs_BTTL = spans.scores_BTTL + around_BTT.to(spans.dtype)[..., None]
    return torch.where(spans.mask_BTT[..., None], logs_BTTL, -inf).exp_()


def _steps(spans: Spans) -> Tensor:
    """Return w[b, i, j] in float64. Words of the padding are outside, so every sentence has T words."""
    summed_BTT = spans.scores_BTTL.detach().logsumexp(3).double()
    steps_BTT = torch.where(spans.mask_BTT, summed_BTT, -inf)
    word_BT = steps_BTT.diagonal(dim1=1, dim2=2)
    word_BT.copy_(torch.logaddexp(word_BT, torch.zeros_like(word_BT)))
    return steps_BTT


def _forward_and_backward(steps_BTT: Tensor) -> tuple[Tensor, Tensor]:
    """Return F and G [B, T + 1] from one recursion: G is the F of the sentence read from its end."""
    mirrored_BTT = steps_BTT.flip(1, 2).transpose(1, 2)
    before_BS, mirrored_BS = _forward(torch.cat([steps_BTT, mirrored_BTT])).chunk(2)
    return before_BS, mirrored_BS.flip(1)


def _forward(steps_BTT: Tensor) -> Tensor:
    B, T, _ = steps_BTT.shape
    into_TBT = steps_BTT.permute(2, 0, 1).contiguous()
    sums_BS = steps_BTT.new_zeros(B, T + 1)
    for j in range(T):
        sums_BS[:, j + 1] = torch.logsumexp(sums_BS[:, : j + 1] + into_TBT[j, :, : j + 1], 1)
    return sums_BS


def _reference(spans: Spans, outside_BT: Tensor) -> Tensor:
    """Return log Z [B] in float64 by plain operations, twice differentiable by autograd.

    The gradient in the scores of entities and in `outside_BT`, the scores of words outside, is their marginals.
    """
    weights_BTT = log_sum(torch.where(spans.mask_BTT[..., None], spans.scores_BTTL.double(), -inf), 3)
    diagonal_TT = torch.eye(spans.time, dtype=torch.bool, device=spans.device)
    rest_BTT = torch.where(diagonal_TT, outside_BT.double()[:, :, None], -inf)
    steps_BTT = log_sum(torch.stack([weights_BTT, rest_BTT], 3), 3)
    sums = [steps_BTT.new_zeros(spans.batch)]
    for j in range(spans.time):
        sums.append(log_sum(torch.stack(sums, 1) + steps_BTT[:, : j + 1, j], 1))
    return sums[-1]
