"""A look at the files of a corpus: they are there, and their beginnings can be read; so are its models."""

from __future__ import annotations

from dataclasses import dataclass

from raykd.corpora.config import READERS, CorpusConfig
from raykd.corpora.faults import Faults
from raykd.corpora.files import files_of
from raykd.corpora.predicted_pos import OpenPosModel, PosTaggers, refuse_model
from raykd.corpora.report import Spaced
from raykd.corpora.source import FilesConfig

FIRST = 100
"""The sentences of each file that are read."""


@dataclass(frozen=True)
class Glance:
    """What was looked at."""

    files: int = 0
    notes: tuple[str, ...] = ()
    """What to know before training."""


def glance(config: CorpusConfig, open_model: OpenPosModel = refuse_model) -> Glance:
    """Read the first sentences of every file of `config`; nothing of a source without files. `open_model` opens
    models of parts of speech.

    Raises:
        CorpusError: files are missing, or sentences have faults that may not be skipped; the first ones together. Or a
            model of parts of speech cannot be used.
    """
    if not isinstance(config, FilesConfig):
        return Glance()
    PosTaggers.of(config, open_model)
    found: dict[str, Spaced] = {}
    for part, sentence in Faults(config.on_error).sentences(READERS[config.source](config, most=FIRST)):
        if part == "train" and sentence.unit == "word":
            own = found.get(sentence.language, Spaced())
            spaced = [word for word in sentence.tokens if len(word.split()) > 1]
            found[sentence.language] = own.with_words(len(sentence.tokens), spaced)
    notes = (own.message(language) for language, own in found.items())
    return Glance(len(files_of(config)), tuple(note for note in notes if note))
