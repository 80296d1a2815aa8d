"""Arcs with relations: the output of a parser, and its meaning in the labels of a student that labels words.

A parser gives P(head) and, for every head, P(relation | head) of each word. A student labels words, and each of its
labels stands for one head and one relation of the word (or for nothing, in a sentence without such a head).

Shapes: B batch, T time (words), H = T + 1 heads (0 the root, h the word h − 1), R relations, Y labels of the student,
K best labels of a word, N stored rows of a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, isqrt
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from raykd.structures.chain import Chain
from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

FORBIDDEN = -1e4
"""Log-probability of forbidden heads and labels: finite, so that its product with a probability of 0 is 0, and within
float16."""
MIN_LOG_PROBABILITY = -80.0
"""Log of the smallest probability that counts: e⁻⁸⁰, near the smallest float32 of full precision."""


@dataclass(frozen=True, eq=False)
class LabelledArcs:
    """Log-probabilities of arcs and relations, for a batch of ragged sentences.

    Attributes:
        arcs_BTH: log P(head) of each word; values beyond a sentence are never read.
        relations_BTHR: log P(relation | head) of each word, for all heads.
        lengths_B: Words of each sentence, integers [B] in 1..T.
    """

    arcs_BTH: Tensor
    relations_BTHR: Tensor
    lengths_B: Tensor

    @property
    def heads(self) -> int:
        """Number of heads, H."""
        return self.arcs_BTH.shape[2]

    @property
    def relations(self) -> int:
        """Number of relations, R."""
        return self.relations_BTHR.shape[3]

    def chain(self) -> Chain:
        """Return a chain of independent words with H · R tags, one per arc and relation: number head · R + relation."""
        labelled_BTHR = self.arcs_BTH[..., None] + self.relations_BTHR
        return Chain(labelled_BTHR.clamp_min(FORBIDDEN).flatten(2), self.lengths_B)

    @staticmethod
    def from_chain(chain: Chain) -> LabelledArcs:
        """Return the arcs of a chain with H · R tags, numbered as in `chain`."""
        scores_BTHR = chain.emissions_BTY.unflatten(2, (chain.time + 1, -1))
        arcs_BTH = scores_BTHR.logsumexp(3)
        return LabelledArcs(arcs_BTH.log_softmax(2), scores_BTHR - arcs_BTH[..., None], chain.lengths_B)

    @staticmethod
    def from_rows(
        arcs_BN1: Float[Tensor, "batch row 1"],
        relations_BNR: Float[Tensor, "batch row relation"],
        lengths_B: Int[Tensor, " batch"],
    ) -> LabelledArcs:
        """Return arcs from stored rows of log-probabilities; rounding is undone by renormalising.

        Row t · (n + 1) + h of a sentence of n words is its word t under head h.

        Args:
            arcs_BN1: log P(head), one number per row.
            relations_BNR: log P(relation | head), R numbers per row.
            lengths_B: Rows of each sentence, n(n + 1).
        """
        # The words n from the rows n(n + 1): n² < n(n + 1) < (n + 1)².
        words_B, time = lengths_B.double().sqrt().long(), isqrt(arcs_BN1.shape[1])
        heads_H = torch.arange(time + 1, device=arcs_BN1.device)
        words_T1, last_B11 = heads_H[:-1, None], words_B[:, None, None]
        beyond_BTH = (words_T1 >= last_B11) | (heads_H > last_B11)
        row_BTH = torch.where(beyond_BTH, 0, words_T1 * (last_B11 + 1) + heads_H)
        sentence_B11 = torch.arange(len(arcs_BN1), device=arcs_BN1.device)[:, None, None]
        arcs_BTH = arcs_BN1[sentence_B11, row_BTH, 0].masked_fill(beyond_BTH, FORBIDDEN).log_softmax(2)
        relations_BTHR = relations_BNR[sentence_B11, row_BTH].log_softmax(3)
        return LabelledArcs(
            arcs_BTH.masked_fill(beyond_BTH, FORBIDDEN),
            relations_BTHR.masked_fill(beyond_BTH[..., None], 0),
            words_B,
        )

    def softened(self, temperature: float) -> LabelledArcs:
        """Return arcs with scores divided by the temperature: heads and, per head, relations, both renormalised."""
        if temperature == 1:
            return self
        arcs_BTH, relations_BTHR = self.arcs_BTH / temperature, self.relations_BTHR / temperature
        return LabelledArcs(arcs_BTH.log_softmax(2), relations_BTHR.log_softmax(3), self.lengths_B)

    def label_log_scores(
        self, heads_BTY: Int[Tensor, "batch time label"], relation_Y: Int[Tensor, " label"]
    ) -> Float[Tensor, "batch time label"]:
        """Return log P(head) + log P(relation | head) of all labels (Wang et al., ACL 2021, Eq. 5).

        Labels that stand for no arc have FORBIDDEN. The probabilities of a word's labels need not sum to one:
        `expressed_mass` returns their sum.

        Args:
            heads_BTY: Head of each label for each word, negative if there is none.
            relation_Y: Relation of each label.
        """
        has_arc_BTY = heads_BTY >= 0
        heads_BTY = heads_BTY.clamp_min(0)
        arcs_BTY = self.arcs_BTH.gather(2, heads_BTY)
        relations_BTY = self.relations_BTHR.flatten(2).gather(2, heads_BTY * self.relations + relation_Y)
        return (arcs_BTY + relations_BTY).clamp_min(FORBIDDEN).masked_fill(~has_arc_BTY, FORBIDDEN)


def expressed_mass(
    labels_BTY: Float[Tensor, "batch time label"], lengths_B: Int[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """Return the probability that a student's labels express, summed over the words of a sentence [B].

    It is at most the number of words. The rest cannot be taught: no label stands for those heads with those relations.

    Args:
        labels_BTY: Log-scores from `LabelledArcs.label_log_scores`.
        lengths_B: Words of each sentence.
    """
    inside_BT = length_mask(lengths_B, labels_BTY.shape[1])
    return torch.where(inside_BT, _probabilities(labels_BTY).sum(2), 0).sum(1)


def _probabilities(logs_BTY: Tensor) -> Tensor:
    """Return exp, but 0 for values so small that float32 loses precision and processors take 6 to 19 times as long."""
    return torch.where(logs_BTY < MIN_LOG_PROBABILITY, 0, logs_BTY.clamp_min(MIN_LOG_PROBABILITY).exp())


@dataclass(frozen=True, eq=False)
class ArcsOnLabels:
    """A parser's arcs in terms of a student's labels: the target of a student that labels words.

    Attributes:
        arcs: The parser's arcs.
        heads_BTY: Head of each label for each word, negative if there is none.
        relation_Y: Relation of each label.
    """

    arcs: LabelledArcs
    heads_BTY: Tensor
    relation_Y: Tensor

    def log_scores(self, temperature: float = 1.0) -> Float[Tensor, "batch time label"]:
        """Return log P(label) of all words, from arcs with scores divided by the temperature (Eq. 5)."""
        if temperature == 1:
            return self._log_scores_BTY
        return self.arcs.softened(temperature).label_log_scores(self.heads_BTY, self.relation_Y)

    @cached_property
    def _log_scores_BTY(self) -> Tensor:
        # Both the loss and `unexpressed_words` read them.
        return self.arcs.label_log_scores(self.heads_BTY, self.relation_Y)

    def chain(self) -> Chain:
        """Return a chain of independent labels, renormalised over the labels that stand for an arc."""
        return Chain(self.log_scores().log_softmax(2), self.arcs.lengths_B)

    def marginals(
        self, temperature: float = 1.0, mode: Literal["local", "global"] = "local"
    ) -> Float[Tensor, "batch time label"]:
        """Return P(label) of all words, 0 on padding. A word's sum, at most 1, is the probability that labels express.

        Args:
            temperature: ϑ, above 0.
            mode: "global" divides the scores of arcs and relations by ϑ. "local" softens the probabilities of the
                labels and keeps their sum.
        """
        logs_BTY = self.log_scores(temperature if mode == "global" else 1.0)
        if mode == "local" and temperature != 1:
            softened_BTY = (logs_BTY / temperature).log_softmax(2)
            logs_BTY = softened_BTY + logs_BTY.logsumexp(2, keepdim=True)
        return torch.where(self.mask_BT[:, :, None], _probabilities(logs_BTY), 0)

    def best(self, k: int) -> tuple[Int[Tensor, "batch best time"], Float[Tensor, "batch best time"]]:
        """Return the k best labels of all words [B, K, T], 0 on padding, with their log-probabilities.

        A log-probability is −∞ if the word has fewer labels. K is k, or Y if that is less.

        Args:
            k: Number of labels.
        """
        logs_BTK, labels_BTK = self.log_scores().topk(min(k, len(self.relation_Y)), 2)
        logs_BTK = logs_BTK.masked_fill(logs_BTK <= FORBIDDEN, -inf)
        inside_BTK = self.mask_BT[:, :, None].expand_as(logs_BTK)
        return torch.where(inside_BTK, labels_BTK, 0).transpose(1, 2), torch.where(
            inside_BTK, logs_BTK, 0
        ).transpose(1, 2)

    def unexpressed_words(self) -> Float[Tensor, " batch"]:
        """Return the probability that no label expresses, summed over the words of a sentence [B]."""
        return self.arcs.lengths_B - expressed_mass(self.log_scores(), self.arcs.lengths_B)

    @property
    def mask_BT(self) -> Bool[Tensor, "batch time"]:
        """True on words, False on padding."""
        return length_mask(self.arcs.lengths_B, self.heads_BTY.shape[1])
