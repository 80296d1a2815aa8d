"""The best tree of a sentence: from the arcs of a parser, or from the labels of a student.

Shapes: B sentences, T words of the longest, H = T + 1 heads that a word may have (0 the root, h the word h − 1), C
head codes, Y labels, R relations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from raykd.forms.tree.codes import NONE, TreeLabels
from raykd.structures import Arcs, Chain, are_trees, best_trees
from raykd.structures.labelled_arcs import FORBIDDEN, LabelledArcs

if TYPE_CHECKING:
    from torch import Tensor


class Parse(NamedTuple):
    """The predicted tree of one sentence."""

    heads_T: np.ndarray
    """0 is the root, h the word h − 1."""
    relations_T: np.ndarray
    """Numbers in the corpus' tag set, or names."""
    repaired_T: np.ndarray
    """True if the head is not the word's best one, because the best heads are not a tree."""


def parses_of_arcs(chain: Chain) -> list[Parse]:
    """Return the best trees of a parser, with each word's best relation to its head.

    Args:
        chain: Scores of labelled arcs as emissions, B sentences.
    """
    arcs = LabelledArcs.from_chain(chain)
    best_BT, heads_BT = best_heads(arcs.arcs_BTH, chain.lengths_B)
    relations_BT = arcs.relations_BTHR.argmax(3).gather(2, heads_BT[:, :, None])[:, :, 0]
    return _parses(heads_BT, relations_BT, heads_BT != best_BT, chain.lengths_B)


def parses_of_labels(chain: Chain, labels: TreeLabels, codes_BTH: np.ndarray) -> list[Parse]:
    """Return the best trees of a student; the score of a head is that of the best label for it.

    Args:
        chain: Scores of the labels, B sentences.
        labels: The student's labels.
        codes_BTH: Code of each possible head, from `TreeLabels.codes`.
    """
    scores_BTY = chain.emissions_BTY.log_softmax(2).numpy()
    # Labels sorted by code: the score of a code is the maximum of one run of labels. Every code has a label.
    order_Y = np.argsort(labels.codes_Y, kind="stable")
    starts_C = np.searchsorted(labels.codes_Y[order_Y], np.arange(labels.codes_Y.max() + 1))
    scores_BTC = np.maximum.reduceat(scores_BTY[:, :, order_Y], starts_C, axis=2)
    # NONE is −1: it indexes the extra column behind the last code.
    scores_BTC = np.pad(scores_BTC, ((0, 0), (0, 0), (0, 1)), constant_values=FORBIDDEN)
    scores_BTH = torch.from_numpy(np.take_along_axis(scores_BTC, codes_BTH, 2))
    _, heads_BT = best_heads(scores_BTH, chain.lengths_B)
    codes_BT1 = np.take_along_axis(codes_BTH, heads_BT[:, :, None].numpy(), 2)
    best_BT = scores_BTY.argmax(2)
    with_head_BTY = np.where(labels.codes_Y == codes_BT1, scores_BTY, -np.inf)
    labels_BT = np.where(codes_BT1[:, :, 0] == NONE, best_BT, with_head_BTY.argmax(2))
    repaired_BT = labels.codes_Y[best_BT] != codes_BT1[:, :, 0]
    return _parses(heads_BT, labels.relations_Y[labels_BT], repaired_BT, chain.lengths_B)


def best_heads(scores_BTH: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best head of each word by itself, and the heads of the best trees, both [B, T].

    Args:
        scores_BTH: Scores of heads.
        lengths_B: Words of each sentence.
    """
    arcs = Arcs(scores_BTH, lengths_B)
    best_BT = arcs.possible().argmax(2)
    heads_BT, sentences = best_BT.clone(), torch.nonzero(~are_trees(arcs, best_BT))[:, 0]
    if len(sentences):
        heads_BT[sentences] = best_trees(Arcs(scores_BTH[sentences], lengths_B[sentences]))[0]
    return best_BT, heads_BT


def _parses(heads_BT: Any, relations_BT: Any, repaired_BT: Any, lengths_B: Tensor) -> list[Parse]:
    parts = [np.asarray(part) for part in (heads_BT, relations_BT, repaired_BT)]
    return [Parse(*(part[b, :length] for part in parts)) for b, length in enumerate(lengths_B.tolist())]
