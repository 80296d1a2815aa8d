"""Typed spans of words, such as names and aspects, kept as BIOES tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from raykd.forms.form import TagForm
from raykd.forms.form_types import AllowedTransitions, LabelledSentence, ScoredWords, StringLists
from raykd.forms.tag_schemes import (
    ReadScheme,
    SpanScheme,
    allowed_in_bioes,
    bioes_tags,
    bracket_spans,
    check_bioes,
    counted_type,
    from_bioes,
    span_types,
    to_bioes,
    unknown_tags,
)
from raykd.forms.tag_set import TagSet
from raykd.metrics.bioes import OUTSIDE
from raykd.metrics.by_label import ScoresByLabel, entities_by_label
from raykd.metrics.confusions import Confusion, span_confusions


@dataclass(frozen=True)
class Spans(TagForm):
    """Spans that neither overlap nor nest."""

    name: ClassVar[str] = "spans"
    scheme: ClassVar[str] = "bioes"
    reads: ClassVar[tuple[str, ...]] = (
        "iob2", "iob1", "ioe1", "ioe2", "bioes", "bilou", "bmes", "bmewo", "io", "auto"
    )  # fmt: skip
    title: ClassVar[str] = "spans"
    scheme_hint: ClassVar[str] = (
        "set corpus.scheme: io if each word of a span has its type (PER PER O), write tags as O, B-PER, I-PER"
    )
    constrained: ClassVar[bool] = True
    bioes: ClassVar[bool] = True

    @override
    def check_tags(self, tags: tuple[str, ...]) -> None:
        check_bioes(tags, tags)

    @override
    def label_of(self, tag: str) -> str | None:
        return counted_type(tag)

    @override
    def labels_in(self, tags: Iterable[str], scheme: SpanScheme) -> set[str]:
        return span_types(tags, scheme)

    @override
    def tag_set(self, labels: Iterable[str]) -> TagSet:
        """Return the BIOES tags over span types, O first, then the types in alphabetical order."""
        return TagSet(tuple(bioes_tags(sorted(set(labels)))), self)

    @override
    def allowed_transitions(self, tags: Sequence[str]) -> AllowedTransitions:
        allowed_YY, outside = allowed_in_bioes(tags), tags.index(OUTSIDE)
        return allowed_YY, allowed_YY[outside], allowed_YY[:, outside]

    @override
    def read(self, tags: Sequence[str], scheme: SpanScheme) -> tuple[Sequence[str], int]:
        return to_bioes(tags, scheme)

    @override
    def write(self, tags: Sequence[str], scheme: SpanScheme) -> Sequence[str]:
        return from_bioes(tags, scheme)

    @override
    def unknown_tags(self, tags: Iterable[str], scheme: ReadScheme) -> set[str]:
        return unknown_tags(tags, scheme)

    @override
    def format_sentence(self, sentence: LabelledSentence, *, words: int) -> str:
        return bracket_spans(sentence.tokens, sentence.tags, words=words)

    @override
    def by_label(self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords) -> ScoresByLabel:
        return entities_by_label(gold, predicted)

    @override
    def confusions(
        self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords, *, examples: int
    ) -> list[Confusion]:
        return span_confusions(gold, predicted, examples=examples)


SPANS = Spans()
