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
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures.device import holds, indices

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Int

BEGIN, INSIDE, END, SINGLE, OUTSIDE = range(5)


@dataclass(frozen=True)
class SpanTags:
    """Which number each BIOES tag has: one begin, inside, end and single tag per label, in the order of the labels.

    Raises ValueError unless the numbers are 0 … 4 L, each once.
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
        return len(self.begin)

    @property
    def in_order(self) -> tuple[int, ...]:
        """All tags: begin, inside, end and single of every label, then outside."""
        return (*self.begin, *self.inside, *self.end, *self.single, self.outside)

    def roles(self, device: torch.device) -> tuple[Int[Tensor, " tag"], Int[Tensor, " tag"]]:
        """The role of each tag (BEGIN … OUTSIDE) and its label (0 for outside)."""
        place_Y = indices(self.in_order, device).argsort()
        return place_Y // self.labels, place_Y % self.labels

    def numbers(self, device: torch.device) -> Int[Tensor, "role label"]:
        """The tag of each role and label; every column of the last row is outside."""
        outside = (self.outside,) * self.labels
        return indices((*self.in_order[:-1], *outside), device).view(OUTSIDE + 1, self.labels)


@dataclass(frozen=True, eq=False)
class Spans:
    """Scores of every possible entity of a batch of ragged sentences; checked once, here.

    scores_BTTL: floating point [B, T, T, L], [b, i, j, l] from word i to word j; only i ≤ j within a sentence's length
    is read.
    lengths_B: integers [B] in 1..T.
    tags: the numbers of the entities' BIOES tags.

    Half-precision scores are widened to float32. Raises ValueError where shapes, dtypes, devices or lengths do not fit
    together.
    """

    scores_BTTL: Tensor
    lengths_B: Tensor
    tags: SpanTags

    def __post_init__(self) -> None:
        _check(self)
        if self.dtype not in (torch.float32, torch.float64):
            object.__setattr__(self, "scores_BTTL", self.scores_BTTL.float())

    @property
    def batch(self) -> int:
        return self.scores_BTTL.shape[0]

    @property
    def time(self) -> int:
        return self.scores_BTTL.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.scores_BTTL.dtype

    @property
    def device(self) -> torch.device:
        return self.scores_BTTL.device

    @property
    def mask_BT(self) -> Bool[Tensor, "batch time"]:
        """True on words, False on padding."""
        return torch.arange(self.time, device=self.device) < self.lengths_B[:, None]

    @property
    def mask_BTT(self) -> Bool[Tensor, "batch time time"]:
        """True where an entity is possible: it ends where it begins or later, within the sentence."""
        upper_TT = torch.ones(self.time, self.time, dtype=torch.bool, device=self.device).triu()
        return upper_TT & self.mask_BT[:, None, :]

    def unchecked(self, scores_BTTL: Tensor) -> Spans:
        """The spans with scores that come from checked ones, without a second check."""
        spans = copy(self)
        object.__setattr__(spans, "scores_BTTL", scores_BTTL)
        return spans

    def map(self, change: Callable[[Tensor], Tensor]) -> Spans:
        """The spans whose scores are `change(scores)`; divided by ϑ, for example, for a global temperature ϑ."""
        return Spans(change(self.scores_BTTL), self.lengths_B, self.tags)


def _check(spans: Spans) -> None:
    scores, lengths = spans.scores_BTTL, spans.lengths_B
    if scores.dim() != 4 or not scores.is_floating_point() or scores.shape[1] != scores.shape[2]:
        raise ValueError(
            f"span scores must be floating point [batch, time, time, label]; got {scores.dtype} {list(scores.shape)}"
        )
    B, T, _, L = scores.shape
    if T < 1 or spans.tags.labels != L:
        raise ValueError(
            f"span scores need at least one word and the {spans.tags.labels} labels of their tags; "
            f"got {list(scores.shape)}"
        )
    if tuple(lengths.shape) != (B,) or lengths.is_floating_point() or lengths.device != scores.device:
        raise ValueError(
            f"lengths must be integers [{B}] on {scores.device}; got {lengths.dtype} {list(lengths.shape)} on "
            f"{lengths.device}"
        )
    if B and not holds((lengths >= 1) & (lengths <= T)):
        raise ValueError(f"lengths must lie in 1..{T} (the scores' time); got {lengths.tolist()}")
