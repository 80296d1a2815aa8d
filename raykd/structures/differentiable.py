"""log Z, marginals and the posterior KL, differentiable: value and gradient from one sweep, no graph over time.

Shapes: B batch, T time, Y tags. The gradient of a value per sentence is known up to one factor per sentence, so it is
computed together with the value and `backward` only scales it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from raykd.structures import engine, reference
from raykd.structures.chain import Chain
from raykd.structures.function_context import FunctionContext
from raykd.structures.padding import end_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float


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


class _Context(FunctionContext):
    teacher_BTY: Tensor
    wanted: dict[str, bool]
    found: Sequence[Tensor] | None
    """The gradient of the tokens and of the pairs."""


class LogPartition(Function):
    """log Z [B] in float64."""

    @staticmethod
    def forward(ctx: _Context, *parts: Tensor) -> Tensor:
        ctx.save_for_backward(*parts)
        ctx.wanted = {"token": any(ctx.needs_input_grad), "pair": ctx.needs_input_grad[2]}
        log_z_B, _, *ctx.found = engine.sums(Chain.unchecked(*parts), **ctx.wanted)[:4]
        return log_z_B.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, scale_B: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        chain = Chain.unchecked(*ctx.saved_tensors)
        # the rows are scaled in place, so a second backward computes them again
        found, ctx.found = ctx.found, None
        found = found or engine.sums(chain, **ctx.wanted)[2:4]
        return spread_gradient(chain, scale_B, found[0], found[1])


class Marginals(Function):
    """Token marginals [B, T, Y] and, if requested, expected transitions [B, Y, Y]."""

    @staticmethod
    def forward(ctx: FunctionContext, pair: bool, *parts: Tensor) -> tuple[Tensor, Tensor | None]:
        ctx.save_for_backward(*parts)
        found = engine.sums(Chain.unchecked(*parts), pair=pair)
        return found.token_BTY, found.pair_BYY if pair else None

    @staticmethod
    @once_differentiable
    def backward(
        ctx: FunctionContext, along_BTY: Tensor, along_BYY: Tensor | None
    ) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        chain = Chain.unchecked(*ctx.saved_tensors)
        if along_BYY is None or not bool(along_BYY.any()):
            found = engine.covariance(chain, along_BTY)
        else:  # no loss reads the gradient of expected transitions, so there is no faster way
            found = reference.covariance(chain, along_BTY, along_BYY)
        return None, *spread_gradient(chain, torch.ones_like(along_BTY[:, 0, 0]), *found)


class PosteriorKL(Function):
    """Σ_t KL(q_t ‖ p_t) [B]."""

    @staticmethod
    def forward(ctx: _Context, teacher_BTY: Tensor, *parts: Tensor) -> Tensor:
        ctx.save_for_backward(*parts)
        ctx.teacher_BTY = teacher_BTY
        ctx.wanted = {"token": any(ctx.needs_input_grad), "pair": ctx.needs_input_grad[3]}
        value_B, *ctx.found = engine.posterior(Chain.unchecked(*parts), teacher_BTY, **ctx.wanted)
        return value_B.to(parts[0].dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, scale_B: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        chain = Chain.unchecked(*ctx.saved_tensors)
        found, ctx.found = ctx.found, None
        found = found or engine.posterior(chain, ctx.teacher_BTY, **ctx.wanted)[1:]
        return None, *spread_gradient(chain, scale_B, found[0], found[1])


def log_partition(chain: Chain) -> Float[Tensor, " batch"]:
    """log Z [B]: the log of the summed exponentiated scores of all labellings, in nats; −∞ where none is allowed.

    Differentiable; its gradient in the emissions is the token marginals.
    """
    return log_partition_64(chain).to(chain.dtype)


def log_partition_64(chain: Chain) -> Tensor:
    """log Z [B] in float64, so that a difference of large values stays accurate; gradients have the chain's dtype."""
    return LogPartition.apply(*chain.parts())  # type: ignore[return-value]


def token_marginals(chain: Chain) -> Float[Tensor, "batch time tag"]:
    """p(y_t = y) [B, T, Y]: zero on padding, each token's row sums to one. Differentiable."""
    return moment_tensors(chain, pairwise=False)[0]


def moment_tensors(chain: Chain, *, pairwise: bool) -> tuple[Tensor, Tensor | None]:
    """Token marginals [B, T, Y] and, if requested, expected transitions summed over time [B, Y, Y]."""
    return Marginals.apply(pairwise, *chain.parts())  # type: ignore[return-value]
