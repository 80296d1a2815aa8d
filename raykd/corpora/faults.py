"""Faults of a corpus: reported together, or skipped with their sentences and counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from raykd.corpora.sentence import Faulty, Note, ReadingNote, Sentence
from raykd.errors import CorpusError
from raykd.pluralise import pluralise

OnError = Literal["repair", "skip", "stop"]
MOST_FAULTS = 10
"""Number of faults that are reported together; then reading stops."""
MOST_EXAMPLES = 3
MANY_WORDS, MOST_WORDS = 1000, 5000
"""Number of words beyond which a sentence is reported, and beyond which a sentence with one tag per word is refused: it
is probably several sentences without empty lines between them."""
SKIP = "set corpus.on_error: skip to leave such sentences out"

CountsByPart = dict[str, dict[str, int]]
Examples = dict[str, dict[str, list[str]]]


@dataclass
class Tally:
    """Counts with some examples, by part and language."""

    counts: CountsByPart = field(default_factory=dict)
    examples: Examples = field(default_factory=dict)

    def add(self, part: str, language: str, example: str, count: int = 1) -> None:
        """Count an occurrence; the first examples are kept."""
        counts = self.counts.setdefault(part, {})
        counts[language] = counts.get(language, 0) + count
        examples = self.examples.setdefault(part, {}).setdefault(language, [])
        if len(examples) < MOST_EXAMPLES:
            examples.append(example)

    def total(self) -> int:
        """Return the count over all parts and languages."""
        return sum(sum(counts.values()) for counts in self.counts.values())


@dataclass
class Faults:
    """Faults, notes and skipped sentences while a corpus is read.

    Attributes:
        on_error: Treatment of faults.
        skipped: Skipped sentences.
        notes: Changes of reading, and records left out, that are no faults.
        collected: Text of a fault → fault; a file may be read for several parts.
        first_skipped: (part, language) → first skipped fault.
        long_sentences: Sentences of more than `MANY_WORDS` words.
    """

    on_error: OnError = "repair"
    skipped: Tally = field(default_factory=Tally)
    notes: dict[Note, Tally] = field(default_factory=dict)
    collected: dict[str, CorpusError] = field(default_factory=dict)
    first_skipped: dict[tuple[str, str], CorpusError] = field(default_factory=dict)
    long_sentences: Tally = field(default_factory=Tally)
    _all_skippable: bool = True

    def sentences(
        self, stream: Iterable[tuple[str, Sentence | Faulty | ReadingNote]]
    ) -> Iterator[tuple[str, Sentence]]:
        """Yield the sentences without a fault.

        Args:
            stream: (part, sentence, fault or note).

        Raises:
            CorpusError: Faults must not be skipped; up to `MOST_FAULTS` are reported together.
        """
        try:
            for part, read in stream:
                if isinstance(read, Sentence) and len(read.tokens) > MANY_WORDS:
                    read = self._long(part, read)
                if isinstance(read, Sentence):
                    yield part, read
                elif isinstance(read, ReadingNote):
                    tally = self.notes.setdefault(read.note, Tally())
                    tally.add(part, read.language, read.example, read.count)
                else:
                    self.record(part, read)
        except CorpusError as error:
            if not self.collected or error.more_errors or str(error) in self.collected:
                raise
            self._add(error, skippable=False)
        self.refuse()

    def _long(self, part: str, sentence: Sentence) -> Sentence | Faulty:
        """Count a long sentence, or return the fault that it has no end."""
        file, line = sentence.origin or (f"a sentence of {sentence.language}", None)
        words = pluralise(len(sentence.tokens), "word")
        if len(sentence.tokens) > MOST_WORDS and sentence.tags is not None and sentence.unit == "word":
            problem = f"a sentence of {words}, where at most {MOST_WORDS:,} are read"
            hint = "end each sentence with an empty line; in tables give it a row"
            return Faulty(sentence.language, (CorpusError(file, line, problem, hint),))
        self.long_sentences.add(part, sentence.language, f"{f'{file}:{line}' if line else file}: {words}")
        return sentence

    def record(self, part: str, read: Faulty) -> None:
        """Skip a faulty sentence, or collect the faults; raise CorpusError when there are `MOST_FAULTS`."""
        if self.on_error == "skip" and not read.whole_file:
            self.skip(part, read.language, read.faults[0])
            return
        for fault in read.faults:
            self._add(fault, skippable=not read.whole_file)
            if len(self.collected) >= MOST_FAULTS:
                self.refuse()

    def skip(self, part: str, language: str, fault: CorpusError) -> None:
        """Count a skipped sentence."""
        self.first_skipped.setdefault((part, language), fault)
        self.skipped.add(part, language, summary(fault))

    def refuse_too_many(self, sentences: Mapping[str, Mapping[str, int]], max_share: float) -> None:
        """Refuse a corpus with too many skipped sentences.

        Args:
            sentences: Part → language → sentences read and not skipped.
            max_share: Largest share of skipped sentences in a part and language, in 0..1.

        Raises:
            CorpusError: More were skipped.
        """
        for (part, language), fault in self.first_skipped.items():
            count = self.skipped.counts[part][language]
            total = count + sentences.get(part, {}).get(language, 0)
            if count > max_share * total:
                share = f"{100 * count / total:.3g} % of {total:,}"
                problem = (
                    f"{fault.problem}; {pluralise(count, 'sentence')} of {part} {language} with faults would be left "
                    f"out ({share}), and at most {100 * max_share:.3g} % may be"
                )
                allowed = min(1.0, ceil(100 * count / total) / 100)
                hint = f"correct the files, or allow it: set corpus.most_skipped: {allowed:g}"
                raise CorpusError(fault.file, fault.line, problem, hint)

    def _add(self, fault: CorpusError, *, skippable: bool) -> None:
        self.collected.setdefault(str(fault), fault)
        self._all_skippable &= skippable

    def refuse(self) -> None:
        """Raise CorpusError if faults were collected."""
        if not self.collected:
            return
        first, *more = self.collected.values()
        closing = [SKIP] if self._all_skippable and self.on_error == "repair" else []
        if len(self.collected) >= MOST_FAULTS:
            closing.insert(0, f"these are the first {len(self.collected)} faults, there may be more")
        raise CorpusError(
            first.file, first.line, first.problem, first.hint, tuple(more), "; ".join(closing)
        ) from None


def summary(fault: CorpusError) -> str:
    """Return place and problem of a fault, without the hint."""
    return f"{fault.file}:{fault.line}: {fault.problem}" if fault.line else f"{fault.file}: {fault.problem}"
