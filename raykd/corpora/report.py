"""What reading a corpus found: counts, repairs, what was dropped, and what to know before training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raykd.corpora.source import Role
from raykd.corpora.tags import OUTSIDE, TagSet

Counts = Mapping[str, Mapping[str, int]]
"""Part → language → number."""
WANTED: Mapping[Role, tuple[str, ...]] = MappingProxyType(
    {"labelled": ("train", "dev", "test"), "unlabelled": ("unlabelled", "test"), "zero-shot": ("test",)}
)
"""The parts in which a language of each role should have sentences."""


@dataclass(frozen=True)
class CorpusReport:
    """What reading a corpus found, as plain data."""

    sentences: Counts
    schemes: Mapping[str, str]
    """Language → the scheme its files are written in."""
    repairs: Counts
    """Tags that were not valid in their file's scheme and were read as conlleval reads them."""
    overlaps: Mapping[str, int]
    """Sentences dropped from train and unlabelled because their text is also in dev or test."""
    duplicates: Mapping[str, int]
    """Sentences dropped from train and unlabelled because their language already had their text."""
    dev_in_test: int
    """Sentences of dev whose text is also in test. They are kept: both parts are as their authors published them."""
    unseen: Mapping[str, Counts]
    """Label → part → language → how often a label of dev or test occurs that no training sentence has."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Language → what it gives to training; a language that is not listed is labelled."""

    def role(self, language: str) -> Role:
        """What `language` gives to training."""
        return self.roles.get(language, "labelled")

    def warnings(self) -> list[str]:
        """One sentence for each thing to know before training."""
        return [*self._missing(), *self._unseen(), *self._changed()]

    def _missing(self) -> Iterable[str]:
        for language in self.sentences["train"]:
            wanted = WANTED[self.role(language)]
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

    def _changed(self) -> Iterable[str]:
        for part, languages in self.repairs.items():
            for language, count in languages.items():
                scheme = self.schemes[language]
                yield f"{count} tags of {part} {language} were not valid in their scheme ({scheme}) and were repaired"
        for part, count in self.overlaps.items():
            if count:
                yield f"{count} sentences were dropped from {part}: they are also in dev or test"
        for part, count in self.duplicates.items():
            if count:
                yield f"{count} repeated sentences were dropped from {part}"
        if self.dev_in_test:
            yield f"{self.dev_in_test} sentences of dev are also in test"

    def restricted(self, languages: Iterable[str]) -> CorpusReport:
        """The counts that are kept per language, for these languages alone."""
        kept = set(languages)
        unseen = {label: _only(counts, kept) for label, counts in self.unseen.items()}
        return CorpusReport(
            _only(self.sentences, kept),
            {language: scheme for language, scheme in self.schemes.items() if language in kept},
            _only(self.repairs, kept),
            self.overlaps,
            self.duplicates,
            self.dev_in_test,
            {label: counts for label, counts in unseen.items() if any(counts.values())},
            {language: role for language, role in self.roles.items() if language in kept},
        )

    def to_plain(self) -> dict[str, Any]:
        """JSON-able form; `CorpusReport(**plain)` reads it back."""
        return asdict(self)


def sentence_counts(tables: Mapping[str, pa.Table], languages: Iterable[str]) -> dict[str, dict[str, int]]:
    """How many sentences each part has of each language."""
    counts = {}
    for part, table in tables.items():
        found = {entry["values"]: entry["counts"] for entry in table["language"].value_counts().to_pylist()}
        counts[part] = {language: found.get(language, 0) for language in languages}
    return counts


def label_counts(table: pa.Table, tag_set: TagSet) -> dict[str, dict[str, int]]:
    """Language → label → how often: spans by type (BIOES), words by tag (flat), sentences by class."""
    found: dict[str, np.ndarray] = {}
    for batch in table.select(["tags", "language"]).to_batches():
        for language in batch["language"].unique().to_pylist():
            tags = (
                batch["tags"]
                .filter(pc.call_function("equal", [batch["language"], pa.scalar(language)]))
                .flatten()
                .to_numpy()
            )
            counts = np.bincount(tags, minlength=len(tag_set))
            found[language] = found.get(language, 0) + counts
    return {language: _by_label(counts, tag_set) for language, counts in found.items()}


def _by_label(counts: np.ndarray, tag_set: TagSet) -> dict[str, int]:
    found: dict[str, int] = {}
    for tag, count in zip(tag_set.tags, counts.tolist(), strict=True):
        label = _label_of(tag, tag_set)
        if label is not None and count:
            found[label] = found.get(label, 0) + count
    return found


def unseen_labels(tables: Mapping[str, pa.Table], tag_set: TagSet) -> dict[str, dict[str, dict[str, int]]]:
    """Label → part → language → how often, for labels of dev and test that no training sentence has."""
    seen = {label for counts in label_counts(tables["train"], tag_set).values() for label in counts}
    unseen: dict[str, dict[str, dict[str, int]]] = {}
    for part in ("dev", "test"):
        for language, counts in label_counts(tables[part], tag_set).items():
            for label in sorted(set(counts) - seen):
                unseen.setdefault(label, {}).setdefault(part, {})[language] = counts[label]
    return unseen


def _label_of(tag: str, tag_set: TagSet) -> str | None:
    if tag_set.scheme == "flat":
        return tag
    # Every span has exactly one B or S.
    return tag[2:] if tag != OUTSIDE and tag[0] in "BS" else None


def _only(counts: Counts, languages: set[str]) -> dict[str, dict[str, int]]:
    return {
        part: {language: count for language, count in found.items() if language in languages}
        for part, found in counts.items()
    }
