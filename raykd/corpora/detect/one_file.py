"""How one labelled file is read, where nothing but the file says it, and which labels are expected in it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from raykd.corpora.conllu import COLUMNS
from raykd.corpora.detect.assemble import scheme_of
from raykd.corpora.detect.columns import Column, tag_columns
from raykd.corpora.detect.look import look_at
from raykd.corpora.detect.seen import TEXT_FILES, Seen
from raykd.storage.store import Storage


def look_at_labelled(storage: Storage, name: str) -> Seen | None:
    """The file, if it is recognised and has labels."""
    seen = look_at(storage, name)
    return seen if isinstance(seen, Seen) and seen.labelled else None


def settings_of(seen: Seen, labels: Collection[str]) -> dict[str, Any]:
    """The settings of the source that reads a labelled file; of several columns of tags the one that has most of
    `labels`, span types or tags, then the likeliest."""
    settings: dict[str, Any] = {"source": seen.format, **dict(seen.settings)}
    if seen.format == "conll":
        tag = max(tag_columns(seen.columns), key=lambda column: _known(column, labels))
        words = next(column.place for column in seen.columns if column.kind == "words")
        settings["columns"] = {"token": words, "tag": tag.place}
        settings["separator"] = seen.separator
        settings["scheme"] = scheme_of(tag)
    if seen.format == "conllu":
        have = {tag: seen.columns[place] for tag, place in COLUMNS.items()}
        settings["tag"] = max(have, key=lambda tag: (_known(have[tag], labels), tag == settings["tag"]))
    if seen.format in TEXT_FILES and seen.encoding not in ("utf-8", "ascii"):
        settings["encoding"] = seen.encoding
    return {key: value for key, value in settings.items() if value is not False}


def _known(column: Column, labels: Collection[str]) -> float:
    return sum(value in labels for value in column.examples) / max(len(column.examples), 1)
