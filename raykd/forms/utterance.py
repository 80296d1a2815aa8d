"""An utterance: its intent, and a slot for each of its words.

It has one more word in front, which stands for the whole of it, and whose tag is its intent, `intent:atis_flight`; the
tags of its other words are spans, its slots: IOB2 in files, BIOES inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raykd.forms.form import (
    AllowedTransitions,
    ExportedModel,
    LabelledSentence,
    ScoredWords,
    StringLists,
    TagForm,
    TagSet,
    most_frequent,
)
from raykd.forms.marks import INTENT, is_intent
from raykd.forms.tag_schemes import (
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
class Utterance(TagForm):
    """Intent and slots."""

    name: ClassVar[str] = "utterance"
    scheme: ClassVar[str] = "utterance"
    reads: ClassVar[tuple[str, ...]] = ("utterance",)
    title: ClassVar[str] = "intents and slots"
    words_in_front: ClassVar[int] = 1
    constrained: ClassVar[bool] = True
    calls: ClassVar[tuple[str, ...]] = ("label", "intents_and_slots")

    def check_tags(self, tags: tuple[str, ...]) -> None:
        slots = [tag for tag in tags if not is_intent(tag)]
        check_bioes(slots, tags)
        if len(slots) == len(tags):
            raise ValueError(f"a tag set of utterances has intents ({INTENT}NAME); got {tags}")

    def label_of(self, tag: str) -> str | None:
        if is_intent(tag):
            return tag
        return tag[2:] if tag != OUTSIDE and tag[0] in "BS" else None

    def labels_in(self, tags: Iterable[str], scheme: str) -> set[str]:
        used = set(tags)
        intents = set(filter(is_intent, used))
        return span_types(used - intents, "iob2") | intents

    def tag_set(self, labels: Iterable[str]) -> TagSet:
        """The BIOES tags over the span types among `labels`, then the intents among them, in alphabetical order."""
        own = sorted(set(labels))
        types = [label for label in own if not is_intent(label)]
        return TagSet((*bioes_tags(types), *filter(is_intent, own)), self)

    def allowed_places(self, tags: Sequence[str]) -> np.ndarray:
        """The first word has an intent, the others have slots; bool [2, Y]."""
        intents_Y = _intents(tags)
        return np.stack([intents_Y, ~intents_Y])

    def allowed_transitions(self, tags: Sequence[str]) -> AllowedTransitions:
        # An intent ends nothing and begins nothing, as O does; it follows no tag.
        intents_Y = _intents(tags)
        slots_YY = allowed_in_bioes([OUTSIDE if is_intent(tag) else tag for tag in tags])
        allowed_YY = slots_YY & ~intents_Y
        return allowed_YY, intents_Y, allowed_YY[:, tags.index(OUTSIDE)]

    def read(self, tags: Sequence[str], scheme: str) -> tuple[Sequence[str], int]:
        slots, repairs = to_bioes(tags[1:], "iob2")
        return [*tags[:1], *slots], repairs

    def write(self, tags: Sequence[str], scheme: str) -> Sequence[str]:
        return [*tags[:1], *from_bioes(tags[1:], "iob2")]

    def unknown_tags(self, tags: Iterable[str], scheme: str) -> set[str]:
        return unknown_tags((tag for tag in tags if not is_intent(tag)), "iob2")

    def format_sentence(self, sentence: LabelledSentence, *, words: int) -> str:
        tokens, tags = sentence.tokens, sentence.tags
        return f"{tags[0].removeprefix(INTENT)}: {bracket_spans(tokens[1:], tags[1:], words=words)}"

    def most_frequent(self, gold: StringLists) -> StringLists:
        """The first word has the most frequent intent, the others the most frequent slot."""
        intents, slots = (most_frequent([own[part] for own in gold]) for part in (slice(1), slice(1, None)))
        return [[*first, *others] for first, others in zip(intents, slots, strict=True)]

    def by_label(self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords) -> ScoresByLabel:
        """Of an intent as a span of the word in front."""
        return entities_by_label(_intents_as_spans(gold), _intents_as_spans(predicted))

    def confusions(
        self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords, *, examples: int
    ) -> list[Confusion]:
        return span_confusions(_intents_as_spans(gold), _intents_as_spans(predicted), examples=examples)

    def run_exported(
        self, model: ExportedModel, sentences: StringLists, pos: object, *, batch: int
    ) -> list[list[str]]:
        found = model.intents_and_slots([words[1:] for words in sentences], batch=batch)
        return [[INTENT + intent, *slots] for intent, slots in found]


def _intents(tags: Sequence[str]) -> np.ndarray:
    return np.array([is_intent(tag) for tag in tags], dtype=bool)


def _intents_as_spans(labels: StringLists) -> list[list[str]]:
    """The labels of utterances as spans in BIOES tags, with the intent as one of the word in front."""
    return [["S-" + intent, *slots] for intent, *slots in labels]


UTTERANCES = Utterance()
