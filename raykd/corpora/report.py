"""The report on a corpus: counts, repairs, dropped sentences, and warnings before training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType

import pyarrow as pa

from raykd.corpora.faults import MANY_WORDS
from raykd.corpora.note_messages import note_message
from raykd.corpora.predicted_pos import PosTaggers
from raykd.corpora.source import Role, SourceConfig
from raykd.corpora.spaced_words import SpacedWords
from raykd.forms import form_of
from raykd.identity import PlainObject
from raykd.pluralise import pluralise

Counts = Mapping[str, Mapping[str, int]]
"""Part → language → number."""
EXPECTED_PARTS: Mapping[Role, tuple[str, ...]] = MappingProxyType(
    {"labelled": ("train", "dev", "test"), "unlabelled": ("unlabelled", "test"), "zero-shot": ("test",)}
)
"""Parts in which a language should have sentences, by its role."""


@dataclass(frozen=True)
class PosReport:
    """The parts of speech of a treebank."""

    origin: str
    """Origin in words: `gold, column UPOS`."""
    sentences: Counts
    """Sentences with parts of speech, from the files or a model."""
    predicted: Counts = field(default_factory=dict)
    """Sentences with parts of speech predicted by a model."""
    compared: Counts = field(default_factory=dict)
    """Words with both a part of speech of the files and a predicted one, used or not."""
    agreeing: Counts = field(default_factory=dict)
    """Words of `compared` whose two parts of speech are the same."""

    @property
    def accuracy(self) -> dict[str, dict[str, float]]:
        """Shares of words for which prediction and files agree, by part and language."""
        return {
            part: {
                language: self.agreeing[part][language] / count for language, count in counts.items() if count
            }
            for part, counts in self.compared.items()
            if any(counts.values())
        }

    def message(self) -> str:
        """Return a message: origin of the parts of speech, number of predicted sentences, and accuracy."""
        several = max(map(len, (*self.sentences.values(), *self.predicted.values())), default=0) > 1
        phrases = [f"parts of speech: {self.origin}"]
        if self.predicted:
            counts = [(place, count) for place, count in _by_place(self.predicted, several) if count]
            amounts = ", ".join(f"{pluralise(int(count), 'sentence')} of {place}" for place, count in counts)
            phrases.append(f"predicted for {amounts or 'no sentence'}")
        if accuracies := _by_place(self.accuracy, several):
            shares = ", ".join(f"{100 * share:.1f} % of the words of {place}" for place, share in accuracies)
            phrases.append(f"model and treebank agree on {shares}")
        return "; ".join(phrases)

    def restricted(self, languages: set[str]) -> PosReport:
        """Return the counts of some languages."""
        names = ("sentences", "predicted", "compared", "agreeing")
        return replace(self, **{name: _restrict(getattr(self, name), languages) for name in names})


@dataclass(frozen=True)
class CorpusReport:
    """The report on a corpus, as plain data."""

    sentences: Counts
    """Sentences of the corpus."""
    schemes: Mapping[str, str]
    """Language → scheme of its files."""
    repairs: Counts
    """Tags that were invalid in their scheme and were read as conlleval reads them."""
    overlaps: Counts
    """Training sentences with the text of a dev or test sentence: dropped, or kept with `overlaps: keep`."""
    duplicates: Counts
    """Sentences dropped from train and unlabelled because their language already had the text."""
    dev_in_test: int
    """Sentences of dev whose text is also in test. They are kept: both parts stay as published."""
    unseen: Mapping[str, Counts]
    """Label → part → language → number of occurrences in dev or test, for labels without a training sentence."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Language → role in training; a language that is not listed is labelled."""
    skipped: Counts = field(default_factory=dict)
    """Sentences left out because of a fault."""
    overlaps_kept: bool = False
    """True if the `overlaps` were kept."""
    spaced: Mapping[str, SpacedWords] = field(default_factory=dict)
    """Language → words with white space inside, if any."""
    examples: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]] = field(default_factory=dict)
    """Examples of `repairs`, `skipped`, `overlaps`, `duplicates` and the notes, by part and language."""
    notes: Mapping[str, Counts] = field(default_factory=dict)
    """Note → counts: changes during reading, and records left out, that are no faults."""
    pos: PosReport | None = None
    """Parts of speech of a treebank."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """Language → description of the changes to unusually spelled tags, for languages with any."""
    without_labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Part → languages without any label in it, where other sentences have labels."""
    alike: Sequence[Sequence[str]] = ()
    """Groups of span types that differ by capital letters alone."""
    long: Counts = field(default_factory=dict)
    """Sentences with very many words."""

    def role(self, language: str) -> Role:
        """Return the role of a language in training."""
        return self.roles.get(language, "labelled")

    def warnings(self, *, tags: bool = True) -> list[str]:
        """Return the warnings to read before training, one sentence each.

        Args:
            tags: True if the task reads tags.
        """
        return [
            *self._missing(),
            *(self._unseen() if tags else ()),
            *(self._alike() if tags else ()),
            *(self._without_labels() if tags else ()),
            *(self._repaired() if tags else ()),
            *long_sentence_messages(self.long, self.examples.get("long", {})),
            *self.note_messages(),
            *self._left_out(),
            *self.spaced_word_messages(),
            *self._without_pos(),
        ]

    def pos_messages(self) -> list[str]:
        """Return a message on the parts of speech of a treebank; empty for any other corpus."""
        return [] if self.pos is None else [self.pos.message()]

    def spaced_word_messages(self) -> list[str]:
        """Return a warning per language with many words that have white space inside."""
        return [message for language, spaced in self.spaced.items() if (message := spaced.message(language))]

    def _without_pos(self) -> Iterable[str]:
        if self.pos is None:
            return
        for part, languages in self.sentences.items():
            for language, count in languages.items():
                if lacking := count - self.pos.sentences[part].get(language, 0):
                    have = "has" if lacking == 1 else "have"
                    yield f"{pluralise(lacking, 'sentence')} of {part} {language} {have} no parts of speech"

    def _missing(self) -> Iterable[str]:
        for language in self.sentences["train"]:
            expected = EXPECTED_PARTS[self.role(language)]
            empty = [part for part in expected if not self.sentences[part].get(language)]
            if empty:
                yield f"{language} has no sentence in {' and '.join(empty)}"

    def _unseen(self) -> Iterable[str]:
        for label, parts in self.unseen.items():
            places = ", ".join(
                f"{count} x in {part} {language}"
                for part, languages in parts.items()
                for language, count in languages.items()
            )
            yield f"label {label!r} is in no training sentence, so it cannot be learnt ({places})"

    def _alike(self) -> Iterable[str]:
        for labels in self.alike:
            names = ", ".join(map(repr, labels))
            yield f"labels {names} differ by capital letters alone, and count as {len(labels)} labels"

    def _without_labels(self) -> Iterable[str]:
        for part, languages in self.without_labels.items():
            for language in languages:
                if part == "train":
                    yield f"train {language} has no span: a model learns nothing but O from its sentences"
                else:
                    yield f"{part} {language} has no span: its scores mean nothing"

    def describe_tags(self) -> list[str]:
        """Return lines on the scheme of spans, and on unusual spellings."""
        lines = []
        if any(form_of(scheme).bioes for scheme in self.schemes.values()):
            same = len(set(self.schemes.values())) == 1
            schemes = (scheme if same else f"{name} {scheme}" for name, scheme in self.schemes.items())
            lines.append(f"scheme: {', '.join(dict.fromkeys(schemes))}")
        by_text: dict[str, list[str]] = {}
        for language, text in self.spellings.items():
            by_text.setdefault(text, []).append(language)
        return lines + [f"tags of {', '.join(languages)}: {text}" for text, languages in by_text.items()]

    def _repaired(self) -> Iterable[str]:
        for part, languages in self.repairs.items():
            for language, count in languages.items():
                scheme = self.schemes[language]
                singular = count == 1
                problem = (
                    f"{pluralise(count, 'tag')} of {part} {language} {'was' if singular else 'were'} not valid in "
                    f"{'its' if singular else 'their'} scheme ({scheme}) and {'was' if singular else 'were'} repaired"
                )
                yield problem + self._examples("repairs", part, language)

    def note_messages(self) -> list[str]:
        """Return messages on changes and omissions during reading."""
        return [
            note_message(note, count, f"{part} {language}") + self._examples(note, part, language)
            for note, counts in self.notes.items()
            for part, languages in counts.items()
            for language, count in languages.items()
        ]

    def _left_out(self) -> Iterable[str]:
        for part, languages in self.skipped.items():
            for language, count in languages.items():
                singular = count == 1
                noun = (
                    f"{pluralise(count, 'sentence')} of {part} {language} {'has' if singular else 'have'} faults and "
                    f"{'was' if singular else 'were'} left out"
                )
                yield noun + self._examples("skipped", part, language)
        keep = "set corpus.overlaps: keep to keep them"
        for part, languages in self.overlaps.items():
            count = sum(languages.values())
            noun, were, pronoun = (
                pluralise(count, "sentence"),
                *(("was", "it is") if count == 1 else ("were", "they are")),
            )
            reason = f"{pronoun} also in dev or test{self._counts('overlaps', part, languages)}"
            if languages and self.overlaps_kept:
                yield f"{noun} of {part} {were} kept, and {reason}; the scores of these sentences are too high"
            elif languages:
                yield f"{noun} {were} dropped from {part}: {reason}; {keep}"
        keep = "set corpus.duplicates: keep to keep them"
        for part, languages in self.duplicates.items():
            if languages:
                shares = self._counts("duplicates", part, languages)
                count = sum(languages.values())
                were = "was" if count == 1 else "were"
                yield f"{pluralise(count, 'repeated sentence')} {were} dropped from {part}{shares}; {keep}"
        if self.dev_in_test:
            are = "is" if self.dev_in_test == 1 else "are"
            yield f"{pluralise(self.dev_in_test, 'sentence')} of dev {are} also in test"

    def _examples(self, kind: str, part: str, language: str) -> str:
        examples = self.examples.get(kind, {}).get(part, {}).get(language, ())
        return f", for example {'; '.join(examples)}" if examples else ""

    def _counts(self, kind: str, part: str, languages: Mapping[str, int]) -> str:
        """Counts by language, the largest first, with examples of the first language."""
        ordered = sorted(languages, key=lambda language: -languages[language])
        counts = ", ".join(f"{language} {languages[language]}" for language in ordered)
        examples = self.examples.get(kind, {}).get(part, {}).get(ordered[0], ()) if ordered else ()
        quoted = ", ".join(repr(text) for text in examples)
        return f" ({counts}{f'; for example {quoted}' if quoted else ''})"

    def restricted(self, languages: Iterable[str]) -> CorpusReport:
        """Return the report for some languages."""
        names = set(languages)
        unseen = {label: _restrict(counts, names) for label, counts in self.unseen.items()}
        return replace(
            self,
            schemes={language: scheme for language, scheme in self.schemes.items() if language in names},
            unseen={label: counts for label, counts in unseen.items() if any(counts.values())},
            roles={language: role for language, role in self.roles.items() if language in names},
            spaced={language: spaced for language, spaced in self.spaced.items() if language in names},
            spellings={language: text for language, text in self.spellings.items() if language in names},
            without_labels={
                part: [language for language in languages if language in names]
                for part, languages in self.without_labels.items()
            },
            pos=self.pos and self.pos.restricted(names),
            notes={note: _restrict(counts, names) for note, counts in self.notes.items()},
            **{
                name: _restrict(getattr(self, name), names)
                for name in ("sentences", "repairs", "skipped", "overlaps", "duplicates", "long")
            },
        )

    def to_plain(self) -> PlainObject:
        """Return a JSON-able form, read by `from_plain`."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: PlainObject) -> CorpusReport:
        """Return the report written by `to_plain`."""
        spaced = {language: SpacedWords(**values) for language, values in plain["spaced"].items()}
        return cls(**{**plain, "spaced": spaced, "pos": plain["pos"] and PosReport(**plain["pos"])})


def pos_report(tables: Mapping[str, pa.Table], config: SourceConfig, taggers: PosTaggers | None) -> PosReport:
    """Return the report on a treebank's parts of speech.

    Args:
        tables: Tables of the parts.
        config: Settings of the corpus.
        taggers: Models that predicted parts of speech; None without any.
    """
    tables_with_pos = {
        part: table.select(["language"]).filter(table["pos"].is_valid()) for part, table in tables.items()
    }
    counts = count_sentences(tables_with_pos, config.languages)
    if taggers is None:
        return PosReport(config.pos_origin, counts)
    return PosReport(config.pos_origin, counts, taggers.predicted, taggers.compared, taggers.agreeing)


def long_sentence_messages(counts: Counts, examples: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """Return messages on sentences of very many words, by part and language.

    Args:
        counts: Number of these sentences, by part and language.
        examples: Examples by part and language.
    """
    messages = []
    for part, languages in counts.items():
        for language, count in languages.items():
            quoted = "; ".join(examples.get(part, {}).get(language, ()))
            messages.append(
                f"{pluralise(count, 'sentence')} of {part} {language} {'has' if count == 1 else 'have'} more than "
                f"{MANY_WORDS:,} words ({quoted}): end each sentence with an empty line; "
                "in tables, give each sentence a row"
            )
    return messages


def _by_place(values: Mapping[str, Mapping[str, float]], several: bool) -> list[tuple[str, float]]:
    """Pairs of a place (`dev en`) and a value; `dev` alone for a corpus of one language."""
    return [
        (f"{part} {language}" if several else part, value)
        for part, by_language in values.items()
        for language, value in by_language.items()
    ]


def count_sentences(tables: Mapping[str, pa.Table], languages: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return the number of sentences, by part and language.

    Args:
        tables: Tables of the parts.
        languages: Languages of the corpus.
    """
    counts = {}
    for part, table in tables.items():
        by_language = {
            entry["values"]: entry["counts"] for entry in table["language"].value_counts().to_pylist()
        }
        counts[part] = {language: by_language.get(language, 0) for language in languages}
    return counts


def _restrict(counts: Counts, languages: set[str]) -> dict[str, dict[str, int]]:
    return {
        part: {language: count for language, count in by_language.items() if language in languages}
        for part, by_language in counts.items()
    }
