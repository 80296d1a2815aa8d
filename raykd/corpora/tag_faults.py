"""Sentences with a tag that the notation of their language does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from raykd.corpora.chunks import chunk_bounds
from raykd.corpora.faults import Faults
from raykd.corpora.pool import Columns, Pool
from raykd.corpora.sentence import display_words
from raykd.corpora.source import SourceConfig
from raykd.errors import CorpusError
from raykd.forms import form_of
from raykd.forms.nested_spans import is_nested, split_labels
from raykd.forms.tag_schemes import LETTERS, has_letters, scheme_problem
from raykd.forms.tag_spellings import Spelling, find_spelling
from raykd.storage.layout import PARTS

NESTED_HINT = "set corpus.nested: outermost to read the longest span of those that are inside each other"


def fault_at(pool: Pool, row: int, problem: str, hint: str) -> CorpusError:
    """A fault of a sentence, at its first line."""
    file, line = pool.origin(row)
    words = display_words(pool.sentence(row).tokens)
    return CorpusError(file, line, f"{problem} in the sentence {words[:60]!r}", hint)


def spelling_problem(tag: str, spelling: Spelling) -> str:
    """What is wrong with a tag that is spelled otherwise than most."""
    return f"tag {tag!r} is not spelled as the others ({spelling.example}, {spelling.outside})"


def nested_problem(tag: str) -> str:
    """What is wrong with a tag of several labels."""
    return f"a word is in spans that are inside each other (tag {tag!r})"


def find_spellings(pool: Pool, config: SourceConfig) -> dict[str, Spelling]:
    """How the tags of each language are spelled, by all its labelled sentences."""
    spellings = {}
    for code, language in enumerate(pool.columns.languages):
        numbers = tag_counts(pool, np.flatnonzero(pool.labelled & (pool.columns.language == code)))
        counts = {pool.tags[number]: count for number, count in numbers.items()}
        spellings[language] = find_spelling(counts, config.scheme_of(language))
    return spellings


def tag_counts(pool: Pool, rows: np.ndarray) -> Counter[int]:
    """The number of each tag of some labelled rows → how often it occurs."""
    counts = np.zeros(len(pool.tags), np.int64)
    for _, batch in pool.batches(rows, ["tags"]):
        counts += np.bincount(batch["tags"].flatten().to_numpy(), minlength=len(counts))
    return Counter({number: int(counts[number]) for number in np.flatnonzero(counts).tolist()})


def without_unknown_tags(
    pool: Pool, config: SourceConfig, spellings: Mapping[str, Spelling], faults: Faults
) -> Columns:
    """The pool's columns, in which the sentences that have an unknown tag are in no part; they count as skipped."""
    columns = pool.columns
    part = columns.part.copy()
    for code, language in enumerate(columns.languages):
        rows = np.flatnonzero(pool.labelled & (columns.language == code))
        problems = _tag_problems(pool, tag_counts(pool, rows), language, spellings[language], config)
        for row, number in _rows_with_tags(pool, rows, np.array([*problems], np.int32)):
            faults.skip(PARTS[columns.part[row]], language, fault_at(pool, row, problems[number], ""))
            part[row] = -1
    return replace(columns, part=part)


def _tag_problems(
    pool: Pool, counts: Mapping[int, int], language: str, spelling: Spelling, config: SourceConfig
) -> dict[int, str]:
    """The numbers of unknown tags, and what is wrong with each."""
    problems: dict[int, str] = {}
    read: dict[int, str] = {}
    scheme = config.scheme_of(language)
    spans = has_letters(scheme)
    for number in counts:
        tag = pool.tags[number]
        name = spelling.read(tag)
        if name is None:
            problems[number] = spelling_problem(tag, spelling)
        elif spans and config.nested == "refuse" and is_nested(name):
            problems[number] = nested_problem(tag)
        else:
            read[number] = name
    words = Counter[str]()
    for number, name in read.items():
        for label in split_labels(name) if spans else [name]:
            words[label] += counts[number]
    unknown = form_of(scheme).unknown_tags(words, scheme)
    for number, name in read.items():
        if label := next((label for label in [name, *split_labels(name)] if label in unknown), None):
            in_scheme = scheme in LETTERS
            problems[number] = (
                scheme_problem(label, scheme) if in_scheme else f"tag {label!r} is of another form than most"
            )
    return problems


def _rows_with_tags(pool: Pool, rows: np.ndarray, numbers: np.ndarray) -> list[tuple[int, int]]:
    """(row, number) of each of `rows` that has a tag of these numbers, with the first one."""
    found: list[tuple[int, int]] = []
    if not len(numbers):
        return found
    for own, batch in pool.batches(rows, ["tags"]):
        values = batch["tags"].flatten().to_numpy()
        places = np.flatnonzero(np.isin(values, numbers))
        sentences = (
            np.searchsorted(chunk_bounds(batch["tags"].value_lengths().to_pylist()), places, "right") - 1
        )
        which, first = np.unique(sentences, return_index=True)
        found += [(int(own[i]), int(values[places[j]])) for i, j in zip(which, first, strict=True)]
    return found
