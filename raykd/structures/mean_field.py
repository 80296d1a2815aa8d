"""Second-order dependency parsing by mean field (Wang & Tu, AACL 2020): arcs also score in pairs.

Shapes: B batch, T time (words), H = T + 1 heads, N iterations; word t is head t + 1.
Heads are independent variables, one per word, and an analysis scores its arcs and its pairs of arcs:

    Σ_t s[t, h_t]  +  Σ_{t < u, h_t = h_u = h} sib[h, t, u]  +  Σ_{t under word m, m under g} gp[m, t, g]

with sib[h, t, u] = sib[h, u, t]. Q(t ← h) is the probability that the head of t is h. Each iteration sets the logits of
a word's heads to their expected scores under the distributions of the other words:

    Q(t ← h) ∝ exp(s[t, h] + Σ_u Q(u ← h) sib[h, t, u] + Σ_g Q(m ← g) gp[m, t, g] + Σ_u Q(u ← t) gp[t, u, h])

m the word that h is (no such term for the root), u never t or m, g never t; Q starts as the softmax of s. A word has
one head, so there are no co-parents, two heads of one word, to score: the paper has them for graphs only, and uses
siblings and grandparents for trees. Time and memory are O(T³) for each sentence: 4 (T + 1)³ bytes in float32 for each
kind of pair, twice with a gradient.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from raykd.structures.function_context import FunctionContext

if TYPE_CHECKING:
    from jaxtyping import Float

    from raykd.structures.arcs import Arcs


def mean_field(
    arcs: Arcs,
    *,
    siblings_BHTT: Float[Tensor, "batch head time time"] | None = None,
    grandparents_BTTH: Float[Tensor, "batch time time head"] | None = None,
    iterations: int = 3,
) -> Arcs:
    """Return independent heads with log-marginals log Q after some iterations; without pairs, the arcs as they are.

    The scores of the result are a model's second-order scores: `best_trees` decodes them. Differentiable.

    Args:
        arcs: First-order scores.
        siblings_BHTT: Scores [b, h, t, u] of words t and u both under head h; a model makes them symmetric in t and u.
            Values beyond a sentence's length, and pairs of a word with itself, are not read, here and below.
        grandparents_BTTH: Scores [b, m, t, g] of word t under word m, which is under head g.
        iterations: Number of updates of Q.

    Raises:
        ValueError: Shapes do not fit the arcs, or iterations are below one.
    """
    _check(arcs, siblings_BHTT, grandparents_BTTH, iterations)
    if siblings_BHTT is None and grandparents_BTTH is None:
        return arcs
    distinct_TT = ~torch.eye(arcs.time, dtype=torch.bool, device=arcs.device)
    if siblings_BHTT is not None:
        # Contiguous, as `where` takes the memory order of the mask: every later product would copy the pairs.
        under_BHT = arcs.mask_BTH.transpose(1, 2).contiguous()
        together_BHTT = under_BHT[:, :, :, None] & under_BHT[:, :, None] & distinct_TT
        siblings_BHTT = torch.where(together_BHTT, siblings_BHTT.to(arcs.dtype), 0)
    if grandparents_BTTH is not None:
        above_BTTH = distinct_TT[..., None] & arcs.mask_BTH[:, None] & arcs.mask_BTH[:, :, None]
        grandparents_BTTH = torch.where(above_BTTH, grandparents_BTTH.to(arcs.dtype), 0)
    scores_BTH = arcs.possible()
    none_BT1 = (scores_BTH == -inf).all(2, keepdim=True)
    # A word without a possible head must not give NaN; its sentence has no analysis.
    scores_BTH = torch.where(none_BT1, 0, scores_BTH)
    added_BTH = _Iterations.apply(scores_BTH, siblings_BHTT, grandparents_BTTH, iterations)
    return replace(arcs, scores_BTH=arcs.scores_BTH + added_BTH)  # type: ignore[operator]


def _iterate(
    scores_BTH: Tensor, siblings_BHTT: Tensor | None, grandparents_BTTH: Tensor | None, count: int
) -> tuple[Tensor, list[Tensor]]:
    """Return the scores added by the pairs in the last iteration, and Q before each iteration."""
    added_BTH, q_before = torch.zeros_like(scores_BTH), []
    for _ in range(count):
        q_before.append(torch.softmax(scores_BTH + added_BTH, 2))
        added_BTH = _expected(q_before[-1], siblings_BHTT, grandparents_BTTH)
    return added_BTH, q_before


class _Iterations(Function):
    """`_iterate` with a faster gradient.

    The gradient in siblings or grandparents, O(T³) numbers, is one matrix product over all iterations; autograd would
    compute one for each iteration, and add them.
    """

    @staticmethod
    def forward(
        ctx: FunctionContext, scores: Tensor, siblings: Tensor | None, grandparents: Tensor | None, count: int
    ) -> Tensor:
        added, q_before = _iterate(scores, siblings, grandparents, count)
        ctx.save_for_backward(scores, siblings, grandparents, *q_before)  # type: ignore[arg-type]  # takes None too
        return added

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionContext, gradient_BTH: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        scores, siblings, grandparents, *q_before = ctx.saved_tensors
        scores_gradient, added_gradients = torch.zeros_like(scores), []
        for q_BTH in reversed(q_before):
            added_gradients.append(gradient_BTH)
            q_gradient_BTH = _expected_backward(gradient_BTH, siblings, grandparents)
            gradient_BTH = q_BTH * (q_gradient_BTH - (q_BTH * q_gradient_BTH).sum(2, keepdim=True))
            scores_gradient = scores_gradient + gradient_BTH
        q_BTHN, added_BTHN = torch.stack(q_before, 3), torch.stack(added_gradients[::-1], 3)
        siblings_gradient = grandparents_gradient = None
        if siblings is not None:
            siblings_gradient = q_BTHN.transpose(1, 2) @ added_BTHN.permute(0, 2, 3, 1)
        if grandparents is not None:
            # both terms of gp[m, t, g], in Q(t ← m) and in Q(m ← g), in one product
            word_BTTN = torch.cat([added_BTHN, q_BTHN], 3)[:, :, 1:].transpose(1, 2)
            middle_BTNH = torch.cat([q_BTHN, added_BTHN], 3).transpose(2, 3)
            grandparents_gradient = word_BTTN @ middle_BTNH
        return scores_gradient, siblings_gradient, grandparents_gradient, None


def _expected(q_BTH: Tensor, siblings_BHTT: Tensor | None, grandparents_BTTH: Tensor | None) -> Tensor:
    """Return the expected scores of the pairs of an arc [B, T, H], given the other words' Q."""
    expected_BTH = torch.zeros_like(q_BTH)
    if siblings_BHTT is not None:
        expected_BTH = expected_BTH + _from_left(q_BTH.transpose(1, 2), siblings_BHTT).transpose(1, 2)
    if grandparents_BTTH is not None:
        above_BTT = (grandparents_BTTH @ q_BTH[..., None]).squeeze(-1).transpose(1, 2)
        expected_BTH = expected_BTH + torch.nn.functional.pad(above_BTT, (1, 0))
        expected_BTH = expected_BTH + _from_left(q_BTH[:, :, 1:].transpose(1, 2), grandparents_BTTH)
    return expected_BTH


def _expected_backward(
    result_gradient_BTH: Tensor, siblings_BHTT: Tensor | None, grandparents_BTTH: Tensor | None
) -> Tensor:
    """Return the gradient of `_expected` in Q from the gradient of the result: the transpose."""
    gradient_BTH = torch.zeros_like(result_gradient_BTH)
    if siblings_BHTT is not None:
        by_head_BHT1 = siblings_BHTT @ result_gradient_BTH.transpose(1, 2)[..., None]
        gradient_BTH = gradient_BTH + by_head_BHT1.squeeze(-1).transpose(1, 2)
    if grandparents_BTTH is not None:
        # The two terms for grandparents in `_expected` are each other's transposes.
        gradient_BTH = gradient_BTH + _expected(result_gradient_BTH, None, grandparents_BTTH)
    return gradient_BTH


def _from_left(weights: Tensor, rows: Tensor) -> Tensor:
    """Return Σ_u weights[.., u] rows[.., u, t]."""
    return (weights[..., None, :] @ rows).squeeze(-2)


def _check(arcs: Arcs, siblings: Tensor | None, grandparents: Tensor | None, iterations: int) -> None:
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1; got {iterations}")
    B, T, H = arcs.scores_BTH.shape
    for name, part, shape in (
        ("siblings", siblings, (B, H, T, T)),
        ("grandparents", grandparents, (B, T, T, H)),
    ):
        if part is not None and tuple(part.shape) != shape:
            raise ValueError(f"{name} must be {list(shape)} with {T} words; got {list(part.shape)}")
