"""Second-order dependency parsing by mean field (Wang & Tu, AACL 2020): arcs also score in pairs.

Shapes: B batch, T time (words), H = T + 1 heads; word t is head t + 1.
Heads are independent variables, one per word, and an analysis scores its arcs and its pairs of arcs:

    Σ_t s[t, h_t]  +  Σ_{t < u, h_t = h_u = h} sib[h, t, u]  +  Σ_{t under word m, m under g} gp[m, t, g]

with sib[h, t, u] = sib[h, u, t]. Each iteration sets every word's distribution to what the others' expect of it:

    Q(t ← h) ∝ exp(s[t, h] + Σ_u Q(u ← h) sib[h, t, u] + Σ_g Q(m ← g) gp[m, t, g] + Σ_u Q(u ← t) gp[t, u, h])

m the word that h is (no such term for the root), u never t or m, g never t; Q starts as the softmax of s. A word has
one head, so there are no co-parents, two heads of one word, to score: the paper has them for graphs only, and uses
siblings and grandparents for trees. Time and memory are O(T³) for each sentence: 4 (T + 1)³ bytes in float32 for each
kind of pair, twice with a gradient.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import Function

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
    """Independent heads whose log-marginals are log Q after some iterations; without pairs, the arcs as they are.

    siblings_BHTT: [b, h, t, u], of words t and u both under head h; a model makes it symmetric in t and u.
    grandparents_BTTH: [b, m, t, g], of word t under word m, which is under head g.
    What lies beyond a sentence's length is not read, nor are pairs in which a word meets itself. The result's scores
    are a model's second-order scores: `as_trees` and `viterbi` decode them. Differentiable any number of times.

    Raises ValueError for arcs that are not independent heads, shapes that do not fit them or iterations below one.
    """
    _check(arcs, siblings_BHTT, grandparents_BTTH, iterations)
    other_TT = ~torch.eye(arcs.time, dtype=torch.bool, device=arcs.device)
    if siblings_BHTT is not None:
        under_BHT = arcs.mask_BTH.transpose(1, 2)
        together_BHTT = under_BHT[:, :, :, None] & under_BHT[:, :, None] & other_TT
        siblings_BHTT = torch.where(together_BHTT, siblings_BHTT.to(arcs.dtype), 0)
    if grandparents_BTTH is not None:
        above_BTTH = other_TT[..., None] & arcs.mask_BTH[:, None] & arcs.mask_BTH[:, :, None]
        grandparents_BTTH = torch.where(above_BTTH, grandparents_BTTH.to(arcs.dtype), 0)
    scores_BTH = arcs.possible()
    none_BT1 = (scores_BTH == float("-inf")).all(2, keepdim=True)
    scores_BTH = torch.where(
        none_BT1, 0, scores_BTH
    )  # a word without a head: no NaN, its sentence has no analysis
    logits_BTH = added_BTH = scores_BTH
    for _ in range(iterations):
        q_BTH = torch.softmax(logits_BTH, 2)
        added_BTH = _expected_pairs(q_BTH, siblings_BHTT, grandparents_BTTH)
        logits_BTH = scores_BTH + added_BTH
    return replace(arcs, scores_BTH=arcs.scores_BTH + added_BTH)


def _expected_pairs(q_BTH: Tensor, siblings_BHTT: Tensor | None, grandparents_BTTH: Tensor | None) -> Tensor:
    """What the pairs of each arc are expected to score [B, T, H], given the other words' Q."""
    found_BTH = torch.zeros_like(q_BTH)
    if siblings_BHTT is not None:
        found_BTH = found_BTH + _weighted(q_BTH.transpose(1, 2), siblings_BHTT).transpose(1, 2)
    if grandparents_BTTH is not None:
        above_BTT = (grandparents_BTTH * q_BTH[:, :, None]).sum(3).transpose(1, 2)
        found_BTH = found_BTH + torch.nn.functional.pad(above_BTT, (1, 0))
        found_BTH = found_BTH + _weighted(q_BTH[:, :, 1:].transpose(1, 2), grandparents_BTTH)
    return found_BTH


class _Weighted(Function):
    """Σ_u weights[.., u] rows[.., u, t]. The gradients as products of elements take half the time of autograd's bmm."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(weights, rows)
        return (weights[..., None, :] @ rows).squeeze(-2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        weights, rows = ctx.saved_tensors
        return (rows * gradient[..., None, :]).sum(-1), weights[..., None] * gradient[..., None, :]


def _weighted(weights: Tensor, rows: Tensor) -> Tensor:
    return _Weighted.apply(weights, rows)  # type: ignore[return-value]


def _check(arcs: Arcs, siblings: Tensor | None, grandparents: Tensor | None, iterations: int) -> None:
    if arcs.allowed != "heads":
        raise ValueError(
            f"mean field is of independent heads; got arcs of {arcs.allowed}; use as_trees on its result"
        )
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1; got {iterations}")
    B, T, H = arcs.scores_BTH.shape
    for name, part, shape in (
        ("siblings", siblings, (B, H, T, T)),
        ("grandparents", grandparents, (B, T, T, H)),
    ):
        if part is not None and tuple(part.shape) != shape:
            raise ValueError(f"{name} must be {list(shape)} with {T} words; got {list(part.shape)}")
