"""Conversion of sentences to Arrow tables in the one internal tag scheme, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from raykd.corpora.chunks import to_mapped_table
from raykd.corpora.faults import Faults, Tally
from raykd.corpora.hashes import first_occurrences
from raykd.corpora.pool import Pool
from raykd.corpora.predicted_pos import PosTaggers
from raykd.corpora.sentence import Faulty, Unit
from raykd.corpora.source import SourceConfig
from raykd.corpora.tag_faults import fault_at
from raykd.corpora.tag_notations import (
    MAX_CACHED_SEQUENCES,
    Notation,
    find_notations,
    list_bounds,
    number_rows,
)
from raykd.forms import FLAT, FORMS, TagSet, form_of
from raykd.forms.nested_spans import is_nested, keep_outermost
from raykd.forms.tag_schemes import ReadScheme, fitting_scheme
from raykd.forms.tag_spellings import Spelling
from raykd.progress import report_progress

SCHEMA = pa.schema({"tokens": pa.list_(pa.string()), "tags": pa.list_(pa.int16()), "language": pa.string()})
TREES = pa.schema([*SCHEMA, pa.field("heads", pa.list_(pa.int16())), pa.field("pos", pa.list_(pa.int16()))])
"""Schema of a treebank, with heads and parts of speech (numbers in `ConvertedCorpus.pos`); null where unknown."""
RAW = (pa.field("text", pa.string()), pa.field("offsets", pa.list_(pa.int32())))
"""Further columns of a source with raw text; `offsets` has start and end of all words. Null where unknown."""
LABELLED_COLUMNS = ("tokens", "tags", "heads", "pos", "text", "offsets")
"""Columns read from the pool for labelled parts."""
UNLABELLED_COLUMNS = ("tokens", "pos", "text", "offsets")
"""Columns read from the pool for the part `unlabelled`."""


@dataclass
class ConvertedCorpus:
    """Tables by part, with the tag set of their numbers and the counts of the conversion.

    Attributes:
        tag_set: The tags of train, dev and test.
        tables: Part → table.
        schemes: Language → scheme of the files.
        repaired: Number of tags that were not valid in the scheme of the files, with examples.
        nested: Number of spans left out because they are inside other spans, with examples.
        unit: The unit of a tag: word or sentence.
        pos: Parts of speech of a treebank, in the order of their numbers; empty without trees.
        raw: True if the tables have raw text.
    """

    tag_set: TagSet
    tables: dict[str, pa.Table]
    schemes: dict[str, ReadScheme]
    repaired: Tally = field(default_factory=Tally)
    nested: Tally = field(default_factory=Tally)
    unit: Unit = "word"
    pos: tuple[str, ...] = ()
    raw: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Columns of the tables."""
        return pa.schema([*(TREES if self.pos else SCHEMA), *(RAW if self.raw else ())])

    @property
    def repairs(self) -> dict[str, dict[str, int]]:
        """Part → language → repaired tags."""
        return self.repaired.counts


def convert(
    pool: Pool,
    selected: Mapping[str, np.ndarray],
    config: SourceConfig,
    spellings: Mapping[str, Spelling],
    taggers: PosTaggers | None = None,
) -> ConvertedCorpus:
    """Convert selected sentences to memory-mapped tables; the tag set has all tags of train, dev and test.

    Args:
        pool: All sentences that were read.
        selected: Part → rows of the pool.
        config: Configuration of the source.
        spellings: Language → spelling of tags.
        taggers: Models that predict the parts of speech of a treebank; None for other corpora.

    Raises:
        CorpusError: Tags do not fit the scheme of their language, some files tag words and others whole sentences, or
            only some have trees; files and lines are named.
    """
    by_language = _labelled_rows(pool, selected)
    notations = find_notations(pool, by_language, spellings, config)
    schemes: dict[str, ReadScheme] = {language: notation.scheme for language, notation in notations.items()}
    unit = _find_unit(pool, np.concatenate([*selected.values()]))
    pos = _pos_names(pool, by_language, selected, taggers)
    converted = ConvertedCorpus(_build_tag_set(notations), {}, schemes, unit=unit, pos=pos, raw=pool.raw)
    faults, converted_count, total = Faults(config.on_error), 0, sum(map(len, selected.values()))
    for part, rows in selected.items():
        conversion = _Conversion(pool, part, converted, notations, faults)
        converted.repairs[part] = {}
        batches = _report_batches(
            conversion.batches(rows, labelled=part != "unlabelled"), converted_count, total
        )
        converted_count += len(rows)
        if taggers is not None:
            batches = taggers.filled(batches, part, converted.pos)
        converted.tables[part] = to_mapped_table(converted.schema, batches)
    faults.refuse()
    return converted


def _report_batches(
    batches: Iterable[pa.RecordBatch], converted_count: int, total: int
) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and report the progress of the conversion."""
    for batch in batches:
        report_progress(converted_count / total)
        yield batch
        converted_count += len(batch)


def _find_unit(pool: Pool, rows: np.ndarray) -> Unit:
    by_sentence = pool.by_sentence[rows]
    units: tuple[Unit, Unit] = ("word", "sentence")
    first = units[int(by_sentence[0])] if len(rows) else "word"
    different = np.flatnonzero(by_sentence != (first == "sentence"))
    if len(different):
        unit = units[int(by_sentence[different[0]])]
        problem = f"one tag per {unit}, where earlier files have one tag per {first},"
        raise fault_at(
            pool, int(rows[different[0]]), problem, "use one kind of tags in a corpus: remove the other files"
        )
    return first


def _pos_names(
    pool: Pool,
    by_language: Mapping[str, np.ndarray],
    selected: Mapping[str, np.ndarray],
    taggers: PosTaggers | None,
) -> tuple[str, ...]:
    """Return the parts of speech in all parts and those that taggers may predict, sorted; empty without trees."""
    labelled = np.concatenate([np.zeros(0, np.int64), *by_language.values()])
    without = labelled[~pool.trees[labelled]]
    if len(without) == len(labelled):
        return ()
    if len(without):
        problem = "no tree, where other sentences have trees,"
        raise fault_at(
            pool, int(without[0]), problem, "use files with trees only, or files without trees only"
        )
    used: set[int] = set()
    for rows in selected.values():
        for _, batch in pool.batches(rows, ["pos"]):
            used.update(np.unique(batch["pos"].flatten().to_numpy()).tolist())
    predicted = () if taggers is None else taggers.names(pool.pos)
    return tuple(sorted({*(pool.pos[number] for number in used), *predicted}))


def _labelled_rows(pool: Pool, selected: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return language → labelled rows, in the order of the parts."""
    rows = np.concatenate([rows for part, rows in selected.items() if part != "unlabelled"])
    rows = rows[pool.labelled[rows]]
    codes = pool.columns.language[rows]
    order = codes[first_occurrences(codes)].tolist()
    return {pool.columns.languages[code]: rows[codes == code] for code in order}


def _build_tag_set(notations: Mapping[str, Notation]) -> TagSet:
    forms = {form_of(notation.scheme) for notation in notations.values()}
    form = next((form for form in reversed(list(FORMS.values())) if form in forms), FLAT)
    return form.tag_set(
        label
        for notation in notations.values()
        for label in form_of(notation.scheme).labels_in(notation.used, notation.scheme)
    )


class _Tags(NamedTuple):
    """Converted tags of a sentence.

    Attributes:
        numbers: Numbers of the tags, int16.
        repairs: Repaired tags.
        example: The first repair.
        inside: Spans left out because they are inside other spans.
    """

    numbers: np.ndarray
    repairs: int = 0
    example: str = ""
    inside: int = 0


class _Conversion:
    """Conversion of one part, with counts of repairs; equal tag sequences near each other are converted once."""

    def __init__(
        self,
        pool: Pool,
        part: str,
        converted: ConvertedCorpus,
        notations: Mapping[str, Notation],
        faults: Faults,
    ):
        self.pool, self.part, self.faults, self.notations = pool, part, faults, notations
        self.tag_set, self.repaired, self.nested = converted.tag_set, converted.repaired, converted.nested
        self._cache: dict[tuple[str, bytes], _Tags] = {}
        self.schema = converted.schema
        numbers = {name: number for number, name in enumerate(converted.pos)}
        # Parts of speech that only unselected sentences have get no number; 0 is a placeholder that is never read.
        self._pos = np.array([numbers.get(name, 0) for name in pool.pos], np.int16)

    def batches(self, rows: np.ndarray, *, labelled: bool) -> Iterator[pa.RecordBatch]:
        """Yield the converted sentences of `rows`."""
        names = pa.array(self.pool.columns.languages, pa.string())
        columns_read = [
            name
            for name in self.schema.names
            if name in (LABELLED_COLUMNS if labelled else UNLABELLED_COLUMNS)
        ]
        for pool_rows, batch in self.pool.batches(rows, columns_read):
            nulls = pa.nulls(len(pool_rows), SCHEMA.field("tags").type)
            columns = {
                "tokens": batch["tokens"],
                "tags": self._tag_column(pool_rows, batch["tags"]) if labelled else nulls,
                "language": names.take(pa.array(self.pool.columns.language[pool_rows])),
            }
            if "pos" in columns_read:
                columns["heads"] = batch["heads"] if labelled else nulls
                columns["pos"] = self._pos_column(batch["pos"])
            columns |= {field.name: batch[field.name] for field in RAW if field.name in columns_read}
            yield pa.record_batch([*columns.values()], schema=self.schema)

    def _pos_column(self, column: pa.ListArray) -> pa.Array:
        values = pa.array(self._pos[column.flatten().to_numpy()])
        bounds = pa.array(list_bounds(column).astype(np.int32))
        return pa.ListArray.from_arrays(bounds, values, mask=column.is_null())

    def _tag_column(self, rows: np.ndarray, column: pa.ListArray) -> pa.Array:
        parts = [np.zeros(0, np.int16)]
        labelled = self.pool.labelled[rows]
        languages = [self.pool.columns.languages[code] for code in self.pool.columns.language[rows].tolist()]
        for row, language, has_tags, numbers in zip(
            rows.tolist(), languages, labelled.tolist(), number_rows(column), strict=True
        ):
            if has_tags:
                converted = self._convert_cached(row, language, numbers)
                parts.append(converted.numbers)
                if converted.repairs:
                    self.repaired.add(self.part, language, converted.example, converted.repairs)
                if converted.inside:
                    self.nested.add(self.part, language, self._place(row), converted.inside)
        bounds = pa.array(list_bounds(column).astype(np.int32))
        return pa.ListArray.from_arrays(bounds, pa.array(np.concatenate(parts)), mask=pa.array(~labelled))

    def _convert_cached(self, row: int, language: str, numbers: np.ndarray) -> _Tags:
        key = (language, numbers.tobytes())
        tags_of_sentence = self._cache.get(key)
        if tags_of_sentence is None:
            if len(self._cache) == MAX_CACHED_SEQUENCES:
                self._cache.clear()
            notation = self.notations[language]
            pool_numbers: list[int] = numbers.tolist()
            tags = [notation.names[number] for number in pool_numbers]
            tags_of_sentence = self._cache[key] = self._convert_one(row, language, notation, tags)
        return tags_of_sentence

    def _convert_one(self, row: int, language: str, notation: Notation, tags: list[str]) -> _Tags:
        scheme, inside = notation.scheme, 0
        form = form_of(scheme)
        try:
            if notation.nested and any(map(is_nested, tags)):
                tags, inside = keep_outermost(tags, scheme)
            read, repairs = form.read(tags, scheme)
        except ValueError as error:
            self._refuse(row, language, str(error), self._scheme_hint(language, notation))
            return _Tags(np.zeros(len(tags), np.int16))
        example = ""
        if repairs:
            written = form.write(read, scheme)
            place = next(i for i, tag in enumerate(written) if tag != tags[i])
            word = place + 1 - form.words_in_front
            change = f"{tags[place]!r} of word {word} read as {written[place]!r}"
            example = f"{self._place(row)}: {change}"
            if self.faults.on_error == "stop":
                problem = f"the tags are not valid in scheme {scheme}: {change}"
                self._refuse(row, language, problem, "correct the tags, or set corpus.on_error: repair")
        return _Tags(self.tag_set.encode(read), repairs, example, inside)

    def _place(self, row: int) -> str:
        file, line = self.pool.origin(row)
        return f"{file}:{line}" if line else file

    def _scheme_hint(self, language: str, notation: Notation) -> str:
        """Return a hint for a tag outside the configured scheme, with a scheme that has all tags, if there is one."""
        fitting = fitting_scheme(notation.used)
        setting = f"set corpus.scheme (language {language!r}) to {fitting}" if fitting else ""
        return " or ".join(filter(None, ("correct the tag", setting)))

    def _refuse(self, row: int, language: str, problem: str, hint: str) -> None:
        self.faults.record(self.part, Faulty(language, (fault_at(self.pool, row, problem, hint),)))
