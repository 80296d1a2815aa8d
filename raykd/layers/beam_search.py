"""The most probable sequence of labels that a model generates step by step: greedily, or by beam search.

A sequence is complete where its brackets are: each label opens one (+1), closes one (−1) or does neither, and with the
step after which none is open the sequence ends. So none needs a label that marks its end.

Shapes: B sentences, A of them that go on, K hypotheses of a sentence, N hypotheses of all that go on, L labels, S
steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Continue = Callable[[Tensor, Tensor], Tensor]
"""`(parents_N, labels_N) → log_p_NL`: hypothesis n goes on from number `parents_N[n]` of the call before by the label
`labels_N[n]`; the log-probability of every label that may follow. In the first call the parents are the B sentences,
and the labels −1."""


def beam_search(
    go_on: Continue,
    change_L: Int[Tensor, " label"],
    most_B: Int[Tensor, " batch"],
    *,
    beam: int = 1,
    exactly: bool = False,
) -> tuple[Int[Tensor, "batch step"], Float[Tensor, "batch step"], Int[Tensor, " batch"]]:
    """The labels [B, S] of the best sequence that is found for each sentence, their log-probabilities, and its length.

    At each step the `beam` most probable hypotheses of a sentence stay, complete and open ones together, by the sum of
    the log-probabilities of their labels: it is not divided by their length, so of two that are equally probable step
    by step the shorter one wins. The search ends where the best of them is complete, since what goes on only becomes
    less probable, or after `most_B` steps: then it gives the best complete one, or the best open one where none is.
    With a beam of 1 it is greedy; with one as large as the number of all sequences it finds the most probable complete
    one.

    Args:
        change_L: what each label does to the number of open brackets.
        exactly: generate `most_B` steps whether brackets are open or not: to measure time.
    """
    device, most = most_B.device, int(most_B.max())
    row_A = torch.arange(len(most_B), device=device)
    log_p_NL = go_on(row_A, torch.full_like(row_A, -1))
    open_A = _Hypotheses.none(log_p_NL, most)
    best_B = _Best(
        torch.zeros(len(row_A), most, dtype=torch.long, device=device),
        log_p_NL.new_zeros(len(row_A), most),
        torch.zeros_like(row_A),
    )
    for step in range(most):
        open_A, parents_AK = open_A.continued(log_p_NL, change_L, step, beam, ends=not exactly)
        ended_A = (most_B[row_A] == step + 1) | open_A.complete_AK[:, 0]
        best_B.set(row_A, open_A, ended_A)
        row_A, open_A, parents_AK = row_A[~ended_A], open_A.of(~ended_A), parents_AK[~ended_A]
        if not len(row_A):
            break
        log_p_NL = go_on(parents_AK.flatten(), open_A.labels_AKS[:, :, step].flatten())
    return best_B.labels_BS, best_B.log_p_BS, best_B.lengths_B


@dataclass(frozen=True)
class _Hypotheses:
    """Of each sentence that goes on K sequences, the most probable first."""

    labels_AKS: Tensor
    log_p_AKS: Tensor
    score_AK: Tensor
    depth_AK: Tensor
    """How many brackets are open."""
    length_AK: Tensor
    complete_AK: Tensor

    @classmethod
    def none(cls, log_p_AL: Tensor, most: int) -> _Hypotheses:
        """One without labels for each sentence."""
        rows, device = len(log_p_AL), log_p_AL.device
        counts = torch.zeros(rows, 1, dtype=torch.long, device=device)
        labels_AKS = torch.zeros(rows, 1, most, dtype=torch.long, device=device)
        scores = log_p_AL.new_zeros(rows, 1, most)
        return cls(labels_AKS, scores, scores[:, :, 0], counts, counts, counts.bool())

    def of(self, rows_A: Tensor) -> _Hypotheses:
        """Those of some sentences."""
        return _Hypotheses(*(getattr(self, each.name)[rows_A] for each in fields(self)))

    def continued(
        self, log_p_NL: Tensor, change_L: Tensor, step: int, beam: int, *, ends: bool
    ) -> tuple[_Hypotheses, Tensor]:
        """The best ones that are a label longer, or complete already; and where each of them was, counted over all
        hypotheses [A, K].
        """
        rows, count = self.score_AK.shape
        log_p_AKL = log_p_NL.view(rows, count, -1)
        labels = log_p_AKL.shape[2]
        total_AKL = self.score_AK[:, :, None] + log_p_AKL
        # A complete one stays once, in the place of its first continuation.
        first_L = torch.arange(labels, device=change_L.device) == 0
        stays_AKL = torch.where(first_L, self.score_AK[:, :, None], -math.inf)
        total_AKL = torch.where(self.complete_AK[:, :, None], stays_AKL, total_AKL)
        score_AK, place_AK = total_AKL.flatten(1).topk(min(beam, count * labels))
        parent_AK, label_AK = place_AK // labels, place_AK % labels
        stay_AK = self.complete_AK.gather(1, parent_AK)
        labels_AKS = self.labels_AKS.take_along_dim(parent_AK[:, :, None], 1)
        log_p_AKS = self.log_p_AKS.take_along_dim(parent_AK[:, :, None], 1)
        labels_AKS[:, :, step] = label_AK.masked_fill(stay_AK, 0)
        log_p_AKS[:, :, step] = log_p_AKL.flatten(1).gather(1, place_AK).masked_fill(stay_AK, 0.0)
        depth_AK = self.depth_AK.gather(1, parent_AK) + change_L[label_AK].masked_fill(stay_AK, 0)
        length_AK = self.length_AK.gather(1, parent_AK) + (~stay_AK).long()
        complete_AK = stay_AK | (depth_AK <= 0) if ends else stay_AK
        found = _Hypotheses(labels_AKS, log_p_AKS, score_AK, depth_AK, length_AK, complete_AK)
        return found, parent_AK + count * torch.arange(rows, device=parent_AK.device)[:, None]


@dataclass(frozen=True)
class _Best:
    """What is found for each sentence."""

    labels_BS: Tensor
    log_p_BS: Tensor
    lengths_B: Tensor

    def set(self, row_A: Tensor, found: _Hypotheses, ended_A: Tensor) -> None:
        """Take over the best of the sentences that have ended: a complete one, where there is any."""
        rows = ended_A.nonzero()[:, 0]
        best = (rows, found.complete_AK[rows].long().argmax(1))  # the first one
        self.labels_BS[row_A[rows]] = found.labels_AKS[best]
        self.log_p_BS[row_A[rows]] = found.log_p_AKS[best]
        self.lengths_B[row_A[rows]] = found.length_AK[best]
