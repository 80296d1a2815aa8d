"""A corpus: parts as Arrow tables in one internal tag scheme, from any source, with an id computed from the content."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raykd.corpora.chunks import map_table, to_mapped_table, write_batches
from raykd.corpora.config import READERS, CorpusConfig
from raykd.corpora.conversion import ConvertedCorpus, convert
from raykd.corpora.faults import MOST_EXAMPLES, Faults, Tally
from raykd.corpora.label_counts import (
    label_counts_by_part,
    labels_differing_in_case,
    languages_without_labels,
    unseen_labels,
)
from raykd.corpora.note_messages import note_message
from raykd.corpora.pool import Pool, read_pool
from raykd.corpora.predicted_pos import OpenPosModel, PosTaggers, refuse_model
from raykd.corpora.report import CorpusReport, count_sentences, pos_report
from raykd.corpora.selection import TRAINING, find_overlaps, select
from raykd.corpora.sentence import Sentence, Unit, display_words
from raykd.corpora.source import SourceConfig, Stream
from raykd.corpora.spaced_words import count_spaced_words
from raykd.corpora.table_digest import table_digest
from raykd.corpora.tag_faults import fault_at, find_spellings, without_unknown_tags
from raykd.errors import CorpusError, StoreError
from raykd.forms import TagSet, labels_from
from raykd.identity import identity
from raykd.metrics.bioes import OUTSIDE
from raykd.progress import part_of_work
from raykd.storage.digests import check_sha256, path_sha256
from raykd.storage.layout import CORPUS, PARTS
from raykd.storage.sealed_json import DOCTOR
from raykd.storage.store import Storage

FORMAT = 2
"""Version of the content from which the id of a corpus is computed."""

READ = 0.6
"""Approximate share of the time for making a corpus that reading takes, for the progress."""


@dataclass(frozen=True)
class Corpus:
    """Sentences of some languages in four parts: train, unlabelled, dev and test.

    Each part is a table with the columns `tokens` (list of string), `tags` (list of int16: numbers in `tag_set`; null
    for an unlabelled sentence) and `language`. A list of tags has one number per word, or, if `unit` is "sentence",
    exactly one: the class of the sentence, in a flat `tag_set`.

    The tags of a treebank are relations, and its tables have two more columns: `heads` (list of int16: 0 the root, h
    the word h - 1; null for an unlabelled sentence) and `pos` (list of int16: numbers in `pos`; null where unknown).

    Tables of a source with raw text have two more: `text`, and `offsets` (list of int32 [2T]: the first character of
    each word and the one behind its last); null where unknown.

    Attributes:
        tag_set: Names of the tags.
        languages: All languages.
        parts: Part → table.
        report: Counts and warnings of reading.
        unit: The unit of a tag: word or sentence.
        pos: Parts of speech of a treebank, in the order of their numbers; empty without trees.
        outside_mean: Target languages left out of the mean over targets.
    """

    tag_set: TagSet
    languages: tuple[str, ...]
    parts: Mapping[str, pa.Table]
    report: CorpusReport
    unit: Unit = "word"
    pos: tuple[str, ...] = ()
    outside_mean: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Span types (BIOES), tags of words (flat) or classes of sentences."""
        return self.tag_set.labels

    @property
    def sources(self) -> tuple[str, ...]:
        """Languages with labels: the only ones in dev, and in all means used for selection."""
        return tuple(name for name in self.languages if self.report.role(name) == "labelled")

    @property
    def targets(self) -> tuple[str, ...]:
        """Languages without labels; training sees unlabelled text of them, or nothing."""
        return tuple(language for language in self.languages if language not in self.sources)

    def select_languages(self, languages: Iterable[str]) -> Corpus:
        """Return the corpus of some languages, with new memory-mapped tables and the same tag numbers."""
        requested = set(languages)
        selected = tuple(language for language in self.languages if language in requested)
        parts = {part: _filter_languages(table, selected) for part, table in self.parts.items()}
        outside = tuple(name for name in self.outside_mean if name in requested)
        return Corpus(
            self.tag_set, selected, parts, self.report.restricted(selected), self.unit, self.pos, outside
        )

    def select_rows(self, masks: Mapping[str, np.ndarray]) -> Corpus:
        """Return the corpus without some sentences, with new memory-mapped tables.

        Args:
            masks: Part → True for the sentences to take [N]; other parts stay whole.
        """
        parts = dict(self.parts)
        for part, mask in masks.items():
            if not mask.all():
                parts[part] = _filter_rows(parts[part], mask)
        if parts == self.parts:
            return self
        sentences = count_sentences(parts, self.languages)
        return replace(self, parts=parts, report=replace(self.report, sentences=sentences))


def _filter_rows(table: pa.Table, mask: np.ndarray) -> pa.Table:
    bounds = np.cumsum([0, *(batch.num_rows for batch in table.to_batches())])
    filtered = (
        batch.filter(pa.array(mask[first:last]))
        for batch, first, last in zip(table.to_batches(), bounds, bounds[1:], strict=False)
    )
    return to_mapped_table(table.schema, filtered)


def _filter_languages(table: pa.Table, languages: tuple[str, ...]) -> pa.Table:
    in_languages = pc.field("language").isin(list(languages))
    return to_mapped_table(table.schema, (batch.filter(in_languages) for batch in table.to_batches()))


def read_corpus(config: CorpusConfig, open_model: OpenPosModel = refuse_model) -> Corpus:
    """Read, select and convert the sentences of a corpus.

    Args:
        config: Configuration of the corpus.
        open_model: Function that opens a model of parts of speech; the default refuses every model.

    Raises:
        CorpusError: A file is missing, empty or malformed, a tag does not fit its scheme, no sentence is left for
            training, or a model of parts of speech cannot be used. Several faults of files are reported together.
    """
    return corpus_from_stream(
        READERS[config.source](config), config, PosTaggers.from_config(config, open_model)
    )


def make_corpus(parts: Mapping[str, Iterable[Sentence]], config: SourceConfig) -> Corpus:
    """Return a corpus of sentences in memory; errors as in `read_corpus`.

    Args:
        parts: Part → sentences.
        config: Settings for selection and conversion.
    """
    return corpus_from_stream(
        ((part, sentence) for part, sentences in parts.items() for sentence in sentences), config
    )


def corpus_from_stream(stream: Stream, config: SourceConfig, taggers: PosTaggers | None = None) -> Corpus:
    """Return the corpus of the sentences in `stream`, with memory-mapped tables; errors as in `read_corpus`."""
    faults = Faults(config.on_error)
    with tempfile.TemporaryDirectory(prefix="raykd-") as folder:
        with part_of_work(0.0, READ):
            pool = read_pool(stream, Path(folder), faults)
        spellings, columns = find_spellings(pool, config), pool.columns
        if config.on_error == "skip":
            columns = without_unknown_tags(pool, config, spellings, faults)
            faults.refuse_too_many(columns.counts(), config.most_skipped)
        selected, dropped = select(columns, config)
        _refuse_empty(pool, selected, config, faults)
        with part_of_work(READ, 1.0, "converting tags"):
            converted = convert(pool, selected, config, spellings, taggers)
        _refuse_without_labels(pool, selected, converted)
        overlaps = _tally(pool, dropped.rows["overlaps"])
        if config.overlaps == "keep":
            kept_overlaps = {part: find_overlaps(pool.columns, selected[part], selected) for part in TRAINING}
            overlaps = _tally(pool, {part: [selected[part][mask]] for part, mask in kept_overlaps.items()})
        duplicates = _tally(pool, dropped.rows["duplicates"])
    labels = label_counts_by_part(converted.tables, converted.tag_set)
    dev, test = (pool.columns.sentence[selected[part]] for part in ("dev", "test"))
    tallies = {
        "long": faults.long_sentences,
        "repairs": converted.repaired,
        "skipped": faults.skipped,
        "overlaps": overlaps,
        "duplicates": duplicates,
    }
    noted = {str(note): tally for note, tally in faults.notes.items()}
    if converted.nested.counts:
        noted["inner"] = converted.nested
    report = CorpusReport(
        count_sentences(converted.tables, config.languages),
        converted.schemes,
        dev_in_test=int(np.isin(dev, test).sum()),
        unseen=unseen_labels(labels),
        roles={language: config.role(language) for language in config.languages},
        overlaps_kept=config.overlaps == "keep",
        spellings={name: text for name, spelling in spellings.items() if (text := spelling.describe())},
        alike=labels_differing_in_case(converted.tag_set),
        without_labels=languages_without_labels(labels),
        spaced=count_spaced_words(converted.tables["train"]) if converted.unit == "word" else {},
        pos=pos_report(converted.tables, config, taggers) if converted.pos else None,
        notes={note: tally.counts for note, tally in noted.items()},
        examples={name: tally.examples for name, tally in (tallies | noted).items() if tally.examples},
        **{name: tally.counts for name, tally in tallies.items()},
    )
    return Corpus(
        converted.tag_set, config.languages, converted.tables, report, converted.unit, converted.pos,
        config.outside_mean,
    )  # fmt: skip


def _tally(pool: Pool, rows: Mapping[str, list[np.ndarray]]) -> Tally:
    """Count sentences by part and language, with the words of some as examples."""
    tally = Tally({part: {} for part in TRAINING})
    for part, row_arrays in rows.items():
        rows_of_part = np.concatenate(row_arrays)
        codes = pool.columns.language[rows_of_part]
        for code in np.unique(codes).tolist():
            language, examples = pool.columns.languages[code], rows_of_part[codes == code]
            tally.counts[part][language] = len(examples)
            words = (display_words(pool.sentence(int(row)).tokens) for row in examples[:MOST_EXAMPLES])
            tally.examples.setdefault(part, {})[language] = [text[:60] for text in words]
    return tally


def corpus_id(corpus: Corpus) -> str:
    """Return the identity of a corpus.

    The identity depends on words, tags, languages and their order in all parts, the tag set, the target languages and
    those outside of the mean, and the unit of the tags; of a treebank also on heads and parts of speech, and of a
    source with raw text also on the text. Names, folders and formats of the files do not matter.

    Args:
        corpus: The corpus.
    """
    parts = {part: table_digest(corpus.parts[part]) for part in PARTS}
    content = {"format": FORMAT, "parts": parts, "targets": list(corpus.targets), **_label_manifest(corpus)}
    return identity("corpus", content)


def write_corpus(corpus: Corpus, storage: Storage) -> str:
    """Store a corpus below corpora/<id>/, the manifest last; a stored one stays as it is.

    Args:
        corpus: The corpus.
        storage: The store.

    Returns:
        The id.
    """
    name = corpus_id(corpus)
    folder = storage.child("corpora", name)
    if folder.exists(CORPUS):
        return name
    files = {}
    for part in PARTS:
        table = corpus.parts[part]
        with folder.writer(f"{part}.arrow") as sink:
            write_batches(sink, table.schema, table.to_batches())
        files[part] = {"bytes": sink.size, "sha256": sink.sha256}
    manifest = {
        "languages": list(corpus.languages),
        "files": files,
        "report": corpus.report.to_plain(),
        **_label_manifest(corpus),
    }
    folder.write_json(CORPUS, manifest)
    return name


def open_corpus(storage: Storage, name: str) -> Corpus:
    """Open a stored corpus, with memory-mapped tables.

    Args:
        storage: The store.
        name: Id of the corpus.

    Raises:
        StoreError: The corpus is missing, or a file differs from its checksum.
    """
    folder = storage.child("corpora", name)
    opened = folder.find_json(CORPUS, lambda manifest: _from_manifest(folder, manifest))
    if opened is None:
        raise StoreError(f"corpora/{name}", "no corpus with this id is stored", "store the corpus first")
    return opened


def _from_manifest(folder: Storage, manifest: Mapping[str, Any]) -> Corpus:
    tag_set = cast("TagSet", labels_from(manifest["tag_set"]))
    parts = {part: _map_part(folder, part, manifest["files"][part]) for part in PARTS}
    return Corpus(
        tag_set, tuple(manifest["languages"]), parts, CorpusReport.from_plain(manifest["report"]),
        manifest["unit"], tuple(manifest["pos"]), tuple(manifest["outside_mean"]),
    )  # fmt: skip


def _label_manifest(corpus: Corpus) -> dict[str, Any]:
    """Return tag set, unit, parts of speech and languages outside of the mean, for manifest and identity."""
    return {
        "tag_set": corpus.tag_set.to_plain(),
        "unit": corpus.unit,
        "pos": list(corpus.pos),
        "outside_mean": list(corpus.outside_mean),
    }


def _refuse_empty(
    pool: Pool, selected: Mapping[str, np.ndarray], config: SourceConfig, faults: Faults
) -> None:
    languages = pool.columns.languages
    labelled = np.array([config.role(language) == "labelled" for language in languages], dtype=bool)
    for part in ("train", "dev", "test"):
        if not labelled[pool.columns.language[selected[part]]].any():
            read = pool.columns.of_part("train")
            origin = pool.sentence(int(read[0])).origin if len(read) else None
            notes = "".join(f"; {note_message(note, tally.total())}" for note, tally in faults.notes.items())
            problem = f"no sentence is left for {part} (of {len(read)} training sentences read{notes})"
            hint = "add text, raise corpus.cap, or change corpus.split"
            raise CorpusError(origin[0] if origin else "corpus", None, problem, hint)


def _refuse_without_labels(
    pool: Pool, selected: Mapping[str, np.ndarray], converted: ConvertedCorpus
) -> None:
    if converted.tag_set.tags != (OUTSIDE,) or converted.unit != "word":
        return
    row = next(int(row) for rows in selected.values() for row in rows if pool.labelled[row])
    problem = f"train, dev and test have no tag but {OUTSIDE}, first"
    raise fault_at(pool, row, problem, "set corpus.columns to the column of the tags, or label some words")


def _map_part(folder: Storage, part: str, written: Mapping[str, Any]) -> pa.Table:
    name, sha256 = f"{part}.arrow", written["sha256"]
    try:
        return folder.read_local(name, partial(_map_verified, sha256), sha256=sha256)
    except ValueError as error:
        raise StoreError(f"{folder.address}/{name}", f"is damaged: {error}", DOCTOR) from error


def _map_verified(sha256: str, path: Path) -> pa.Table:
    check_sha256(path_sha256(path), sha256)
    return map_table(path)
