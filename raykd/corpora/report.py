"""What reading a corpus found: counts, repairs, what was dropped, and what to know before training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from raykd.corpora.faults import MANY_WORDS, MOST_EXAMPLES
from raykd.corpora.note_messages import note_message
from raykd.corpora.predicted_pos import PosTaggers
from raykd.corpora.source import Role, SourceConfig
from raykd.forms import form_of
from raykd.identity import PlainObject
from raykd.pluralise import pluralise

Counts = Mapping[str, Mapping[str, int]]
"""Part → language → number."""
SPACED_SHARE = 0.001
"""The share of words with white space inside from which on it is reported: numbers like `10 000` are rarer."""
EXPECTED_PARTS: Mapping[Role, tuple[str, ...]] = MappingProxyType(
    {"labelled": ("train", "dev", "test"), "unlabelled": ("unlabelled", "test"), "zero-shot": ("test",)}
)
"""The parts in which a language of each role should have sentences."""


@dataclass(frozen=True)
class SpacedWords:
    """Words of a language that have white space inside, as in Vietnamese; text that is served is split there."""

    count: int = 0
    words: int = 0
    """Those that were looked at."""
    examples: Sequence[str] = ()

    def with_words(self, words: int, spaced: Sequence[str]) -> SpacedWords:
        """The same with further `words`, of which those in `spaced` have white space inside."""
        examples = dict.fromkeys([*self.examples, *spaced[: 10 * MOST_EXAMPLES]])
        return SpacedWords(self.count + len(spaced), self.words + words, tuple(examples)[:MOST_EXAMPLES])

    def message(self, language: str) -> str:
        """What to know of it; empty where there are few."""
        if self.count < max(1, SPACED_SHARE * self.words):
            return ""
        share, some = 100 * self.count / self.words, ", ".join(map(repr, self.examples))
        return (
            f"{share:.1f} % of the words of {language} have a space inside (for example {some}): text that is served "
            "is split at white space, so these words are not found in it; where words are known, give them as a list"
        )


@dataclass(frozen=True)
class PosReport:
    """Which parts of speech a treebank has."""

    origin: str
    """Where they are from, in words: `gold, column UPOS`."""
    sentences: Counts
    """Sentences whose parts of speech are known, from the files or a model."""
    predicted: Counts = field(default_factory=dict)
    """Those of them whose parts of speech a model predicted."""
    compared: Counts = field(default_factory=dict)
    """Words that have a part of speech in the files and one that the model predicted, used or not."""
    agreeing: Counts = field(default_factory=dict)
    """Those of them that have the same one."""

    @property
    def accuracy(self) -> dict[str, dict[str, float]]:
        """Part → language → the share of words for which the model predicts what the files have."""
        return {
            part: {
                language: self.agreeing[part][language] / count for language, count in own.items() if count
            }
            for part, own in self.compared.items()
            if any(own.values())
        }

    def message(self) -> str:
        """Where they are from, how many are predicted, and how often these are right, in words."""
        several = max(map(len, (*self.sentences.values(), *self.predicted.values())), default=0) > 1
        said = [f"parts of speech: {self.origin}"]
        if self.predicted:
            counts = [(place, count) for place, count in _by_place(self.predicted, several) if count]
            some = ", ".join(f"{pluralise(int(count), 'sentence')} of {place}" for place, count in counts)
            said.append(f"predicted for {some or 'no sentence'}")
        if right := _by_place(self.accuracy, several):
            shares = ", ".join(f"{100 * share:.1f} % of the words of {place}" for place, share in right)
            said.append(f"what the model predicts is the treebank's for {shares}")
        return "; ".join(said)

    def restricted(self, languages: set[str]) -> PosReport:
        """The counts for these languages alone."""
        names = ("sentences", "predicted", "compared", "agreeing")
        return replace(self, **{name: _restrict(getattr(self, name), languages) for name in names})


@dataclass(frozen=True)
class CorpusReport:
    """What reading a corpus found, as plain data."""

    sentences: Counts
    schemes: Mapping[str, str]
    """Language → the scheme its files are written in."""
    repairs: Counts
    """Tags that were not valid in their file's scheme and were read as conlleval reads them."""
    overlaps: Counts
    """Sentences dropped from train and unlabelled because their text is also in dev or test; or kept in spite of it."""
    duplicates: Counts
    """Sentences dropped from train and unlabelled because their language already had their text."""
    dev_in_test: int
    """Sentences of dev whose text is also in test. They are kept: both parts are as their authors published them."""
    unseen: Mapping[str, Counts]
    """Label → part → language → how often a label of dev or test occurs that no training sentence has."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Language → what it gives to training; a language that is not listed is labelled."""
    skipped: Counts = field(default_factory=dict)
    """Sentences that were left out because of a fault."""
    overlaps_kept: bool = False
    spaced: Mapping[str, SpacedWords] = field(default_factory=dict)
    """Language → its words with white space inside, if any."""
    examples: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]] = field(default_factory=dict)
    """Of `repairs`, `skipped`, `overlaps`, `duplicates` and each note some, by part and language."""
    notes: Mapping[str, Counts] = field(default_factory=dict)
    """Note → its counts: changes of reading, and records that were left out, that are no faults."""
    pos: PosReport | None = None
    """Of a treebank."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """Language → what of its tags is read otherwise than it is spelled, in words; of languages where something is."""
    without_labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Part → languages whose sentences have no label at all, where other sentences have some."""
    alike: Sequence[Sequence[str]] = ()
    """Types of spans that differ by capital letters alone."""
    long: Counts = field(default_factory=dict)
    """Sentences of very many words."""

    def role(self, language: str) -> Role:
        """What `language` gives to training."""
        return self.roles.get(language, "labelled")

    def warnings(self, *, tags: bool = True) -> list[str]:
        """One sentence for each thing to know before training; `tags`: whether the task reads them."""
        return [
            *self._missing(),
            *(self._unseen() if tags else ()),
            *(self._alike() if tags else ()),
            *(self._without_labels() if tags else ()),
            *(self._repaired() if tags else ()),
            *long_sentence_messages(self.long, self.examples.get("long", {})),
            *self.note_messages(),
            *self._changed(),
            *self.spaced_word_messages(),
            *self._without_pos(),
        ]

    def pos_messages(self) -> list[str]:
        """One sentence of a treebank: where its parts of speech are from, and how often predicted ones are right."""
        return [] if self.pos is None else [self.pos.message()]

    def spaced_word_messages(self) -> list[str]:
        """One sentence for each language in which many words have white space inside."""
        return [message for name, own in self.spaced.items() if (message := own.message(name))]

    def _without_pos(self) -> Iterable[str]:
        if self.pos is None:
            return
        for part, languages in self.sentences.items():
            for language, count in languages.items():
                if without := count - self.pos.sentences[part].get(language, 0):
                    have = "has" if without == 1 else "have"
                    yield f"{pluralise(without, 'sentence')} of {part} {language} {have} no parts of speech"

    def _missing(self) -> Iterable[str]:
        for language in self.sentences["train"]:
            wanted = EXPECTED_PARTS[self.role(language)]
            empty = [part for part in wanted if not self.sentences[part].get(language)]
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
            named = ", ".join(map(repr, labels))
            yield f"labels {named} differ by capital letters alone, and count as {len(labels)} labels"

    def _without_labels(self) -> Iterable[str]:
        for part, languages in self.without_labels.items():
            for language in languages:
                if part == "train":
                    yield f"train {language} has no span: from its sentences nothing but O is learnt"
                else:
                    yield f"{part} {language} has no span: a score on it says nothing"

    def describe_tags(self) -> list[str]:
        """How the files write spans: their scheme, and what is spelled otherwise."""
        lines = []
        if any(form_of(scheme).bioes for scheme in self.schemes.values()):
            one = len(set(self.schemes.values())) == 1
            schemes = (scheme if one else f"{name} {scheme}" for name, scheme in self.schemes.items())
            lines.append(f"scheme: {', '.join(dict.fromkeys(schemes))}")
        by_text: dict[str, list[str]] = {}
        for language, text in self.spellings.items():
            by_text.setdefault(text, []).append(language)
        return lines + [f"tags of {', '.join(languages)}: {text}" for text, languages in by_text.items()]

    def _repaired(self) -> Iterable[str]:
        for part, languages in self.repairs.items():
            for language, count in languages.items():
                scheme = self.schemes[language]
                one = count == 1
                what = (
                    f"{pluralise(count, 'tag')} of {part} {language} {'was' if one else 'were'} not valid in "
                    f"{'its' if one else 'their'} scheme ({scheme}) and {'was' if one else 'were'} repaired"
                )
                yield what + self._some("repairs", part, language)

    def note_messages(self) -> list[str]:
        """One sentence for each thing that reading changed or left out although it is no fault."""
        return [
            note_message(note, count, f"{part} {language}") + self._some(note, part, language)
            for note, counts in self.notes.items()
            for part, languages in counts.items()
            for language, count in languages.items()
        ]

    def _changed(self) -> Iterable[str]:
        for part, languages in self.skipped.items():
            for language, count in languages.items():
                one = count == 1
                what = (
                    f"{pluralise(count, 'sentence')} of {part} {language} {'has' if one else 'have'} faults and "
                    f"{'was' if one else 'were'} left out"
                )
                yield what + self._some("skipped", part, language)
        keep = "set corpus.overlaps: keep to keep them"
        for part, languages in self.overlaps.items():
            count = sum(languages.values())
            what, were, they = (
                pluralise(count, "sentence"),
                *(("was", "it is") if count == 1 else ("were", "they are")),
            )
            where = f"{they} also in dev or test{self._shares('overlaps', part, languages)}"
            if languages and self.overlaps_kept:
                yield f"{what} of {part} {were} kept, and {where}; scores of these are too high"
            elif languages:
                yield f"{what} {were} dropped from {part}: {where}; {keep}"
        keep = "set corpus.duplicates: keep to keep them"
        for part, languages in self.duplicates.items():
            if languages:
                shares = self._shares("duplicates", part, languages)
                count = sum(languages.values())
                were = "was" if count == 1 else "were"
                yield f"{pluralise(count, 'repeated sentence')} {were} dropped from {part}{shares}; {keep}"
        if self.dev_in_test:
            are = "is" if self.dev_in_test == 1 else "are"
            yield f"{pluralise(self.dev_in_test, 'sentence')} of dev {are} also in test"

    def _some(self, kind: str, part: str, language: str) -> str:
        found = self.examples.get(kind, {}).get(part, {}).get(language, ())
        return f", for example {'; '.join(found)}" if found else ""

    def _shares(self, kind: str, part: str, languages: Mapping[str, int]) -> str:
        """How many of each language, the most first, with examples of the first."""
        ordered = sorted(languages, key=lambda language: -languages[language])
        counts = ", ".join(f"{language} {languages[language]}" for language in ordered)
        examples = self.examples.get(kind, {}).get(part, {}).get(ordered[0], ()) if ordered else ()
        quoted = ", ".join(repr(text) for text in examples)
        return f" ({counts}{f'; for example {quoted}' if quoted else ''})"

    def restricted(self, languages: Iterable[str]) -> CorpusReport:
        """The counts for these languages alone."""
        kept = set(languages)
        unseen = {label: _restrict(counts, kept) for label, counts in self.unseen.items()}
        return replace(
            self,
            schemes={language: scheme for language, scheme in self.schemes.items() if language in kept},
            unseen={label: counts for label, counts in unseen.items() if any(counts.values())},
            roles={language: role for language, role in self.roles.items() if language in kept},
            spaced={language: own for language, own in self.spaced.items() if language in kept},
            spellings={language: text for language, text in self.spellings.items() if language in kept},
            without_labels={
                part: [language for language in languages if language in kept]
                for part, languages in self.without_labels.items()
            },
            pos=self.pos and self.pos.restricted(kept),
            notes={note: _restrict(counts, kept) for note, counts in self.notes.items()},
            **{
                name: _restrict(getattr(self, name), kept)
                for name in ("sentences", "repairs", "skipped", "overlaps", "duplicates", "long")
            },
        )

    def to_plain(self) -> PlainObject:
        """JSON-able form; `from_plain` reads it back."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: PlainObject) -> CorpusReport:
        """The report that `to_plain` gave."""
        spaced = {language: SpacedWords(**own) for language, own in plain["spaced"].items()}
        return cls(**{**plain, "spaced": spaced, "pos": plain["pos"] and PosReport(**plain["pos"])})


def pos_report(tables: Mapping[str, pa.Table], config: SourceConfig, taggers: PosTaggers | None) -> PosReport:
    """Which parts of speech the tables of a treebank have."""
    known = {
        part: table.select(["language"]).filter(table["pos"].is_valid()) for part, table in tables.items()
    }
    counts = count_sentences(known, config.languages)
    if taggers is None:
        return PosReport(config.pos_origin, counts)
    return PosReport(config.pos_origin, counts, taggers.predicted, taggers.compared, taggers.agreeing)


def long_sentence_messages(counts: Counts, examples: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """One sentence for each part and language that has sentences of very many words."""
    messages = []
    for part, languages in counts.items():
        for language, count in languages.items():
            some = "; ".join(examples.get(part, {}).get(language, ()))
            messages.append(
                f"{pluralise(count, 'sentence')} of {part} {language} {'has' if count == 1 else 'have'} more than "
                f"{MANY_WORDS:,} words ({some}): end each sentence with an empty line, in tables give it a row"
            )
    return messages


def _by_place(values: Mapping[str, Mapping[str, float]], several: bool) -> list[tuple[str, float]]:
    """(`dev en`, value) of every part and language; without the language where there is one alone."""
    return [
        (f"{part} {language}" if several else part, value)
        for part, own in values.items()
        for language, value in own.items()
    ]


def count_sentences(tables: Mapping[str, pa.Table], languages: Iterable[str]) -> dict[str, dict[str, int]]:
    """How many sentences each part has of each language."""
    counts = {}
    for part, table in tables.items():
        found = {entry["values"]: entry["counts"] for entry in table["language"].value_counts().to_pylist()}
        counts[part] = {language: found.get(language, 0) for language in languages}
    return counts


def count_spaced_words(table: pa.Table) -> dict[str, SpacedWords]:
    """Language → its words with white space inside, of those that have any."""
    found: dict[str, SpacedWords] = {}
    for batch in table.select(["tokens", "language"]).to_batches():
        for language in batch["language"].unique().to_pylist():
            own = pc.call_function("equal", [batch["language"], pa.scalar(language)])
            words = batch["tokens"].filter(own).flatten()
            inside = pc.call_function("match_substring_regex", [words], pc.MatchSubstringOptions(r"[\s\pZ]"))
            spaced = words.filter(inside)
            found[language] = found.get(language, SpacedWords()).with_words(len(words), spaced.to_pylist())
    return {language: own for language, own in found.items() if own.count}


def _restrict(counts: Counts, languages: set[str]) -> dict[str, dict[str, int]]:
    return {
        part: {language: count for language, count in found.items() if language in languages}
        for part, found in counts.items()
    }
