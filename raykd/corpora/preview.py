"""Preview of a corpus before training: files exist, first sentences can be read, and models can be opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raykd.corpora.config import READERS, CorpusConfig
from raykd.corpora.faults import Faults
from raykd.corpora.files import list_files
from raykd.corpora.predicted_pos import OpenPosModel, PosTaggers, refuse_model
from raykd.corpora.report import long_sentence_messages
from raykd.corpora.source import FilesConfig
from raykd.corpora.spaced_words import SpacedWords
from raykd.metrics.bioes import OUTSIDE
from raykd.pluralise import pluralise

FIRST = 100
"""Number of first sentences that are read from a file."""


@dataclass(frozen=True)
class Preview:
    """Result of a preview.

    Attributes:
        files: Number of files.
        notes: Messages to read before training.
    """

    files: int = 0
    notes: tuple[str, ...] = ()


@dataclass
class _Labels:
    """Labels in the first sentences of a part and language."""

    sentences: int = 0
    has_span: bool = False

    def add(self, tags: Sequence[str]) -> None:
        self.sentences += 1
        self.has_span |= any(tag != OUTSIDE for tag in tags)

    def message(self, part: str, language: str) -> str:
        """Return a warning if no sentence has a span, else an empty text."""
        if self.has_span:
            return ""
        if self.sentences == 1:
            return f"the first sentence of {part} {language} has no span"
        return f"none of the first {pluralise(self.sentences, 'sentence')} of {part} {language} has a span"


def preview(config: CorpusConfig, open_model: OpenPosModel = refuse_model) -> Preview:
    """Read the first sentences of all files of a corpus; a source without files gives an empty preview.

    Args:
        config: Configuration of the corpus.
        open_model: Function that opens a model of parts of speech; the default refuses every model.

    Raises:
        CorpusError: Files are missing, sentences have faults that must not be skipped, or a model of parts of speech
            cannot be used. The first faults are reported together.
    """
    if not isinstance(config, FilesConfig):
        return Preview()
    PosTaggers.from_config(config, open_model)
    spaced_words: dict[str, SpacedWords] = {}
    faults, labels = Faults(config.on_error), dict[tuple[str, str], _Labels]()
    for part, sentence in faults.sentences(READERS[config.source](config, limit=FIRST)):
        if sentence.tags is not None and sentence.unit == "word":
            labels.setdefault((part, sentence.language), _Labels()).add(sentence.tags)
        if part == "train" and sentence.unit == "word":
            before = spaced_words.get(sentence.language, SpacedWords())
            spaced = [word for word in sentence.tokens if len(word.split()) > 1]
            spaced_words[sentence.language] = before.with_words(len(sentence.tokens), spaced)
    notes = [spaced.message(language) for language, spaced in spaced_words.items()]
    if any(first_labels.has_span for first_labels in labels.values()):
        notes += [first_labels.message(part, language) for (part, language), first_labels in labels.items()]
    notes += long_sentence_messages(faults.long_sentences.counts, faults.long_sentences.examples)
    return Preview(len(list_files(config)), tuple(note for note in notes if note))
