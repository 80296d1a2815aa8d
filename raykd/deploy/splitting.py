"""Splitting of texts into words in an export, compared with the words of its training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from raykd.errors import ExportError
from raykd.forms.utterance_marks import UTTERANCE
from raykd.identity import PlainObject
from raykd.serving.labeller import SIGNS, SPLITS, WHITESPACE, words_in
from raykd.tasks import Task

SENTENCES = 10_000
"""Most training sentences that are split, evenly spaced over the part."""
ENOUGH = 0.99
"""Least share of equally split sentences for which no problem is reported."""
MOST_EXAMPLES = 3
IN_WORDS = {SIGNS: "at white space and signs", WHITESPACE: "at white space alone"}


@dataclass(frozen=True)
class Splitting:
    """The splitting of texts, and the number of training sentences with the same words.

    Attributes:
        split: One of the labeller's `SPLITS`.
        sentences: Training sentences that were split; 0 if none are at hand, or if the task labels whole texts.
        same: Splitting → sentences whose words it gives, from their raw text or from their words joined by spaces.
        examples: Words of the training text that `split` cuts in another way.
    """

    split: str
    sentences: int
    same: Mapping[str, int]
    examples: tuple[str, ...]

    def share(self, split: str) -> str:
        """Return the percentage of sentences with the same words in a splitting, as text."""
        return f"{100 * self.same[split] / self.sentences:.1f} %"

    @property
    def problem(self) -> str | None:
        """A sentence on the share of sentences with the same words, if below `ENOUGH`; else None."""
        if not self.sentences or self.same[self.split] >= ENOUGH * self.sentences:
            return None
        words = ", ".join(self.examples)
        return (
            f"texts are split {IN_WORDS[self.split]}, which gives the words of {self.share(self.split)} of "
            f"{self.sentences:,} training sentences (not: {words})"
        )

    @property
    def proposal(self) -> str | None:
        """The splitting with the same words in more sentences, if there is one; else None."""
        best = max(SPLITS, key=lambda split: self.same.get(split, 0))
        return best if self.problem and self.same[best] > self.same[self.split] else None

    def to_plain(self) -> PlainObject:
        """Return the content for `export.json`."""
        return {name: value for name, value in asdict(self).items() if name != "split"}


def measure_splitting(task: Task, train: pa.Table | None, split: str | None) -> Splitting:
    """Choose the splitting of an export, and compare it with the words of the training part.

    Args:
        task: The task of the model.
        train: Table of the training part; None if it is not at hand.
        split: One of the labeller's `SPLITS`; None for that of the task.

    Raises:
        ExportError: `split` is not white space, for a task that labels whole texts.
    """
    if task.unit == "sentence":
        if split not in (None, WHITESPACE):
            problem = f"task {task.name!r} labels whole texts, which its training splits at white space"
            raise ExportError(f"{problem}; leave --split out")
        return Splitting(WHITESPACE, 0, {}, ())
    chosen = split or SIGNS
    if train is None or not train.num_rows:
        return Splitting(chosen, 0, {}, ())
    same: dict[str, int] = dict.fromkeys(SPLITS, 0)
    examples: dict[str, None] = {}
    count = 0
    for text, words in _sample_sentences(train):
        count += 1
        for way in SPLITS:
            split_words = words_in(text, way)
            same[way] += split_words == words
            if way == chosen and len(examples) < MOST_EXAMPLES:
                examples |= dict.fromkeys(_first_difference(words, split_words))
    return Splitting(chosen, count, same, tuple(examples))


def _sample_sentences(train: pa.Table) -> Iterator[tuple[str, list[str]]]:
    """Yield text and words of evenly spaced sentences; the raw text where the corpus has it."""
    rows = np.unique(np.linspace(0, train.num_rows - 1, min(train.num_rows, SENTENCES)).astype(np.int64))
    names = [name for name in ("tokens", "text") if name in train.schema.names]
    for row in train.select(names).take(rows).to_pylist():
        words = [word for word in row["tokens"] if word != UTTERANCE]
        yield row.get("text") or " ".join(words), words


def _first_difference(words: Sequence[str], split_words: Sequence[str]) -> list[str]:
    """Return the first differing word, in a list; an empty list if none does."""
    pairs = zip(words, [*split_words, *[None] * len(words)], strict=False)
    return [word for word, split_word in pairs if word != split_word][:1]
