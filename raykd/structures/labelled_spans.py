"""A batch of flat labelled segmentations: entities that never overlap, each a run of words with a label.

Shapes: B batch, T time (words, padded), L labels, Y = 4 L + 1 tags.
A segmentation scores the sum of its entities' scores; a word outside every entity scores 0:

    score(entities) = Σ_(i, j, l) scores[i, j, l]          from word i to word j, both included, of label l

So an entity's score is relative to no entity (NER as parsing: Yu et al. 2020; Wang et al., ACL 2021, case 4). A
score of −∞ forbids the entity, for example one that is too long. Each segmentation has exactly one sequence of BIOES
tags; `SpanTags` holds the number of each tag.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from raykd.structures.device import index_tensor
from raykd.structures.padding import PaddedBatch, check_form, check_lengths

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

BEGIN, INSIDE, END, SINGLE, OUTSIDE = range(5)


@dataclass(frozen=True)
class SpanTags:
    """Numbers of the BIOES tags: one begin, inside, end and single tag per label, and one outside tag.

    Attributes:
        begin: Begin tag of each label, in the order of the labels.
        inside: Inside tags, in the same order.
        end: End tags, in the same order.
        single: Single tags, in the same order.
        outside: The outside tag.

    Raises:
        ValueError: The numbers are not 0 … 4 L, each once.
    """

    begin: tuple[int, ...]
    inside: tuple[int, ...]
    end: tuple[int, ...]
    single: tuple[int, ...]
    outside: int

    def __post_init__(self) -> None:
        if sorted(self.in_order) != list(range(4 * self.labels + 1)):
            raise ValueError(
                f"span tags must be the numbers 0..{4 * self.labels}, each once and four per label; got {self}"
            )

    @property
    def labels(self) -> int:
        """Number of labels."""
        return len(self.begin)

    @property
    def in_order(self) -> tuple[int, ...]:
        """All tags: begin, inside, end and single of all labels, then outside."""
        return (*self.begin, *self.inside, *self.end, *self.single, self.outside)

    def roles(self, device: torch.device) -> tuple[Int[Tensor, " tag"], Int[Tensor, " tag"]]:
        """Return the roles (BEGIN … OUTSIDE) and labels (0 for outside) of all tags."""
        place_Y = index_tensor(self.in_order, device).argsort()
        return place_Y // self.labels, place_Y % self.labels

    def numbers(self, device: torch.device) -> Int[Tensor, "role label"]:
        """Return the tags by role and label; every column of the last row is outside."""
        outside = (self.outside,) * self.labels
        return index_tensor((*self.in_order[:-1], *outside), device).view(OUTSIDE + 1, self.labels)


@dataclass(frozen=True, eq=False)
class Spans(PaddedBatch):
    """Scores of all possible entities of a batch of ragged sentences; checked once, here.

    Half-precision scores are converted to float32.

    Attributes:
        scores_BTTL: Floating point [B, T, T, L]; [b, i, j, l] is the score of an entity from word i to word j with
            label l. Only i ≤ j within a sentence's length is read.
        lengths_B: Integers [B] in 1..T.
        tags: Numbers of the entities' BIOES tags.

    Raises:
        ValueError: Shapes, dtypes, devices or lengths do not fit together.
    """

    scores_BTTL: Tensor
    lengths_B: Tensor
    tags: SpanTags
    rows_field: ClassVar[str] = "scores_BTTL"

    def __post_init__(self) -> None:
        _check(self)
        self.widen(self.rows_field)

    @property
    def mask_BTT(self) -> Bool[Tensor, "batch time time"]:
        """True for possible entities: not ending before they begin, within the sentence."""
        upper_TT = torch.ones(self.time, self.time, dtype=torch.bool, device=self.device).triu()
        return upper_TT & self.mask_BT[:, None, :]

    def unchecked(self, scores_BTTL: Tensor) -> Spans:
        """Return the spans with scores from checked spans, without a second check."""
        spans = copy(self)
        object.__setattr__(spans, "scores_BTTL", scores_BTTL)
        return spans


def _check(spans: Spans) -> None:
    scores = spans.scores_BTTL
    square = scores.dim() == 4 and scores.shape[1] == scores.shape[2]
    check_form(scores, "span scores", "batch, time, time, label", fits=square)
    if scores.shape[1] < 1 or spans.tags.labels != scores.shape[3]:
        raise ValueError(
            f"span scores need at least one word and the {spans.tags.labels} labels of their tags; "
            f"got {list(scores.shape)}"
        )
    check_lengths(spans.lengths_B, scores, "span scores")
