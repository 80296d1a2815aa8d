"""Spans of words with a type, kept as BIOES tags: names, aspects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from raykd.forms.form import AllowedTransitions, LabelledSentence, ScoredWords, StringLists, TagForm, TagSet
from raykd.forms.tag_schemes import (
    ReadScheme,
    SpanScheme,
    allowed_in_bioes,
    bioes_tags,
    bracket_spans,
    check_bioes,
    from_bioes,
    span_types,
    to_bioes,
    unknown_tags,
)
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

    def check_tags(self, tags: tuple[str, ...]) -> None:
        check_bioes(tags, tags)

    def label_of(self, tag: str) -> str | None:
        # Every span has exactly one B or S.
        return tag[2:] if tag != OUTSIDE and tag[0] in "BS" else None

    def labels_in(self, tags: Iterable[str], scheme: SpanScheme) -> set[str]:
        return span_types(tags, scheme)

    def tag_set(self, labels: Iterable[str]) -> TagSet:
        """The BIOES tags over span types, in alphabetical order of the types, O first."""
        return TagSet(tuple(bioes_tags(sorted(set(labels)))), self)

    def allowed_transitions(self, tags: Sequence[str]) -> AllowedTransitions:
        allowed_YY, outside = allowed_in_bioes(tags), tags.index(OUTSIDE)
        return allowed_YY, allowed_YY[outside], allowed_YY[:, outside]

    def read(self, tags: Sequence[str], scheme: SpanScheme) -> tuple[Sequence[str], int]:
        return to_bioes(tags, scheme)

    def write(self, tags: Sequence[str], scheme: SpanScheme) -> Sequence[str]:
        return from_bioes(tags, scheme)

    def unknown_tags(self, tags: Iterable[str], scheme: ReadScheme) -> set[str]:
        return unknown_tags(tags, scheme)

    def format_sentence(self, sentence: LabelledSentence, *, words: int) -> str:
        return bracket_spans(sentence.tokens, sentence.tags, words=words)

    def by_label(self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords) -> ScoresByLabel:
        return entities_by_label(gold, predicted)

    def confusions(
        self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords, *, examples: int
    ) -> list[Confusion]:
        return span_confusions(gold, predicted, examples=examples)


SPANS = Spans()
