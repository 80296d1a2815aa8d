"""A corpus: its parts as Arrow tables in one internal tag scheme, from any source, named by its content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raykd.corpora.config import READERS, CorpusConfig
from raykd.corpora.conversion import convert
from raykd.corpora.report import CorpusReport, sentence_counts, unseen_labels
from raykd.corpora.selection import select, text_of
from raykd.corpora.sentence import PARTS, Unit
from raykd.corpora.source import Parts, SourceConfig
from raykd.corpora.tags import TagSet
from raykd.errors import CorpusError, StoreError
from raykd.identity import identity
from raykd.storage import DOCTOR, Storage

FORMAT = 1
"""Of the stored corpus and of what its identity is computed over."""

MANIFEST = "corpus.json"


@dataclass(frozen=True)
class Corpus:
    """Sentences of some languages in four parts: train, unlabelled, dev and test.

    Each part is a table with the columns `tokens` (list of string), `tags` (list of int16: numbers in
    `tag_set`; null where the sentence is unlabelled) and `language`. A list of tags has one number per word, or,
    where `unit` is "sentence", exactly one: the sentence's class, in a flat `tag_set`.
    """

    tag_set: TagSet
    languages: tuple[str, ...]
    parts: Mapping[str, pa.Table]
    report: CorpusReport
    unit: Unit = "word"

    @property
    def labels(self) -> tuple[str, ...]:
        """Span types (BIOES), tags of words (flat) or classes of sentences."""
        return self.tag_set.labels

    @property
    def sources(self) -> tuple[str, ...]:
        """The languages with labels: dev has no others, and every mean that selects is over them."""
        return tuple(name for name in self.languages if self.report.role(name) == "labelled")

    @property
    def targets(self) -> tuple[str, ...]:
        """The languages without labels, of which training sees unlabelled text or nothing."""
        return tuple(language for language in self.languages if language not in self.sources)

    def restricted(self, languages: Iterable[str]) -> Corpus:
        """The corpus without other languages. The tag set stays, so that tag numbers mean the same."""
        wanted = set(languages)
        kept = tuple(language for language in self.languages if language in wanted)
        parts = {
            part: table.filter(pc.field("language").isin(list(kept))) for part, table in self.parts.items()
        }
        return Corpus(self.tag_set, kept, parts, self.report.restricted(kept), self.unit)


def read_corpus(config: CorpusConfig) -> Corpus:
    """Read, select and convert the corpus that `config` describes.

    Raises:
        CorpusError: a file is missing, empty or malformed, a tag does not fit its scheme, or no sentence is left to
            train on.
    """
    return make_corpus(READERS[config.source](config), config)


def make_corpus(parts: Parts, config: SourceConfig) -> Corpus:
    """A corpus of sentences already read; see `read_corpus`."""
    parts = {part: [s for s in sentences if s.tokens] for part, sentences in parts.items()}
    selected, dropped = select(parts, config)
    _refuse_empty(parts, selected, config)
    converted = convert(selected, config)
    test = {text_of(sentence) for sentence in selected["test"]}
    report = CorpusReport(
        sentence_counts(converted.tables, config.languages),
        converted.schemes,
        converted.repairs,
        dropped.overlaps,
        dropped.duplicates,
        sum(text_of(sentence) in test for sentence in selected["dev"]),
        unseen_labels(converted.tables, converted.tag_set),
        {language: config.role(language) for language in config.languages},
    )
    return Corpus(converted.tag_set, config.languages, converted.tables, report, converted.unit)


def corpus_id(corpus: Corpus) -> str:
    """The identity of a corpus: over words, tags, languages and their order in every part, the tag set, which
    languages are targets, and the unit of the tags.

    Where the text was read from and in which format does not matter.
    """
    parts = {part: _digest(corpus.parts[part]) for part in PARTS}
    tags = {"scheme": corpus.tag_set.scheme, "tags": list(corpus.tag_set.tags)}
    targets = {"targets": list(corpus.targets)} if corpus.targets else {}
    content = {"format": FORMAT, "parts": parts, "tag_set": tags, **targets, **_plain_unit(corpus)}
    return identity("corpus", content)


def write_corpus(corpus: Corpus, storage: Storage) -> str:
    """Store `corpus` below corpora/<id>/, the manifest last, and return its id; one already stored stays."""
    name = corpus_id(corpus)
    folder = storage.child("corpora", name)
    if folder.exists(MANIFEST):
        return name
    files = {}
    for part in PARTS:
        data = _to_ipc(corpus.parts[part])
        folder.write(f"{part}.arrow", data)
        files[part] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest = {
        "format": FORMAT,
        "languages": list(corpus.languages),
        "tag_set": {"scheme": corpus.tag_set.scheme, "tags": list(corpus.tag_set.tags)},
        "files": files,
        "report": corpus.report.to_plain(),
        **_plain_unit(corpus),
    }
    folder.write_json(MANIFEST, manifest)
    return name


def open_corpus(storage: Storage, name: str) -> Corpus:
    """The stored corpus `name`, its tables mapped from its files.

    Raises:
        StoreError: it is missing, was written in another format, or a file differs from its checksum.
    """
    folder = storage.child("corpora", name)
    if not folder.exists(MANIFEST):
        raise StoreError(f"corpora/{name}", "no such corpus is stored", "read and write it first")
    return folder.read_json(MANIFEST, lambda manifest: _opened(folder, manifest))


def _opened(folder: Storage, manifest: Mapping[str, Any]) -> Corpus:
    if manifest["format"] != FORMAT:
        problem = f"it has format {manifest['format']}, this raykd reads {FORMAT}"
        raise StoreError(folder.address, problem, "remove it and write it again")
    tag_set = TagSet(tuple(manifest["tag_set"]["tags"]), manifest["tag_set"]["scheme"])
    parts = {part: _map(folder, part, manifest["files"][part]) for part in PARTS}
    report, unit = CorpusReport(**manifest["report"]), manifest.get("unit", Corpus.unit)
    return Corpus(tag_set, tuple(manifest["languages"]), parts, report, unit)


def _plain_unit(corpus: Corpus) -> dict[str, str]:
    # Stated only where it is not the default: corpora stored before it existed keep their identity.
    return {} if corpus.unit == Corpus.unit else {"unit": corpus.unit}


def _refuse_empty(read: Parts, selected: Parts, config: SourceConfig) -> None:
    sentences = read.get("train", [])
    for part in ("train", "dev", "test"):
        if not any(config.role(sentence.language) == "labelled" for sentence in selected[part]):
            origin = next((s.origin[0] for s in sentences if s.origin), "corpus")
            problem = f"no sentence is left for {part} (of {len(sentences)} training sentences read)"
            raise CorpusError(origin, None, problem, "add text, raise corpus.cap, or change corpus.split")


def _digest(table: pa.Table) -> str:
    """sha256 over the values of a table, the same for every Arrow layout (chunks, slices, buffers)."""
    digest = hashlib.sha256(f"{table.num_rows}".encode())
    for name in sorted(table.column_names):
        digest.update(f";{name}:".encode())
        for level in _flat_bytes(table[name].combine_chunks()):
            digest.update(level)
    return digest.hexdigest()


def _flat_bytes(column: pa.Array) -> Iterable[bytes]:
    """Validity, lengths and values of a column, level by level, each as plain bytes."""
    yield np.packbits(column.is_valid().to_numpy(zero_copy_only=False)).tobytes()
    if pa.types.is_list(column.type):
        yield _plain(column.value_lengths())
        yield from _flat_bytes(column.flatten())
    elif pa.types.is_string(column.type):
        yield _plain(pc.call_function("binary_length", [column]))
        yield "".join(text or "" for text in column.to_pylist()).encode()
    else:
        yield _plain(column)


def _plain(numbers: pa.Array) -> bytes:
    return numbers.fill_null(0).to_numpy(zero_copy_only=False).astype("<i8").tobytes()


def _to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    # One record batch: readers flatten whole columns, and joining batches would copy mapped memory.
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def _map(folder: Storage, part: str, written: Mapping[str, Any]) -> pa.Table:
    source = pa.memory_map(str(folder.local_path(f"{part}.arrow")))
    found = hashlib.sha256(source.read_buffer()).hexdigest()
    if found != written["sha256"]:
        problem = f"is damaged: its checksum is {found[:12]}…, it was written with {written['sha256'][:12]}…"
        raise StoreError(f"{folder.address}/{part}.arrow", problem, DOCTOR)
    source.seek(0)
    return pa.ipc.open_file(source).read_all()
