"""Labelled files without a corpus around them: read as a part of a corpus is, by the same readers, nothing left out.

A file becomes the configuration of a corpus whose parts are all drawn from it, so that the file is read once, with its
tags; what is drawn is not looked at.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from raykd.corpora.config import READERS, SOURCES, CorpusConfig
from raykd.corpora.conllu import WIDTH
from raykd.corpora.conversion import convert
from raykd.corpora.faults import Faults
from raykd.corpora.files import read_lines
from raykd.corpora.pool import read_pool
from raykd.corpora.sentence import Unit
from raykd.corpora.tag_faults import without_unknown_tags
from raykd.corpora.tags import FileScheme
from raykd.spec import Document, Frozen, check, overridden
from raykd.storage import Storage

BY_NAME = {".parquet": "parquet", ".jsonl": "jsonl"}
"""The source of a file by the end of its name, where that decides."""


@dataclass(frozen=True)
class LabelledFile:
    """A file with the languages of its sentences: one, or several where a column of a table names them."""

    name: str
    languages: tuple[str, ...]


@dataclass(frozen=True)
class LabelledText:
    """N sentences with their labels: BIOES tags of spans, or labels as the files have them."""

    sentences: Sequence[Sequence[str]]
    labels: Sequence[Sequence[str]]
    languages: Sequence[str]
    origins: Sequence[tuple[str, int | None]]
    """The file and the line of each sentence's first word, from 1."""
    unit: Unit
    scheme: str
    """`bioes` or `flat`."""
    repairs: int
    """Tags that were not valid in the files' scheme as they stood."""
    skipped: int
    """Sentences that could not be read and were left out, with `corpus.on_error=skip`."""


class _File(Frozen):
    corpus: CorpusConfig


def read_labelled(
    files: Sequence[LabelledFile], *, unit: Unit, scheme: FileScheme = "auto", overrides: Sequence[str] = ()
) -> LabelledText:
    """All sentences of `files`, in their order.

    Args:
        unit: what one label belongs to, in files that do not say it.
        scheme: how the files write spans.
        overrides: settings of the corpus' source as in a sweep file, `corpus.columns.token=1`.

    Raises:
        SpecError: an override is no setting of the source.
        CorpusError: a file is missing, empty or malformed.
    """
    configs = [_config(file, unit, scheme, overrides) for file in files]
    stream = chain.from_iterable(READERS[config.source](config) for config in configs)
    with tempfile.TemporaryDirectory(prefix="raykd-") as folder:
        faults = Faults(configs[0].on_error)
        pool = read_pool(stream, Path(folder), faults)
        columns = pool.columns
        if faults.on_error == "skip":
            columns = without_unknown_tags(pool, configs[0], faults)
        rows = np.flatnonzero(columns.part >= 0)
        converted = convert(pool, {"test": rows}, configs[0])
        batches = [batch for _, batch in pool.batches(rows, ["file", "line"])]
    origins = [
        place for batch in batches for place in zip(*(column.to_pylist() for column in batch), strict=True)
    ]
    table, names = converted.tables["test"], converted.tag_set
    return LabelledText(
        table["tokens"].to_pylist(),
        [names.decode(tags) for tags in table["tags"].to_pylist()],
        table["language"].to_pylist(),
        origins,
        converted.unit,
        names.scheme,
        sum(converted.repairs["test"].values()),
        sum(sum(own.values()) for own in faults.skipped.counts.values()),
    )


def _config(file: LabelledFile, unit: Unit, scheme: FileScheme, overrides: Sequence[str]) -> Any:
    folder, _, name = file.name.rpartition("/")
    source = _source(Storage(folder or "."), name, unit)
    tree: dict[str, Any] = {
        "source": source, "root": folder or ("/" if file.name.startswith("/") else "."), "train": escape(name),
        "languages": list(file.languages), "split": {"train": 1, "dev": 1, "test": 1},
    }  # fmt: skip
    if source not in ("conllu", "tsv"):  # these are flat by themselves
        tree["scheme"] = scheme
    if unit == "sentence" and source in BY_NAME.values():
        tree["columns"] = {"text": "text"}
    document = overridden(Document(file.name, {"corpus": tree}, {}), overrides)
    check(document, _File)
    return _File.model_validate_json(json.dumps(document.tree)).corpus


def _source(storage: Storage, name: str, unit: Unit) -> str:
    """The source that reads a file: CoNLL columns, unless its name or its first line say otherwise."""
    end = Path(name.removesuffix(".gz")).suffix
    if end in BY_NAME and BY_NAME[end] in SOURCES:
        return BY_NAME[end]
    if unit == "sentence":
        return "tsv"
    # Some call any columns CoNLL-U.
    return "conllu" if end == ".conllu" and _columns(storage, name) == WIDTH else "conll"


def _columns(storage: Storage, name: str) -> int:
    """The columns between tabs of a file's first line with a word."""
    lines = (
        line
        for line in read_lines(storage, name, "utf-8")
        if isinstance(line, str) and line.strip() and line[0] != "#"
    )
    return next(lines, "").count("\t") + 1
