"""log Z, marginals and the posterior KL as autograd functions: value and gradient from one sweep, no graph over time.

Shapes: B batch, T time, Y tags. The gradient of a value per sentence is known up to one factor per sentence, so it is
computed together with the value and `backward` only scales it. Higher derivatives go through the reference recursion.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import Function

from raykd.structures import engine, reference
from raykd.structures.chain import Chain

if TYPE_CHECKING:
    from collections.abc import Callable


def end_rows(token_BTY: Tensor, lengths_B: Tensor) -> Tensor:
    """The row [B, Y] of each sentence's last token."""
    last_B1Y = (lengths_B.long() - 1)[:, None, None].expand(-1, 1, token_BTY.shape[2])
    return token_BTY.gather(1, last_B1Y).squeeze(1)


def spread_gradient(
    chain: Chain, scale_B: Tensor, token_BTY: Tensor, pair_BYY: Tensor
) -> tuple[Tensor | None, ...]:
    """Per-sentence gradients times `scale`, summed over what sentences share; token_BTY is overwritten.

    The gradients of start and end are the first and last rows of token_BTY.
    """
    scale_B = scale_B.to(token_BTY.dtype)
    token_BTY = token_BTY.mul_(scale_B[:, None, None])
    transitions = _shared(chain.transitions, scale_B, pair_BYY, 2)
    one_B = torch.ones_like(scale_B)
    start = _shared(chain.start, one_B, token_BTY[:, 0], 1)
    end = None if chain.end is None else _shared(chain.end, one_B, end_rows(token_BTY, chain.lengths_B), 1)
    return token_BTY, None, transitions, start, end


def _shared(scores: Tensor | None, scale_B: Tensor, gradient: Tensor, dims: int) -> Tensor | None:
    if scores is None or not scores.requires_grad:
        return None
    if scores.dim() == dims:
        return (scale_B @ gradient.flatten(1)).view_as(scores)
    return gradient * scale_B.view(-1, *[1] * dims)


def through_reference(
    chain: Chain, value: Callable[[Chain], tuple[Tensor, ...]], cotangents: tuple[Tensor, ...]
) -> tuple[Tensor | None, ...]:
    """The gradients of a reference computation, which are differentiable again."""
    inputs = [part for part in chain.scores() if part.requires_grad]
    found = torch.autograd.grad(value(chain), inputs, cotangents, create_graph=True, materialize_grads=True)
    by_id = {id(part): gradient for part, gradient in zip(inputs, found, strict=True)}
    return tuple(None if part is None else by_id.get(id(part)) for part in chain.parts())


class LogPartition(Function):
    """log Z [B] in float64."""

    @staticmethod
    def forward(ctx: Any, *parts: Tensor) -> Tensor:
        ctx.save_for_backward(*parts)
        ctx.wanted = {"token": any(ctx.needs_input_grad), "pair": ctx.needs_input_grad[2]}
        ctx.found = engine.sums(Chain.unchecked(*parts), **ctx.wanted)
        return ctx.found.log_z_B.clone()

    @staticmethod
    def backward(ctx: Any, scale_B: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        chain = Chain.unchecked(*ctx.saved_tensors)
        if torch.is_grad_enabled():
            return through_reference(chain, lambda c: (reference.log_partition(c).double(),), (scale_B,))
        # the rows are scaled in place, so a second backward computes them again
        found, ctx.found = ctx.found, None
        found = found or engine.sums(chain, **ctx.wanted)
        return spread_gradient(chain, scale_B, found.token_BTY, found.pair_BYY)


class Marginals(Function):
    """Token marginals [B, T, Y] and, if requested, expected transitions [B, Y, Y]."""

    @staticmethod
    def forward(ctx: Any, pair: bool, *parts: Tensor) -> tuple[Tensor, Tensor | None]:
        ctx.save_for_backward(*parts)
        found = engine.sums(Chain.unchecked(*parts), pair=pair)
        return found.token_BTY, found.pair_BYY if pair else None

    @staticmethod
    def backward(ctx: Any, along_BTY: Tensor, along_BYY: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        chain = Chain.unchecked(*ctx.saved_tensors)
        if torch.is_grad_enabled():
            return None, *through_reference(chain, *_marginals_again(along_BTY, along_BYY))
        if along_BYY is not None and not bool(along_BYY.any()):
            along_BYY = None
        token_BTY, pair_BYY = engine.covariance(chain, along_BTY, along_BYY)
        return None, *spread_gradient(chain, torch.ones_like(token_BTY[:, 0, 0]), token_BTY, pair_BYY)


def _marginals_again(
    along_BTY: Tensor, along_BYY: Tensor | None
) -> tuple[Callable[[Chain], tuple[Tensor, ...]], tuple[Tensor, ...]]:
    if along_BYY is None:
        return lambda c: (reference.token_marginals(c),), (along_BTY,)
    return lambda c: (reference.token_marginals(c), reference.transition_moments(c)), (along_BTY, along_BYY)


class PosteriorKL(Function):
    """Σ_t KL(q_t ‖ p_t) [B]."""

    @staticmethod
    def forward(ctx: Any, teacher_BTY: Tensor, *parts: Tensor) -> Tensor:
        ctx.save_for_backward(*parts)
        ctx.teacher_BTY = teacher_BTY
        ctx.wanted = {"token": any(ctx.needs_input_grad), "pair": ctx.needs_input_grad[3]}
        value_B, *ctx.found = engine.posterior(Chain.unchecked(*parts), teacher_BTY, **ctx.wanted)
        return value_B.to(parts[0].dtype)

    @staticmethod
    def backward(ctx: Any, scale_B: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        chain = Chain.unchecked(*ctx.saved_tensors)
        if torch.is_grad_enabled():
            again = partial(reference.posterior_kl, teacher_BTY=ctx.teacher_BTY)
            return None, *through_reference(chain, lambda c: (again(c),), (scale_B,))
        found, ctx.found = ctx.found, None
        found = found or engine.posterior(chain, ctx.teacher_BTY, **ctx.wanted)[1:]
        return None, *spread_gradient(chain, scale_B, found[0], found[1])
