"""From sentences as the files have them to Arrow tables in the one internal tag scheme, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from raykd.corpora.chunks import bounds_of, on_disk
from raykd.corpora.hashes import first_of_each
from raykd.corpora.pool import Pool
from raykd.corpora.sentence import Unit
from raykd.corpora.source import SourceConfig, for_language
from raykd.corpora.tags import OUTSIDE, FileScheme, TagSet, guess_scheme, read_spans, to_bioes
from raykd.errors import CorpusError

SCHEMA = pa.schema({"tokens": pa.list_(pa.string()), "tags": pa.list_(pa.int16()), "language": pa.string()})
KNOWN = 50_000
"""Most tag sequences that are remembered: a corpus repeats few very often, and has many that it does not repeat."""


@dataclass
class Converted:
    """Tables by part, the tag set of their numbers, and what conversion found."""

    tag_set: TagSet
    tables: dict[str, pa.Table]
    schemes: dict[str, FileScheme]
    repairs: dict[str, dict[str, int]] = field(default_factory=dict)
    """Part → language → tags that were not valid in the file's scheme as they stood."""
    unit: Unit = "word"


def convert(pool: Pool, selected: Mapping[str, np.ndarray], config: SourceConfig) -> Converted:
    """Tables of the `selected` rows of all parts, mapped. The tag set is all tags of train, dev and test together.

    Raises:
        CorpusError: a tag does not fit the scheme of its language, or some files tag words and others whole
            sentences; the file and the line are named.
    """
    by_language = _labelled(pool, selected)
    tags = {language: _tags(pool, rows) for language, rows in by_language.items()}
    schemes = _schemes(pool, by_language, tags, config)
    unit = _unit(pool, np.concatenate([*selected.values()]))
    converted = Converted(_tag_set(tags, schemes), {}, schemes, unit=unit)
    for part, rows in selected.items():
        conversion = _Conversion(pool, schemes, converted.tag_set)
        batches = conversion.batches(rows, labelled=part != "unlabelled")
        converted.tables[part], converted.repairs[part] = on_disk(SCHEMA, batches), conversion.repairs
    return converted


def _unit(pool: Pool, rows: np.ndarray) -> Unit:
    by_sentence = pool.by_sentence[rows]
    units: tuple[Unit, Unit] = ("word", "sentence")
    first = units[int(by_sentence[0])] if len(rows) else "word"
    others = np.flatnonzero(by_sentence != (first == "sentence"))
    if len(others):
        here = units[int(by_sentence[others[0]])]
        problem = f"the tags before it are one per {first}, and here they are one per {here}"
        raise _fault(
            pool, int(rows[others[0]]), problem, "use one kind of tags in a corpus: remove these files"
        )
    return first


def _labelled(pool: Pool, selected: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The labelled rows of each language, in the order of the parts."""
    rows = np.concatenate([rows for part, rows in selected.items() if part != "unlabelled"])
    rows = rows[pool.labelled[rows]]
    codes = pool.columns.language[rows]
    order = codes[first_of_each(codes)].tolist()
    return {pool.columns.languages[code]: rows[codes == code] for code in order}


def _tags(pool: Pool, rows: np.ndarray) -> set[str]:
    """The distinct tags of some labelled rows."""
    found: set[int] = set()
    for _, batch in pool.batches(rows, ["tags"]):
        found.update(np.unique(batch["tags"].flatten().to_numpy()).tolist())
    return {pool.tags[number] for number in found}


def _sequences(pool: Pool, rows: np.ndarray) -> Iterator[tuple[int, list[str]]]:
    """(row, tags) of labelled rows; of equal sequences near each other, the first."""
    known: set[bytes] = set()
    for own, batch in pool.batches(rows, ["tags"]):
        for row, numbers in zip(own.tolist(), _rows_of(batch["tags"]), strict=True):
            key = numbers.tobytes()
            if key in known:
                continue
            if len(known) == KNOWN:
                known.clear()
            known.add(key)
            yield row, [pool.tags[number] for number in numbers.tolist()]


def _rows_of(column: pa.ListArray) -> Iterator[np.ndarray]:
    """Each list of numbers; a null is an empty one."""
    bounds = _bounds(column).tolist()
    values = column.flatten().to_numpy()
    return (values[start:end] for start, end in pairwise(bounds))


def _bounds(column: pa.ListArray) -> np.ndarray:
    return bounds_of(column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False))


def _schemes(
    pool: Pool, by_language: Mapping[str, np.ndarray], tags: Mapping[str, set[str]], config: SourceConfig
) -> dict[str, FileScheme]:
    schemes: dict[str, FileScheme] = {}
    for language, rows in by_language.items():
        scheme = for_language(config.scheme, language) or "auto"
        try:
            sequences = (found for _, found in _sequences(pool, rows))
            schemes[language] = guess_scheme(sequences) if scheme == "auto" else scheme
        except ValueError as error:
            raise _mixed_forms(pool, rows, language, str(error)) from None
    flat = [language for language in schemes if schemes[language] == "flat"]
    if 0 < len(flat) < len(schemes):
        for language in flat:
            # A language with O alone is the same in every scheme.
            if tags[language] - {OUTSIDE}:
                raise _different_schemes(pool, by_language[language], schemes)
            schemes[language] = "iob2"
    return schemes


def _tag_set(tags: Mapping[str, set[str]], schemes: Mapping[str, FileScheme]) -> TagSet:
    if all(scheme == "flat" for scheme in schemes.values()):
        return TagSet.flat(tag for found in tags.values() for tag in found)
    types: set[str] = set()
    for language, found in tags.items():
        # In `io` a tag is the type of its span; elsewhere the type is after the letter.
        span_types = {tag[2:] for tag in found if tag[1:2] == "-"} - {""}
        types |= found - {OUTSIDE} if schemes[language] == "io" else span_types
    return TagSet.of_types(types)


class _Conversion:
    """Converts one part, and counts its repairs by language. Equal sequences near each other are converted once."""

    def __init__(self, pool: Pool, schemes: Mapping[str, FileScheme], tag_set: TagSet):
        self.pool, self.schemes, self.tag_set = pool, schemes, tag_set
        self.repairs: dict[str, int] = {}
        self._known: dict[tuple[str, bytes], tuple[np.ndarray, int]] = {}

    def batches(self, rows: np.ndarray, *, labelled: bool) -> Iterator[pa.RecordBatch]:
        names = pa.array(self.pool.columns.languages, pa.string())
        for own, batch in self.pool.batches(rows, ["tokens", "tags"] if labelled else ["tokens"]):
            codes = pa.array(self.pool.columns.language[own])
            nulls = pa.nulls(len(own), SCHEMA.field("tags").type)
            tags = self._converted(own, batch["tags"]) if labelled else nulls
            yield pa.record_batch([batch["tokens"], tags, names.take(codes)], schema=SCHEMA)

    def _converted(self, rows: np.ndarray, column: pa.ListArray) -> pa.Array:
        parts = [np.zeros(0, np.int16)]
        labelled = self.pool.labelled[rows]
        languages = [self.pool.columns.languages[code] for code in self.pool.columns.language[rows].tolist()]
        for row, language, has_tags, numbers in zip(
            rows.tolist(), languages, labelled.tolist(), _rows_of(column), strict=True
        ):
            if has_tags:
                converted, repairs = self._one(row, self.schemes[language], numbers)
                parts.append(converted)
                if repairs:
                    self.repairs[language] = self.repairs.get(language, 0) + repairs
        bounds = pa.array(_bounds(column).astype(np.int32))
        return pa.ListArray.from_arrays(bounds, pa.array(np.concatenate(parts)), mask=pa.array(~labelled))

    def _one(self, row: int, scheme: FileScheme, numbers: np.ndarray) -> tuple[np.ndarray, int]:
        key = (scheme, numbers.tobytes())
        found = self._known.get(key)
        if found is None:
            if len(self._known) == KNOWN:
                self._known.clear()
            tags = [self.pool.tags[number] for number in numbers.tolist()]
            found = self._known[key] = self._convert_one(row, scheme, tags)
        return found

    def _convert_one(self, row: int, scheme: FileScheme, tags: list[str]) -> tuple[np.ndarray, int]:
        if scheme == "flat" or scheme == "auto":
            return self.tag_set.encode(tags), 0
        try:
            bioes, repairs = to_bioes(tags, scheme)
        except ValueError as error:
            raise _fault(self.pool, row, str(error), "correct the tag, or set corpus.scheme") from None
        return self.tag_set.encode(bioes), repairs


def _mixed_forms(pool: Pool, rows: np.ndarray, language: str, problem: str) -> CorpusError:
    for row, tags in _sequences(pool, rows):
        try:
            read_spans(tags)
        except ValueError:
            hint = f"correct the tag, or set corpus.scheme (language {language!r}) to flat"
            return _fault(pool, row, problem, hint)
    raise AssertionError("guess_scheme refuses only sequences with a tag that is not a span tag")


def _different_schemes(pool: Pool, rows: np.ndarray, schemes: Mapping[str, FileScheme]) -> CorpusError:
    found = ", ".join(f"{name} {scheme}" for name, scheme in schemes.items())
    row = next(row for row, tags in _sequences(pool, rows) if set(tags) - {OUTSIDE})
    hint = "use one task per corpus: remove the language, or set corpus.scheme"
    return _fault(pool, row, f"some languages have spans and others one tag per word ({found})", hint)


def _fault(pool: Pool, row: int, problem: str, hint: str) -> CorpusError:
    sentence = pool.sentence(row)
    file, line = sentence.origin or (f"a sentence of {sentence.language}", None)
    words = " ".join(sentence.tokens)
    return CorpusError(file, line, f"{problem} in the sentence {words[:60]!r}", hint)
