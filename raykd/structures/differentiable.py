"""log Z, marginals and the posterior KL, differentiable: value and gradient from one sweep, no graph over time.

Shapes: B batch, T time, Y tags. A sentence's value depends on no other sentence, so the gradient is computed together
with the values, and `backward` only scales it by one factor per sentence.
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
    """Scale per-sentence gradients and sum those of shared scores; token_BTY is overwritten.

    The gradients of start and end are the first and last rows of token_BTY.

    Args:
        chain: The chain, which says what sentences share.
        scale_B: Factor of each sentence.
        token_BTY: Gradient in the emissions.
        pair_BYY: Gradient in each sentence's transitions.

    Returns:
        Gradients in the order of the chain's fields.
    """
    scale_B = scale_B.to(token_BTY.dtype)
    token_BTY = token_BTY.mul_(scale_B[:, None, None])
    transitions = _gradient_of(chain.transitions, scale_B, pair_BYY)
    ones_B = torch.ones_like(scale_B)  # the rows are scaled already
    start = _gradient_of(chain.start, ones_B, token_BTY[:, 0])
    end = None if chain.end is None else _gradient_of(chain.end, ones_B, end_rows(token_BTY, chain.lengths_B))
    return token_BTY, None, transitions, start, end


def _gradient_of(scores: Tensor | None, scale_B: Tensor, gradient_BX: Tensor) -> Tensor | None:
    """Return the scaled gradient in scores [B, …], or its sum over sentences in scores that they share."""
    if scores is None or not scores.requires_grad:
        return None
    if scores.dim() < gradient_BX.dim():
        return (scale_B @ gradient_BX.flatten(1)).view_as(scores)
    return gradient_BX * scale_B.view(-1, *[1] * (gradient_BX.dim() - 1))


class _Context(FunctionContext):
    teacher_BTY: Tensor
    requested: dict[str, bool]
    gradients: Sequence[Tensor] | None
    """Gradients in the emissions and in the transitions."""


class LogPartition(Function):
    """log Z [B] in float64."""

    @staticmethod
    def forward(ctx: _Context, *parts: Tensor) -> Tensor:
        """Compute the value, and the gradients if they are needed."""
        ctx.save_for_backward(*parts)
        ctx.requested = {"token": any(ctx.needs_input_grad), "pair": ctx.needs_input_grad[2]}
        log_z_B, _, *ctx.gradients = engine.sums(Chain.unchecked(*parts), **ctx.requested)[:4]
        return log_z_B.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, scale_B: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """Scale the gradients kept by `forward`."""
        chain = Chain.unchecked(*ctx.saved_tensors)
        # the rows are scaled in place, so a second backward computes them again
        gradients, ctx.gradients = ctx.gradients, None
        gradients = gradients or engine.sums(chain, **ctx.requested)[2:4]
        return spread_gradient(chain, scale_B, gradients[0], gradients[1])


class Marginals(Function):
    """Token marginals [B, T, Y] and, if requested, expected transitions [B, Y, Y]."""

    @staticmethod
    def forward(ctx: FunctionContext, pair: bool, *parts: Tensor) -> tuple[Tensor, Tensor | None]:
        """Compute the marginals."""
        ctx.save_for_backward(*parts)
        sums = engine.sums(Chain.unchecked(*parts), pair=pair)
        return sums.token_BTY, sums.pair_BYY if pair else None

    @staticmethod
    @once_differentiable
    def backward(
        ctx: FunctionContext, along_BTY: Tensor, along_BYY: Tensor | None
    ) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """Multiply by the Hessian of log Z."""
        chain = Chain.unchecked(*ctx.saved_tensors)
        if along_BYY is None or not bool(along_BYY.any()):
            gradients = engine.covariance(chain, along_BTY)
        else:  # no loss differentiates expected transitions, so this is not compiled
            gradients = reference.covariance(chain, along_BTY, along_BYY)
        return None, *spread_gradient(chain, torch.ones_like(along_BTY[:, 0, 0]), *gradients)


class PosteriorKL(Function):
    """Σ_t KL(q_t ‖ p_t) [B]."""

    @staticmethod
    def forward(ctx: _Context, teacher_BTY: Tensor, *parts: Tensor) -> Tensor:
        """Compute the value, and the gradients if they are needed."""
        ctx.save_for_backward(*parts)
        ctx.teacher_BTY = teacher_BTY
        ctx.requested = {"token": any(ctx.needs_input_grad), "pair": ctx.needs_input_grad[3]}
        value_B, *ctx.gradients = engine.posterior(Chain.unchecked(*parts), teacher_BTY, **ctx.requested)
        return value_B.to(parts[0].dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, scale_B: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """Scale the gradients kept by `forward`."""
        chain = Chain.unchecked(*ctx.saved_tensors)
        gradients, ctx.gradients = ctx.gradients, None
        gradients = gradients or engine.posterior(chain, ctx.teacher_BTY, **ctx.requested)[1:]
        return None, *spread_gradient(chain, scale_B, gradients[0], gradients[1])


def log_partition(chain: Chain) -> Float[Tensor, " batch"]:
    """Return log Z [B]: the log of the summed exponentiated scores of all labellings, in nats; −∞ if none is allowed.

    Differentiable; the gradient in the emissions is the token marginals.
    """
    return log_partition_64(chain).to(chain.dtype)


def log_partition_64(chain: Chain) -> Tensor:
    """Return log Z [B] in float64, so that a difference of large values stays accurate.

    Gradients have the chain's dtype.
    """
    return LogPartition.apply(*chain.parts())  # type: ignore[return-value]


def token_marginals(chain: Chain) -> Float[Tensor, "batch time tag"]:
    """Return p(y_t = y) [B, T, Y]: zero on padding, the rows of tokens sum to one. Differentiable."""
    return moment_tensors(chain, pairwise=False)[0]


def moment_tensors(chain: Chain, *, pairwise: bool) -> tuple[Tensor, Tensor | None]:
    """Return token marginals [B, T, Y] and, if requested, expected transitions summed over time [B, Y, Y]."""
    return Marginals.apply(pairwise, *chain.parts())  # type: ignore[return-value]
