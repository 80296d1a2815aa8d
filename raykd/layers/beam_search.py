"""Step-by-step generation of the most probable sequence of labels: greedily, or by beam search.

A sequence is complete when its brackets are balanced: each label opens one (+1), closes one (−1) or does neither, and
the step after which none is open is the last. So no label is needed that marks the end.

Shapes: B sentences, A unfinished sentences, K hypotheses of a sentence, N hypotheses of all unfinished sentences,
L labels, S steps.
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
"""`(parents_N, labels_N) → log_p_NL`: extend each hypothesis by a label and return log-probabilities of the next ones.

Hypothesis n extends hypothesis `parents_N[n]` of the previous call by the label `labels_N[n]`. In the first call the
parents are the B sentences, and the labels −1."""


def beam_search(
    extend: Continue,
    change_L: Int[Tensor, " label"],
    max_steps_B: Int[Tensor, " batch"],
    *,
    beam: int = 1,
    exactly: bool = False,
) -> tuple[Int[Tensor, "batch step"], Float[Tensor, "batch step"], Int[Tensor, " batch"]]:
    """Return the most probable sequence of labels per sentence.

    At each step the `beam` most probable hypotheses of a sentence stay, complete and open ones together. Hypotheses are
    ranked by the sum of the log-probabilities of their labels. The sum is not divided by the length: of two sequences
    with equally probable steps the shorter one wins. The search ends as soon as the best hypothesis is complete, since
    extending one only makes it less probable, or after `max_steps_B` steps. Then the best complete hypothesis is taken,
    or the best open one where none is complete. A beam of 1 is greedy search; a beam as large as the number of all
    sequences finds the most probable complete one.

    Args:
        extend: the model.
        change_L: change in the number of open brackets that each label makes.
        max_steps_B: largest number of steps of each sentence.
        beam: hypotheses kept for a sentence.
        exactly: generate `max_steps_B` steps even if a sequence is complete earlier: to measure time.

    Returns:
        The labels [B, S], their log-probabilities [B, S], and the length of each sequence [B].
    """
    device, max_steps = max_steps_B.device, int(max_steps_B.max())
    row_A = torch.arange(len(max_steps_B), device=device)
    log_p_NL = extend(row_A, torch.full_like(row_A, -1))
    hypotheses = _Hypotheses.empty(log_p_NL, max_steps)
    best = _Best(
        torch.zeros(len(row_A), max_steps, dtype=torch.long, device=device),
        log_p_NL.new_zeros(len(row_A), max_steps),
        torch.zeros_like(row_A),
    )
    for step in range(max_steps):
        hypotheses, parents_AK = hypotheses.best_extensions(log_p_NL, change_L, step, beam, ends=not exactly)
        ended_A = (max_steps_B[row_A] == step + 1) | hypotheses.complete_AK[:, 0]
        best.set(row_A, hypotheses, ended_A)
        row_A, hypotheses, parents_AK = row_A[~ended_A], hypotheses.select(~ended_A), parents_AK[~ended_A]
        if not len(row_A):
            break
        log_p_NL = extend(parents_AK.flatten(), hypotheses.labels_AKS[:, :, step].flatten())
    return best.labels_BS, best.log_p_BS, best.lengths_B


@dataclass(frozen=True)
class _Hypotheses:
    """K sequences per unfinished sentence, the most probable first."""

    labels_AKS: Tensor
    log_p_AKS: Tensor
    score_AK: Tensor
    depth_AK: Tensor
    """Number of open brackets."""
    length_AK: Tensor
    complete_AK: Tensor

    @classmethod
    def empty(cls, log_p_AL: Tensor, max_steps: int) -> _Hypotheses:
        """Return one hypothesis without labels per sentence."""
        rows, device = len(log_p_AL), log_p_AL.device
        counts = torch.zeros(rows, 1, dtype=torch.long, device=device)
        labels_AKS = torch.zeros(rows, 1, max_steps, dtype=torch.long, device=device)
        scores = log_p_AL.new_zeros(rows, 1, max_steps)
        return cls(labels_AKS, scores, scores[:, :, 0], counts, counts, counts.bool())

    def select(self, rows_A: Tensor) -> _Hypotheses:
        """Return the hypotheses of some sentences."""
        return _Hypotheses(*(getattr(self, column.name)[rows_A] for column in fields(self)))

    def best_extensions(
        self, log_p_NL: Tensor, change_L: Tensor, step: int, beam: int, *, ends: bool
    ) -> tuple[_Hypotheses, Tensor]:
        """Return the best among all extensions by one label and the complete hypotheses, and the parents [A, K].

        A parent is the number of a hypothesis of the step before, counted over all unfinished sentences. With `ends`, a
        hypothesis with balanced brackets is complete.
        """
        rows, count = self.score_AK.shape
        log_p_AKL = log_p_NL.view(rows, count, -1)
        labels = log_p_AKL.shape[2]
        total_AKL = self.score_AK[:, :, None] + log_p_AKL
        # A complete hypothesis competes once, in the place of its extension by label 0.
        is_zero_L = torch.arange(labels, device=change_L.device) == 0
        stays_AKL = torch.where(is_zero_L, self.score_AK[:, :, None], -math.inf)
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
        hypotheses = _Hypotheses(labels_AKS, log_p_AKS, score_AK, depth_AK, length_AK, complete_AK)
        return hypotheses, parent_AK + count * torch.arange(rows, device=parent_AK.device)[:, None]


@dataclass(frozen=True)
class _Best:
    """The best sequence of each finished sentence, zeros for the others."""

    labels_BS: Tensor
    log_p_BS: Tensor
    lengths_B: Tensor

    def set(self, row_A: Tensor, hypotheses: _Hypotheses, ended_A: Tensor) -> None:
        """Store the best hypothesis of the finished sentences: a complete one if there is any."""
        rows = ended_A.nonzero()[:, 0]
        best = (rows, hypotheses.complete_AK[rows].long().argmax(1))  # the first complete one
        self.labels_BS[row_A[rows]] = hypotheses.labels_AKS[best]
        self.log_p_BS[row_A[rows]] = hypotheses.log_p_AKS[best]
        self.lengths_B[row_A[rows]] = hypotheses.length_AK[best]
