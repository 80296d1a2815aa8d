"""A checkpoint's labels as tags of a task.

Shapes: B batch, T time (words), L labels of the checkpoint, N names they stand for, X span types, Y tags.

A token classifier gives each word a distribution over its own labels, independently of the other words.
Labels are matched to tags by name. An IOB2 checkpoint becomes BIOES exactly: whether a span continues or
ends at word t depends on word t + 1, and since words are independent,

    P(S-X at t) = P(B-X at t) · (1 − P(I-X at t+1))        P(B-X at t) = P(B-X at t) · P(I-X at t+1)
    P(E-X at t) = P(I-X at t) · (1 − P(I-X at t+1))        P(I-X at t) = P(I-X at t) · P(I-X at t+1)

with IOB2 probabilities on the right, and P(I-X) = 0 after the last word. These are the token marginals of
the BIOES reading of the checkpoint's distribution; P(O) stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from raykd.errors import StoreError
from raykd.structures.device import index_tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.forms import TagSet

_NAMELESS = re.compile(r"LABEL_\d+")


@dataclass(frozen=True)
class LabelMap:
    """The correspondence of a checkpoint's labels and the tags of a task. Build it with `match_labels`.

    Attributes:
        groups: for each name, the labels that stand for it. With scheme `iob2` the names are O, all B-X, all I-X (X in
            the order of `types`); else they are the tags themselves, in their order.
        scheme: `iob2` where names become BIOES tags, else `same`.
        types: the span types X; empty with scheme `same`.
        order: for each tag, its place among the tags that the names give.
    """

    groups: tuple[tuple[int, ...], ...]
    scheme: Literal["same", "iob2"]
    types: tuple[str, ...]
    order: tuple[int, ...]

    def emissions(
        self, logits_BTL: Float[Tensor, "batch time label"], lengths_B: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time tag"]:
        """Return the log-probabilities of the tags [B, T, Y], −∞ for impossible ones (B-X at the last word).

        Args:
            logits_BTL: scores of the checkpoint's labels.
            lengths_B: words of each sentence.
        """
        names_BTN = [_group_logits(logits_BTL, group) for group in self.groups]
        log_BTN = torch.log_softmax(torch.stack(names_BTN, -1), -1)
        return log_BTN if self.scheme == "same" else self._bioes(log_BTN, lengths_B)

    def _bioes(self, log_BTN: Tensor, lengths_B: Tensor) -> Tensor:
        X = len(self.types)
        begin_BTX, inside_BTX = log_BTN[..., 1 : X + 1], log_BTN[..., X + 1 :]
        continues_BTX, ends_BTX = _next_word(inside_BTX, _complement(log_BTN, first=X + 1), lengths_B)
        parts = [
            begin_BTX + continues_BTX,
            inside_BTX + continues_BTX,
            inside_BTX + ends_BTX,
            begin_BTX + ends_BTX,
        ]
        tags_BTY = torch.cat([log_BTN[..., :1], *parts], -1)
        return tags_BTY.index_select(-1, index_tensor(self.order, tags_BTY.device))


def _group_logits(logits_BTL: Tensor, group: tuple[int, ...]) -> Tensor:
    """Return the logarithm of the summed exponentials of a group of labels."""
    if len(group) == 1:
        return logits_BTL[..., group[0]]
    return torch.logsumexp(logits_BTL.index_select(-1, index_tensor(group, logits_BTL.device)), -1)


def _complement(log_BTN: Tensor, *, first: int) -> Tensor:
    """Return log(1 − p) of the names from `first` on, as the sum of all others: exact where p is near 1."""
    names = log_BTN.shape[-1]
    places_N = torch.arange(names, device=log_BTN.device)
    excluded_XN = places_N[first:, None] == places_N
    return torch.logsumexp(log_BTN[..., None, :].masked_fill(excluded_XN, float("-inf")), -1)


def _next_word(inside_BTX: Tensor, outside_BTX: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log-probabilities that the next word is inside X, and that it is not; the last word has no next."""
    last_BT1 = (torch.arange(inside_BTX.shape[1], device=lengths_B.device) >= lengths_B[:, None] - 1)[
        ..., None
    ]
    continues_BTX = inside_BTX.roll(-1, dims=1).masked_fill(last_BT1, float("-inf"))
    return continues_BTX, outside_BTX.roll(-1, dims=1).masked_fill(last_BT1, 0.0)


def match_labels(
    labels: Sequence[str], tag_set: TagSet, renamed: Mapping[str, str | None], *, checkpoint: str
) -> LabelMap:
    """Match a checkpoint's labels to the tags of a task by name.

    Args:
        labels: the checkpoint's labels, in their order.
        tag_set: the tags.
        renamed: other names for labels. Probabilities of labels with the same name add up; None leaves a label out, and
            those of the others are renormalised.
        checkpoint: name of the checkpoint in errors.

    Raises:
        StoreError: labels have no names, `renamed` names no label, or names and tags do not correspond.
    """
    unknown = [label for label in renamed if label not in labels]
    if unknown:
        raise StoreError(checkpoint, f"has no label {unknown[0]!r}", f"choose from {', '.join(labels)}")
    names = [renamed.get(label, label) for label in labels]
    nameless = [name for name in names if name is not None and _NAMELESS.fullmatch(name)]
    if nameless:
        hint = f"name their tags in teachers.labels, e.g. {{{nameless[0]}: O}}"
        raise StoreError(checkpoint, f"its labels have no names ({', '.join(nameless[:5])})", hint)
    is_iob2 = tag_set.form.bioes and not any(name and name[:2] in ("E-", "S-") for name in names)
    types = tuple(tag_set.labels) if is_iob2 else ()
    expected = ("O", *(f"{letter}-{x}" for letter in "BI" for x in types)) if is_iob2 else tag_set.tags
    _check_names(names, expected, tag_set, checkpoint)
    groups = tuple(
        tuple(i for i, name in enumerate(names) if name == expected_name) for expected_name in expected
    )
    converted = ("O", *(f"{letter}-{x}" for letter in "BIES" for x in types)) if is_iob2 else tag_set.tags
    order = tuple(converted.index(tag) for tag in tag_set.tags)
    return LabelMap(groups, "iob2" if is_iob2 else "same", types, order)


def _check_names(
    names: Sequence[str | None], expected: Sequence[str], tag_set: TagSet, checkpoint: str
) -> None:
    missing = [expected_name for expected_name in expected if expected_name not in names]
    extra = [name for name in dict.fromkeys(names) if name is not None and name not in expected]
    if not missing and not extra:
        return
    missing_text = f"has no label for {', '.join(missing)}" if missing else ""
    extra_text = f"has labels that are not among the tags of the corpus ({', '.join(extra)})" if extra else ""
    hint = (
        "rename labels in teachers.labels (LABEL: TAG; LABEL: null leaves one out) or set fine_tune: true; "
        f"the corpus has {', '.join(tag_set.labels)}"
    )
    raise StoreError(checkpoint, " and ".join(part for part in (missing_text, extra_text) if part), hint)
