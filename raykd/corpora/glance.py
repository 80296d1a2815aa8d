"""A look at the files of a corpus: they are there, and their beginnings can be read."""

from __future__ import annotations

from collections import deque

from raykd.corpora.config import READERS, CorpusConfig
from raykd.corpora.faults import Faults
from raykd.corpora.files import files_of
from raykd.corpora.source import FilesConfig

FIRST = 100
"""The sentences of each file that are read."""


def glance(config: CorpusConfig) -> int:
    """Read the first sentences of every file of `config`; the number of files, 0 for a source without files.

    Raises:
        CorpusError: files are missing, or sentences have faults that may not be skipped; the first ones together.
    """
    if not isinstance(config, FilesConfig):
        return 0
    deque(Faults(config.on_error).sentences(READERS[config.source](config, most=FIRST)), maxlen=0)
    return len(files_of(config))
