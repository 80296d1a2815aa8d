"""A checkpoint's labels as tags of a task.

Shapes: B batch, T time (words), L labels of the checkpoint, N names they stand for, X span types, Y tags.

A token classifier gives each word a distribution over its own labels, independently of the other words.
Labels are matched to tags by name. An IOB2 checkpoint becomes BIOES exactly: whether a span continues or
ends at word t depends on word t + 1, and since words are independent,

    P(S-X at t) = P(B-X at t) · (1 − P(I-X at t+1))        P(B-X at t) = P(B-X at t) · P(I-X at t+1)
    P(E-X at t) = P(I-X at t) · (1 − P(I-X at t+1))        P(I-X at t) = P(I-X at t) · P(I-X at t+1)

with IOB2 probabilities on the right, and P(I-X) = 0 after the last word. These are the token marginals of
the BIOES reading of the checkpoint's distribution; P(O) stays.

Types may have other names (`teachers.labels`). They are given before this reading: labels with the same name become
one, whose probability is the sum of theirs, and those of a type that is named O become O.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import torch

from raykd.corpora.answers.label_names import REST, LabelNames, LeftOutError
from raykd.corpora.answers.labellings import UnmappedError
from raykd.errors import StoreError
from raykd.forms.tag_schemes import fitting_scheme, has_span_form, with_bioes_letters
from raykd.metrics.bioes import OUTSIDE
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
        return self.tags(self.names(logits_BTL), lengths_B)

    def name_list(self, tags: Sequence[str]) -> tuple[str, ...]:
        """Return the N names in their order.

        Args:
            tags: the tags of the task.
        """
        if self.scheme == "same":
            return tuple(tags)
        return (OUTSIDE, *(f"{letter}-{x}" for letter in "BI" for x in self.types))

    def names(self, logits_BTL: Float[Tensor, "batch time label"]) -> Float[Tensor, "batch time name"]:
        """Return the log-probabilities of the names.

        Args:
            logits_BTL: scores of the checkpoint's labels.
        """
        names_BTN = [_group_logits(logits_BTL, group) for group in self.groups]
        return torch.log_softmax(torch.stack(names_BTN, -1), -1)

    def tags(
        self, log_BTN: Float[Tensor, "batch time name"], lengths_B: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time tag"]:
        """Return the log-probabilities of the tags, from those of the names.

        Args:
            log_BTN: log-probabilities of the names.
            lengths_B: words of each sentence.
        """
        if self.scheme == "same":
            return log_BTN
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

    Labels of spans may have the letters of any scheme that marks both ends of a span, or those of IOB2.

    Args:
        labels: the checkpoint's labels, in their order.
        tag_set: the tags.
        renamed: other names: of single labels (`{B-PERSON: B-PER}`), which win, and of types (`{PERSON: PER}`), as in
            `LabelNames`. Probabilities of labels with the same name add up; None leaves a label or a type out, and
            those of the others are renormalised.
        checkpoint: name of the checkpoint in errors.

    Raises:
        StoreError: labels have no names, `renamed` names no label, or names and tags do not correspond.
    """
    checkpoint_labels = _CheckpointLabels(tuple(labels), tag_set, checkpoint)
    names = checkpoint_labels.rename(renamed)
    is_iob2 = tag_set.form.bioes and not any(name and name[:2] in ("E-", "S-") for name in names)
    types = tuple(tag_set.labels) if is_iob2 else ()
    converted = (OUTSIDE, *(f"{letter}-{x}" for letter in "BIES" for x in types)) if is_iob2 else tag_set.tags
    order = tuple(converted.index(tag) for tag in tag_set.tags)
    label_map = LabelMap((), "iob2" if is_iob2 else "same", types, order)
    expected = label_map.name_list(tag_set.tags)
    checkpoint_labels.check_names(names, expected)
    groups = tuple(
        tuple(i for i, name in enumerate(names) if name == expected_name) for expected_name in expected
    )
    return replace(label_map, groups=groups)


@dataclass(frozen=True)
class _CheckpointLabels:
    """The labels of a checkpoint, with the tags to which they are matched."""

    labels: tuple[str, ...]
    tag_set: TagSet
    checkpoint: str

    @property
    def spans(self) -> bool:
        """True if tags are letters with types of spans."""
        return not set(self.tag_set.labels) <= set(self.tag_set.tags)

    @property
    def types(self) -> tuple[str, ...]:
        """Types of the labels; a label without a letter is its own type."""
        return tuple(dict.fromkeys(self._type(label) for label in self.labels if label != OUTSIDE))

    def _type(self, label: str) -> str:
        return label[2:] if self.spans and has_span_form(label) else label

    def rename(self, renamed: Mapping[str, str | None]) -> list[str | None]:
        """Return the tag of each label, with the letters of BIOES; None for a label that is left out.

        Raises:
            StoreError: `renamed` has no label as a key or as a name, or labels are none of the corpus.
        """
        allowed_keys = (*self.labels, *self.types, REST)
        if unknown := [label for label in renamed if label not in allowed_keys]:
            hint = f'choose from {", ".join(self.types)} in teachers.labels, or "{REST}" for all others'
            raise StoreError(self.checkpoint, f"has no label {unknown[0]!r}", hint)
        by_type = {label: name for label, name in renamed.items() if label not in self.labels}
        type_names = LabelNames.of(self.tag_set.labels, by_type)
        if faults := type_names.faults():
            raise StoreError(self.checkpoint, f"teachers.labels: {'; '.join(faults)}", "correct the names")
        names, unmapped = list[str | None](), dict[str, None]()
        for label in self.labels:
            try:
                is_renamed = label in renamed
                names.append(renamed[label] if is_renamed else type_names.rename_tag(label, spans=self.spans))
            except LeftOutError:
                names.append(None)
            except UnmappedError as error:
                unmapped[error.label] = None
        if unmapped:
            raise self._unmapped_error(tuple(unmapped), names)
        return _with_bioes_letters(names, self.labels) if self.spans else names

    def _unmapped_error(self, unmapped: Sequence[str], names: Sequence[str | None]) -> StoreError:
        nameless = [label for label in unmapped if _NAMELESS.fullmatch(label)]
        if nameless:
            hint = f"name their tags in teachers.labels, e.g. {{{nameless[0]}: {self.tag_set.tags[0]}}}"
            return StoreError(self.checkpoint, f"its labels have no names ({', '.join(nameless[:5])})", hint)
        present = {self._type(name) for name in names if name}
        missing = [label for label in self.tag_set.labels if label not in present]
        rest = OUTSIDE if OUTSIDE in self.tag_set.tags else "null"
        example = "".join(f"{label}: {name}, " for label, name in zip(unmapped[:1], missing, strict=False))
        problem = f"has {self._noun} that are none of the corpus ({', '.join(unmapped)})"
        if missing:
            problem = f"has no label for {', '.join(missing)} and {problem}"
        hint = (
            f'name them in teachers.labels, e.g. {{{example}"{REST}": {rest}}}, where {REST} names all others, '
            f"or set fine_tune: true; the corpus has {', '.join(self.tag_set.labels)}"
        )
        return StoreError(self.checkpoint, problem, hint)

    @property
    def _noun(self) -> str:
        return "types" if self.spans else "labels"

    def check_names(self, names: Sequence[str | None], expected: Sequence[str]) -> None:
        """Compare the tags of the labels with the expected ones.

        Raises:
            StoreError: an expected tag is missing, or there are others.
        """
        extra = [name for name in dict.fromkeys(names) if name is not None and name not in expected]
        missing = [tag for tag in expected if tag not in names]
        if not missing and not extra:
            return
        present = {self._type(name) for name in names if name}
        # A type that is missing as a whole is listed once, and not as four tags.
        short = dict.fromkeys(tag if self._type(tag) in present else self._type(tag) for tag in missing)
        missing_text = f"has no label for {', '.join(short)}" if missing else ""
        extra_text = (
            f"has labels that are not among the tags of the corpus ({', '.join(extra)})" if extra else ""
        )
        hint = (
            f"name its {self._noun} in teachers.labels (it has {', '.join(self.types)}; null leaves one out) or set "
            f"fine_tune: true; the corpus has {', '.join(self.tag_set.labels)}"
        )
        raise StoreError(
            self.checkpoint, " and ".join(part for part in (missing_text, extra_text) if part), hint
        )


def _with_bioes_letters(names: Sequence[str | None], labels: Sequence[str]) -> list[str | None]:
    """Replace the letters of BILOU, BMES and BMEWO by those of BIOES in names of labels."""
    spans = [name for name in names if name is not None and has_span_form(name)]
    # The labels decide, since names may have the letters of BIOES already; labels as LABEL_0 have no letters.
    scheme = fitting_scheme([label for label in labels if has_span_form(label)] or spans)
    if scheme is None:
        return [*names]
    bioes = dict(zip(spans, with_bioes_letters(spans, scheme), strict=True))
    return [bioes.get(name, name) if name is not None else None for name in names]
