"""Corpora from sentences in memory: the steps of reading one by one."""

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
    """Return the pool of a source with these parts."""
    return read_pool(
        ((part, sentence) for part, sentences in parts.items() for sentence in sentences), folder
    )


def select(parts: Mapping[str, Iterable[Sentence]], config: SourceConfig) -> tuple[Parts, Dropped]:
    """Select sentences from parts."""
    everything = [sentence for sentences in parts.values() for sentence in sentences if sentence.tokens]
    with tempfile.TemporaryDirectory() as folder:
        rows, dropped = select_rows(pool_of(parts, Path(folder)).columns, config)
    selected = {part: [everything[row] for row in part_rows.tolist()] for part, part_rows in rows.items()}
    selected["unlabelled"] = [sentence._replace(tags=None) for sentence in selected["unlabelled"]]
    return selected, dropped
