"""What a source gives, by part; and what is selected of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from raykd.corpora.config import READERS
from raykd.corpora.faults import Faults
from raykd.corpora.pool import Pool, read_pool
from raykd.corpora.selection import Dropped
from raykd.corpora.selection import select as select_rows
from raykd.corpora.sentence import Sentence
from raykd.corpora.source import SourceConfig

Parts = dict[str, list[Sentence]]


def read(config: Any) -> Parts:
    """The sentences of each part, in reading order, without those that are skipped."""
    parts: Parts = {}
    for part, sentence in Faults(config.on_error).sentences(READERS[config.source](config)):
        parts.setdefault(part, []).append(sentence)
    return parts


def pool_of(parts: Mapping[str, Iterable[Sentence]], folder: Path) -> Pool:
    """What would be read of a source that gives these parts."""
    return read_pool(((part, each) for part, sentences in parts.items() for each in sentences), folder)


def select(parts: Mapping[str, Iterable[Sentence]], config: SourceConfig) -> tuple[Parts, Dropped]:
    """The sentences that are selected from parts, with the tags that are used of them."""
    everything = [sentence for sentences in parts.values() for sentence in sentences if sentence.tokens]
    with tempfile.TemporaryDirectory() as folder:
        rows, dropped = select_rows(pool_of(parts, Path(folder)).columns, config)
    selected = {part: [everything[row] for row in found.tolist()] for part, found in rows.items()}
    selected["unlabelled"] = [sentence._replace(tags=None) for sentence in selected["unlabelled"]]
    return selected, dropped
