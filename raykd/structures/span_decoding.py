"""Segmentations as tag paths: scores of given paths, and the best path.

Shapes: B batch, T time (words), L labels, S = T + 1 boundaries of words: boundary j is before word j.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures.labelled_spans import BEGIN, END, INSIDE, OUTSIDE, SINGLE, Spans
from raykd.structures.padding import check_tags

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def score(spans: Spans, paths_BT: Int[Tensor, "batch time"]) -> Float[Tensor, " batch"]:
    """Return the scores of tag paths, −∞ for a path that is not valid BIOES. Differentiable.

    Args:
        spans: Scores of all entities.
        paths_BT: Tags; tags on padding are not read.

    Raises:
        ValueError: The shape does not fit the spans, or a tag is out of range.
    """
    role_BT, label_BT = _roles(spans, paths_BT)
    opens_BT = (role_BT != INSIDE) & (role_BT != END)
    start_BT = _last_true(opens_BT)
    closes_BT = (role_BT == END) | (role_BT == SINGLE)
    # each word's entity from its start to the word itself; only those of the closing words are summed
    offset_BT = (start_BT * spans.time + torch.arange(spans.time, device=spans.device)) * spans.tags.labels
    scores_BT = spans.scores_BTTL.flatten(1).gather(1, offset_BT + label_BT)
    total_B = torch.where(closes_BT, scores_BT, 0).sum(1, dtype=torch.float64).to(spans.dtype)
    return torch.where(_is_valid(role_BT, label_BT), total_B, -inf)


def viterbi(spans: Spans) -> tuple[Int[Tensor, "batch time"], Float[Tensor, " batch"]]:
    """Return the tag path of the best segmentation [B, T] (zero on padding) and its score [B], exactly; at least 0."""
    with torch.no_grad():
        best_BTT, label_BTT = torch.where(spans.mask_BTT[..., None], spans.scores_BTTL, -inf).max(3)
        word_BT, word_label_BT = (part.diagonal(dim1=1, dim2=2) for part in (best_BTT, label_BTT))
        # an entity of one word must score more than the word outside, which has label L here; `diagonal` is a view
        word_label_BT.masked_fill_(word_BT <= 0, spans.tags.labels)
        word_BT.clamp_(min=0)
        start_BT, score_B = _best_starts(best_BTT)
        return _segment_tags(spans, _begins(start_BT), label_BTT), score_B


def _best_starts(best_BTT: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first word [B, T] of the last segment of the best segmentation of words 0..t, and the best score."""
    B, T, _ = best_BTT.shape
    into_TBT = best_BTT.permute(2, 0, 1).contiguous()
    scores_BS = best_BTT.new_zeros(B, T + 1)
    start_BT = torch.zeros(B, T, dtype=torch.long, device=best_BTT.device)
    for j in range(T):
        best = torch.max(scores_BS[:, : j + 1] + into_TBT[j, :, : j + 1], 1)
        scores_BS[:, j + 1], start_BT[:, j] = best.values, best.indices
    return start_BT, scores_BS[:, -1]


def _begins(start_BT: Tensor) -> Tensor:
    """Return True where a segment of the best segmentation begins, traced from the end of the sentence."""
    B, T = start_BT.shape
    before_BS = torch.cat([start_BT.new_zeros(B, 1), start_BT], 1)  # from each boundary to the one before
    boundary_B1 = torch.full((B, 1), T, device=start_BT.device)
    begins_BT = torch.zeros(B, T, dtype=torch.bool, device=start_BT.device)
    for _ in range(T):
        boundary_B1 = before_BS.gather(1, boundary_B1)
        begins_BT.scatter_(1, boundary_B1, True)
    return begins_BT


def _segment_tags(spans: Spans, begins_BT: Tensor, label_BTT: Tensor) -> Tensor:
    """Return the tags of segments beginning where `begins_BT` is True, labelled `label_BTT[b, first, last]`."""
    T = spans.time
    ends_BT = torch.cat([begins_BT[:, 1:], torch.ones_like(begins_BT[:, :1])], 1)
    first_BT = _last_true(begins_BT)
    last_BT = T - 1 - _last_true(ends_BT.flip(1)).flip(1)
    label_BT = label_BTT.flatten(1).gather(1, first_BT * T + last_BT)
    role_BT = torch.where(begins_BT, torch.where(ends_BT, SINGLE, BEGIN), torch.where(ends_BT, END, INSIDE))
    outside_BT = label_BT == spans.tags.labels
    role_BT, label_BT = role_BT.masked_fill(outside_BT, OUTSIDE), label_BT.masked_fill(outside_BT, 0)
    return spans.tags.numbers(spans.device)[role_BT, label_BT].masked_fill(~spans.mask_BT, 0)


def _roles(spans: Spans, paths_BT: Tensor) -> tuple[Tensor, Tensor]:
    """Return roles (BEGIN … OUTSIDE) and labels of the tags [B, T], outside on padding."""
    if tuple(paths_BT.shape) != (spans.batch, spans.time):
        raise ValueError(f"paths must be [{spans.batch}, {spans.time}]; got {list(paths_BT.shape)}")
    paths_BT = paths_BT.long().masked_fill(~spans.mask_BT, spans.tags.outside)
    role_Y, label_Y = spans.tags.roles(spans.device)
    check_tags(paths_BT, len(role_Y))
    return role_Y[paths_BT], label_Y[paths_BT]


def _is_valid(role_BT: Tensor, label_BT: Tensor) -> Tensor:
    """Return True for valid BIOES paths [B]: every entity that begins also ends, under one label."""
    open_BT = (role_BT == BEGIN) | (role_BT == INSIDE)
    within_BT = (role_BT == INSIDE) | (role_BT == END)
    follows_BT = (open_BT[:, :-1] == within_BT[:, 1:]) & (
        ~open_BT[:, :-1] | (label_BT[:, :-1] == label_BT[:, 1:])
    )
    return follows_BT.all(1) & ~within_BT[:, 0] & ~open_BT[:, -1]


def _last_true(condition_BT: Tensor) -> Tensor:
    """Return, for each word, the last word up to it where the condition is true; 0 if there is none."""
    words_T = torch.arange(condition_BT.shape[1], device=condition_BT.device)
    return torch.where(condition_BT, words_T, 0).cummax(1).values
