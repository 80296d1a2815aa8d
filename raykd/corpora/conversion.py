"""From sentences as the files have them to Arrow tables in the one internal tag scheme, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from raykd.corpora.chunks import bounds_of, on_disk
from raykd.corpora.faults import Faults, Tally
from raykd.corpora.hashes import first_of_each
from raykd.corpora.pool import Pool
from raykd.corpora.predicted_pos import PosTaggers
from raykd.corpora.sentence import Faulty, Unit
from raykd.corpora.source import SourceConfig
from raykd.corpora.tag_faults import fault_at
from raykd.errors import CorpusError
from raykd.forms import FLAT, FORMS, TagSet, form_of
from raykd.forms.tag_schemes import ReadScheme, guess_scheme, unknown_tags
from raykd.metrics.bioes import OUTSIDE
from raykd.progress import report_progress

SCHEMA = pa.schema({"tokens": pa.list_(pa.string()), "tags": pa.list_(pa.int16()), "language": pa.string()})
TREES = (pa.field("heads", pa.list_(pa.int16())), pa.field("pos", pa.list_(pa.int16())))
"""Of a treebank also heads, and parts of speech as numbers in `Converted.pos`; null where unknown."""
RAW = (pa.field("text", pa.string()), pa.field("offsets", pa.list_(pa.int32())))
"""Of a source with raw text also this, and start and end of each word, one after the other; null where unknown."""
READ = ("tokens", "tags", "heads", "pos", "text", "offsets")
READ_OF_TEXT = ("tokens", "pos", "text", "offsets")
"""What is taken from the pool of labelled sentences, and of others."""
KNOWN = 50_000
"""Most tag sequences that are remembered: a corpus repeats few very often, and has many that it does not repeat."""


@dataclass
class Converted:
    """Tables by part, the tag set of their numbers, and what conversion found."""

    tag_set: TagSet
    tables: dict[str, pa.Table]
    schemes: dict[str, ReadScheme]
    repaired: Tally = field(default_factory=Tally)
    """Tags that were not valid in the file's scheme as they stood."""
    unit: Unit = "word"
    pos: tuple[str, ...] = ()
    """The parts of speech of a treebank, in the order of their numbers; empty where there are no trees."""
    raw: bool = False
    """Whether the tables have raw text."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of every table."""
        return pa.schema([*SCHEMA, *(TREES if self.pos else ()), *(RAW if self.raw else ())])

    @property
    def repairs(self) -> dict[str, dict[str, int]]:
        """Part → language → tags that were repaired."""
        return self.repaired.counts


def convert(
    pool: Pool,
    selected: Mapping[str, np.ndarray],
    config: SourceConfig,
    taggers: PosTaggers | None = None,
) -> Converted:
    """Tables of the `selected` rows of all parts, mapped. The tag set is all tags of train, dev and test together.
    `taggers` predict the parts of speech of a treebank.

    Raises:
        CorpusError: tags do not fit the scheme of their language, some files tag words and others whole
            sentences, or some have trees and others do not; files and lines are named.
    """
    by_language = _labelled(pool, selected)
    tags = {language: _tags(pool, rows) for language, rows in by_language.items()}
    schemes = _schemes(pool, by_language, tags, config)
    unit = _unit(pool, np.concatenate([*selected.values()]))
    pos = _pos(pool, by_language, selected, taggers)
    converted = Converted(_tag_set(tags, schemes), {}, schemes, unit=unit, pos=pos, raw=pool.raw)
    faults, done, total = Faults(config.on_error), 0, sum(map(len, selected.values()))
    for part, rows in selected.items():
        conversion = _Conversion(pool, part, converted, faults)
        converted.repairs[part] = {}
        batches = _counted_off(conversion.batches(rows, labelled=part != "unlabelled"), done, total)
        done += len(rows)
        if taggers is not None:
            batches = taggers.filled(batches, part, converted.pos)
        converted.tables[part] = on_disk(converted.schema, batches)
    faults.refuse()
    return converted


def _counted_off(batches: Iterable[pa.RecordBatch], done: int, total: int) -> Iterator[pa.RecordBatch]:
    """The same batches of sentences, before which `done` of all sentences were converted."""
    for batch in batches:
        report_progress(done / total)
        yield batch
        done += len(batch)


def _unit(pool: Pool, rows: np.ndarray) -> Unit:
    by_sentence = pool.by_sentence[rows]
    units: tuple[Unit, Unit] = ("word", "sentence")
    first = units[int(by_sentence[0])] if len(rows) else "word"
    others = np.flatnonzero(by_sentence != (first == "sentence"))
    if len(others):
        here = units[int(by_sentence[others[0]])]
        problem = f"the tags before it are one per {first}, and here they are one per {here}"
        raise fault_at(
            pool, int(rows[others[0]]), problem, "use one kind of tags in a corpus: remove these files"
        )
    return first


def _pos(
    pool: Pool,
    by_language: Mapping[str, np.ndarray],
    selected: Mapping[str, np.ndarray],
    taggers: PosTaggers | None,
) -> tuple[str, ...]:
    """The parts of speech of all parts and those that may be predicted, in alphabetical order; of no treebank none."""
    labelled = np.concatenate([np.zeros(0, np.int64), *by_language.values()])
    without = labelled[~pool.trees[labelled]]
    if len(without) == len(labelled):
        return ()
    if len(without):
        problem = "other sentences have trees, and here is none"
        raise fault_at(pool, int(without[0]), problem, "use files of trees alone, or none of them")
    found: set[int] = set()
    for rows in selected.values():
        for _, batch in pool.batches(rows, ["pos"]):
            found.update(np.unique(batch["pos"].flatten().to_numpy()).tolist())
    predicted = () if taggers is None else taggers.names(pool.pos)
    return tuple(sorted({*(pool.pos[number] for number in found), *predicted}))


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
) -> dict[str, ReadScheme]:
    schemes: dict[str, ReadScheme] = {}
    for language, rows in by_language.items():
        scheme = config.scheme_of(language)
        try:
            sequences = (found for _, found in _sequences(pool, rows))
            schemes[language] = guess_scheme(sequences) if scheme == "auto" else scheme
        except ValueError as error:
            _refuse_mixed_forms(pool, rows, language, str(error), config)
    flat = [language for language in schemes if schemes[language] == "flat"]
    if 0 < len(flat) < len(schemes):
        for language in flat:
            # A language with O alone is the same in every scheme.
            if tags[language] - {OUTSIDE}:
                raise _different_schemes(pool, by_language[language], schemes)
            schemes[language] = "iob2"
    return schemes


def _tag_set(tags: Mapping[str, set[str]], schemes: Mapping[str, ReadScheme]) -> TagSet:
    forms = {form_of(scheme) for scheme in schemes.values()}
    form = next((form for form in reversed(list(FORMS.values())) if form in forms), FLAT)
    return form.tag_set(
        label
        for language, found in tags.items()
        for label in form_of(schemes[language]).labels_in(found, schemes[language])
    )


class _Conversion:
    """Converts one part, and counts its repairs by language. Equal sequences near each other are converted once."""

    def __init__(self, pool: Pool, part: str, converted: Converted, faults: Faults):
        self.pool, self.part, self.faults = pool, part, faults
        self.schemes, self.tag_set, self.repaired = converted.schemes, converted.tag_set, converted.repaired
        self._known: dict[tuple[str, bytes], tuple[np.ndarray, int, str]] = {}
        self.schema = converted.schema
        numbers = {name: number for number, name in enumerate(converted.pos)}
        # What was read and not selected has no number, and is not looked up.
        self._pos = np.array([numbers.get(name, 0) for name in pool.pos], np.int16)

    def batches(self, rows: np.ndarray, *, labelled: bool) -> Iterator[pa.RecordBatch]:
        names = pa.array(self.pool.columns.languages, pa.string())
        wanted = [name for name in self.schema.names if name in (READ if labelled else READ_OF_TEXT)]
        for own, batch in self.pool.batches(rows, wanted):
            nulls = pa.nulls(len(own), SCHEMA.field("tags").type)
            columns = {
                "tokens": batch["tokens"],
                "tags": self._converted(own, batch["tags"]) if labelled else nulls,
                "language": names.take(pa.array(self.pool.columns.language[own])),
            }
            if "pos" in wanted:
                columns["heads"] = batch["heads"] if labelled else nulls
                columns["pos"] = self._parts_of_speech(batch["pos"])
            columns |= {field.name: batch[field.name] for field in RAW if field.name in wanted}
            yield pa.record_batch([*columns.values()], schema=self.schema)

    def _parts_of_speech(self, column: pa.ListArray) -> pa.Array:
        values = pa.array(self._pos[column.flatten().to_numpy()])
        bounds = pa.array(_bounds(column).astype(np.int32))
        return pa.ListArray.from_arrays(bounds, values, mask=column.is_null())

    def _converted(self, rows: np.ndarray, column: pa.ListArray) -> pa.Array:
        parts = [np.zeros(0, np.int16)]
        labelled = self.pool.labelled[rows]
        languages = [self.pool.columns.languages[code] for code in self.pool.columns.language[rows].tolist()]
        for row, language, has_tags, numbers in zip(
            rows.tolist(), languages, labelled.tolist(), _rows_of(column), strict=True
        ):
            if has_tags:
                converted, repairs, example = self._one(row, language, numbers)
                parts.append(converted)
                if repairs:
                    self.repaired.add(self.part, language, example, repairs)
        bounds = pa.array(_bounds(column).astype(np.int32))
        return pa.ListArray.from_arrays(bounds, pa.array(np.concatenate(parts)), mask=pa.array(~labelled))

    def _one(self, row: int, language: str, numbers: np.ndarray) -> tuple[np.ndarray, int, str]:
        scheme = self.schemes[language]
        key = (scheme, numbers.tobytes())
        found = self._known.get(key)
        if found is None:
            if len(self._known) == KNOWN:
                self._known.clear()
            tags = [self.pool.tags[number] for number in numbers.tolist()]
            found = self._known[key] = self._convert_one(row, language, scheme, tags)
        return found

    def _convert_one(
        self, row: int, language: str, scheme: ReadScheme, tags: list[str]
    ) -> tuple[np.ndarray, int, str]:
        """The numbers of the tags, how many were repaired, and the first repair."""
        form = form_of(scheme)
        try:
            read, repairs = form.read(tags, scheme)
        except ValueError as error:
            self._refuse(row, language, str(error), "correct the tag, or set corpus.scheme")
            return np.zeros(len(tags), np.int16), 0, ""
        example = ""
        if repairs:
            written = form.write(read, scheme)
            place = next(i for i, tag in enumerate(written) if tag != tags[i])
            word = place + 1 - form.words_in_front
            what = f"{tags[place]!r} of word {word} read as {written[place]!r}"
            file, line = self.pool.origin(row)
            example = f"{file}:{line}: {what}" if line else f"{file}: {what}"
            if self.faults.on_error == "stop":
                problem = f"the tags are not valid in scheme {scheme}: {what}"
                self._refuse(row, language, problem, "correct the tags, or set corpus.on_error: repair")
        return self.tag_set.encode(read), repairs, example

    def _refuse(self, row: int, language: str, problem: str, hint: str) -> None:
        self.faults.note(self.part, Faulty(language, (fault_at(self.pool, row, problem, hint),)))


def _refuse_mixed_forms(
    pool: Pool, rows: np.ndarray, language: str, problem: str, config: SourceConfig
) -> None:
    """Raise CorpusError for the sentences that have a tag of another form than the others."""
    faults, hint = (
        Faults(config.on_error),
        f"correct the tag, or set corpus.scheme (language {language!r}) to flat",
    )
    unknown = unknown_tags({tag for _, tags in _sequences(pool, rows) for tag in tags}, "auto")
    for row, tags in _sequences(pool, rows):
        if not unknown.isdisjoint(tags):
            faults.note("", Faulty(language, (fault_at(pool, row, problem, hint),)))
    faults.refuse()
    # Else it is BIOES with BILOU.
    row = next(row for row, tags in _sequences(pool, rows) if any(tag[:2] in ("L-", "U-") for tag in tags))
    raise fault_at(pool, row, problem, hint)


def _different_schemes(pool: Pool, rows: np.ndarray, schemes: Mapping[str, ReadScheme]) -> CorpusError:
    found = ", ".join(f"{name} {scheme}" for name, scheme in schemes.items())
    row = next(row for row, tags in _sequences(pool, rows) if set(tags) - {OUTSIDE})
    hint = "use one task per corpus: remove the language, or set corpus.scheme"
    return fault_at(pool, row, f"some languages have spans and others one tag per word ({found})", hint)
