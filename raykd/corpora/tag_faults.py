"""Sentences with unknown tags, by the notation of a language."""

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
    """Return the error for a sentence, at its first line.

    Args:
        pool: Pool with the sentence.
        row: Row of the sentence.
        problem: Problem with a tag.
        hint: Hint of the message.
    """
    file, line = pool.origin(row)
    words = display_words(pool.sentence(row).tokens)
    return CorpusError(file, line, f"{problem} in the sentence {words[:60]!r}", hint)


def spelling_problem(tag: str, spelling: Spelling) -> str:
    """Return the message for a tag spelled differently from most."""
    return f"tag {tag!r} is spelled differently from the others ({spelling.example}, {spelling.outside})"


def nested_problem(tag: str) -> str:
    """Return the message for a tag of several labels."""
    return f"a word is in spans that are inside each other (tag {tag!r})"


def find_spellings(pool: Pool, config: SourceConfig) -> dict[str, Spelling]:
    """Find the spellings of tags by language, from all labelled sentences.

    Args:
        pool: Sentences of the source.
        config: Settings of the corpus.

    Returns:
        Language → spelling.
    """
    spellings = {}
    for code, language in enumerate(pool.columns.languages):
        numbers = tag_counts(pool, np.flatnonzero(pool.labelled & (pool.columns.language == code)))
        counts = {pool.tags[number]: count for number, count in numbers.items()}
        spellings[language] = find_spelling(counts, config.scheme_of(language))
    return spellings


def tag_counts(pool: Pool, rows: np.ndarray) -> Counter[int]:
    """Return the number of occurrences of tags in some labelled rows, by the numbers of the tags."""
    counts = np.zeros(len(pool.tags), np.int64)
    for _, batch in pool.batches(rows, ["tags"]):
        counts += np.bincount(batch["tags"].flatten().to_numpy(), minlength=len(counts))
    return Counter({number: int(counts[number]) for number in np.flatnonzero(counts).tolist()})


def without_unknown_tags(
    pool: Pool, config: SourceConfig, spellings: Mapping[str, Spelling], faults: Faults
) -> Columns:
    """Remove sentences with an unknown tag from the parts; they count as skipped.

    Args:
        pool: Sentences of the source.
        config: Settings of the corpus.
        spellings: Language → spelling of its tags.
        faults: Collector of faults.

    Returns:
        The pool's columns, with part −1 for removed sentences.
    """
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
    """Numbers of unknown tags, with the problems."""
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
                scheme_problem(label, scheme)
                if in_scheme
                else f"tag {label!r} has another form than most tags"
            )
    return problems


def _rows_with_tags(pool: Pool, rows: np.ndarray, numbers: np.ndarray) -> list[tuple[int, int]]:
    """Rows with a tag among `numbers`, together with the first such tag."""
    pairs: list[tuple[int, int]] = []
    if not len(numbers):
        return pairs
    for batch_rows, batch in pool.batches(rows, ["tags"]):
        values = batch["tags"].flatten().to_numpy()
        places = np.flatnonzero(np.isin(values, numbers))
        sentences = (
            np.searchsorted(chunk_bounds(batch["tags"].value_lengths().to_pylist()), places, "right") - 1
        )
        sentence_places, first = np.unique(sentences, return_index=True)
        pairs += [
            (int(batch_rows[i]), int(values[places[j]])) for i, j in zip(sentence_places, first, strict=True)
        ]
    return pairs
