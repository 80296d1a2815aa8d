"""How an export splits texts into words, and how far that gives the words of its training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from raykd.errors import ExportError
from raykd.forms.marks import UTTERANCE
from raykd.identity import PlainObject
from raykd.serving.labeller import SIGNS, SPLITS, WHITESPACE, words_in
from raykd.tasks import Task

SENTENCES = 10_000
"""Training sentences that are split, at most, from all over the part."""
ENOUGH = 0.99
"""Share of sentences with the same words from which on nothing is said."""
MOST_EXAMPLES = 3
IN_WORDS = {SIGNS: "at white space and signs", WHITESPACE: "at white space alone"}


@dataclass(frozen=True)
class Splitting:
    """How texts are split, and how many training sentences have the same words then."""

    split: str
    """One of the labeller's `SPLITS`."""
    sentences: int
    """Training sentences that were split; 0 where none are at hand, or the task labels whole texts."""
    same: Mapping[str, int]
    """Way to split → sentences whose words it gives: of their raw text, or of their words with spaces between them."""
    examples: tuple[str, ...]
    """Words of the training that `split` cuts in another way."""

    def share(self, split: str) -> str:
        """The share of the sentences whose words a way to split gives."""
        return f"{100 * self.same[split] / self.sentences:.1f} %"

    @property
    def problem(self) -> str | None:
        """The share of the sentences with the same words, in a sentence, where it is below `ENOUGH`."""
        if not self.sentences or self.same[self.split] >= ENOUGH * self.sentences:
            return None
        words = ", ".join(self.examples)
        return (
            f"texts are split {IN_WORDS[self.split]}, which gives the words of {self.share(self.split)} of "
            f"{self.sentences:,} training sentences (not: {words})"
        )

    @property
    def proposal(self) -> str | None:
        """The other way to split, where it gives the words of more sentences."""
        best = max(SPLITS, key=lambda split: self.same.get(split, 0))
        return best if self.problem and self.same[best] > self.same[self.split] else None

    def to_plain(self) -> PlainObject:
        """For `export.json`."""
        return {name: value for name, value in asdict(self).items() if name != "split"}


def measure_splitting(task: Task, train: pa.Table | None, split: str | None) -> Splitting:
    """The splitting of an export, compared on the training part.

    Args:
        train: the table of the training part; None where it is not at hand.
        split: one of the labeller's `SPLITS`; None for the task's.

    Raises:
        ExportError: the task labels whole texts, and `split` is not how its training splits these.
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
    """The text of some sentences, raw where the corpus has it, and their words."""
    rows = np.unique(np.linspace(0, train.num_rows - 1, min(train.num_rows, SENTENCES)).astype(np.int64))
    names = [name for name in ("tokens", "text") if name in train.schema.names]
    for row in train.select(names).take(rows).to_pylist():
        words = [word for word in row["tokens"] if word != UTTERANCE]
        yield row.get("text") or " ".join(words), words


def _first_difference(words: Sequence[str], split_words: Sequence[str]) -> list[str]:
    """The first word that is not the same in both, in a list; or none."""
    pairs = zip(words, [*split_words, *[None] * len(words)], strict=False)
    return [word for word, split_word in pairs if word != split_word][:1]
