"""Utterances: an intent, and a slot for each word.

An artificial word in front stands for the whole utterance; its tag is the intent, `intent:atis_flight`. The tags of
the other words are spans, the slots: IOB2 in files, BIOES inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from raykd.forms.form import TagForm, most_frequent
from raykd.forms.form_types import (
    AllowedTransitions,
    ExportedModel,
    LabelledSentence,
    ScoredWords,
    StringLists,
)
from raykd.forms.tag_schemes import (
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
from raykd.forms.utterance_marks import INTENT, is_intent
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

    @override
    def check_tags(self, tags: tuple[str, ...]) -> None:
        slots = [tag for tag in tags if not is_intent(tag)]
        check_bioes(slots, tags)
        if len(slots) == len(tags):
            raise ValueError(f"a tag set of utterances has intents ({INTENT}NAME); got {tags}")

    @override
    def label_of(self, tag: str) -> str | None:
        if is_intent(tag):
            return tag
        return counted_type(tag)

    @override
    def labels_in(self, tags: Iterable[str], scheme: str) -> set[str]:
        used = set(tags)
        intents = set(filter(is_intent, used))
        return span_types(used - intents, "iob2") | intents

    @override
    def tag_set(self, labels: Iterable[str]) -> TagSet:
        """Return the BIOES tags over the span types, then the intents, both in alphabetical order."""
        distinct_labels = sorted(set(labels))
        types = [label for label in distinct_labels if not is_intent(label)]
        return TagSet((*bioes_tags(types), *filter(is_intent, distinct_labels)), self)

    @override
    def allowed_places(self, tags: Sequence[str]) -> np.ndarray:
        """Return the allowed tags, bool [2, Y]: an intent for the first word, slots for the others."""
        intents_Y = _intents(tags)
        return np.stack([intents_Y, ~intents_Y])

    @override
    def allowed_transitions(self, tags: Sequence[str]) -> AllowedTransitions:
        # After an intent stand the tags that may stand after O; an intent itself follows no tag.
        intents_Y = _intents(tags)
        slots_YY = allowed_in_bioes([OUTSIDE if is_intent(tag) else tag for tag in tags])
        allowed_YY = slots_YY & ~intents_Y
        return allowed_YY, intents_Y, allowed_YY[:, tags.index(OUTSIDE)]

    @override
    def read(self, tags: Sequence[str], scheme: str) -> tuple[Sequence[str], int]:
        slots, repairs = to_bioes(tags[1:], "iob2")
        return [*tags[:1], *slots], repairs

    @override
    def write(self, tags: Sequence[str], scheme: str) -> Sequence[str]:
        return [*tags[:1], *from_bioes(tags[1:], "iob2")]

    @override
    def unknown_tags(self, tags: Iterable[str], scheme: str) -> set[str]:
        return unknown_tags((tag for tag in tags if not is_intent(tag)), "iob2")

    @override
    def format_sentence(self, sentence: LabelledSentence, *, words: int) -> str:
        tokens, tags = sentence.tokens, sentence.tags
        return f"{tags[0].removeprefix(INTENT)}: {bracket_spans(tokens[1:], tags[1:], words=words)}"

    @override
    def most_frequent(self, gold: StringLists) -> StringLists:
        """Return the most frequent intent for the first word, the most frequent slot for the others."""
        intents, slots = (most_frequent([tags[part] for tags in gold]) for part in (slice(1), slice(1, None)))
        return [[*first, *word_slots] for first, word_slots in zip(intents, slots, strict=True)]

    @override
    def by_label(self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords) -> ScoresByLabel:
        """Return the scores by label; an intent counts as a span of the word in front."""
        return entities_by_label(_intents_as_spans(gold), _intents_as_spans(predicted))

    @override
    def confusions(
        self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords, *, examples: int
    ) -> list[Confusion]:
        return span_confusions(_intents_as_spans(gold), _intents_as_spans(predicted), examples=examples)

    @override
    def run_exported(
        self, model: ExportedModel, sentences: StringLists, pos: object, *, batch: int
    ) -> list[list[str]]:
        predictions = model.intents_and_slots([words[1:] for words in sentences], batch=batch)
        return [[INTENT + intent, *slots] for intent, slots in predictions]


def _intents(tags: Sequence[str]) -> np.ndarray:
    return np.array([is_intent(tag) for tag in tags], dtype=bool)


def _intents_as_spans(labels: StringLists) -> list[list[str]]:
    """The labels of utterances in BIOES, with the intent as the span of the word in front."""
    return [["S-" + intent, *slots] for intent, *slots in labels]


UTTERANCES = Utterance()
