"""The notation of tags by language: spelling and scheme, found from all tags of a language together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from raykd.corpora.chunks import chunk_bounds
from raykd.corpora.faults import Faults
from raykd.corpora.pool import Pool
from raykd.corpora.sentence import Faulty
from raykd.corpora.source import SourceConfig
from raykd.corpora.tag_faults import NESTED_HINT, fault_at, nested_problem, spelling_problem, tag_counts
from raykd.errors import CorpusError
from raykd.forms.nested_spans import is_nested, keep_outermost, nested_scheme, split_labels
from raykd.forms.tag_schemes import (
    MixedTagsError,
    ReadScheme,
    guess_scheme,
    has_letters,
    scheme_problem,
    unknown_tags,
)
from raykd.forms.tag_spellings import Spelling, letters_read_as_types
from raykd.metrics.bioes import OUTSIDE

has_unseparated_labels = re.compile(r"[BIESLUMW]-.*[,;/+&\s][BIESLUMW]-\S").match
"""Match a tag of several labels that are not separated by `|`."""
MAX_CACHED_SEQUENCES = 50_000
"""Maximum number of tag sequences in memory: a corpus repeats few of them very often, and most never."""


@dataclass(frozen=True)
class Notation:
    """The notation of a language's tags."""

    scheme: ReadScheme
    names: Sequence[str]
    """The tags of `Pool.tags` in the usual spelling, `B-PER`; those of other languages may have no meaning."""
    used: frozenset[str]
    """Tags of the language; of nested spans those of the outermost ones."""
    nested: bool = False
    """True if some words have several labels."""


def find_notations(
    pool: Pool, by_language: Mapping[str, np.ndarray], spellings: Mapping[str, Spelling], config: SourceConfig
) -> dict[str, Notation]:
    """Find the notations of languages from labelled rows.

    Args:
        pool: Sentences of the source.
        by_language: Language → labelled rows.
        spellings: Language → spelling of its tags.
        config: Settings of the corpus.

    Raises:
        CorpusError: A tag is spelled differently from the others of its language, some tags are of spans and others
            are not, some words have several labels, or some languages have spans and others have none. The message has
            file and line.
    """
    notations = {
        language: _notation(pool, rows, language, spellings[language], config)
        for language, rows in by_language.items()
    }
    flat = [language for language, notation in notations.items() if notation.scheme == "flat"]
    if 0 < len(flat) < len(notations):
        for language in flat:
            # A language with O alone is the same in every scheme.
            if notations[language].used - {OUTSIDE}:
                raise _mixed_schemes_error(pool, by_language[language], language, notations)
            notations[language] = Notation("iob2", notations[language].names, notations[language].used)
    return notations


def _notation(
    pool: Pool, rows: np.ndarray, language: str, spelling: Spelling, config: SourceConfig
) -> Notation:
    numbers = sorted(tag_counts(pool, rows))
    read = [spelling.read(tag) for tag in pool.tags]
    odd = {pool.tags[number] for number in numbers if read[number] is None}
    _refuse_tags(
        pool, rows, odd, language, config, lambda tag: spelling_problem(tag, spelling), "correct the tag"
    )
    names = [name or tag for name, tag in zip(read, pool.tags, strict=True)]
    used, scheme = frozenset(names[number] for number in numbers), config.scheme_of(language)
    if scheme == "io" and (lettered := letters_read_as_types({pool.tags[number]: 1 for number in numbers})):
        problem = f"scheme io would read the tag {lettered!r} as a span type, but it begins with a letter of span tags"
        row = next(row for row, tags in tag_sequences(pool, rows, pool.tags) if lettered in tags)
        raise fault_at(pool, row, problem, "remove corpus.scheme")
    several = {
        tag
        for tag, name in zip(pool.tags, names, strict=True)
        if name in used and has_unseparated_labels(name)
    }
    if has_letters(scheme) and several:
        hint = "separate the labels of a word by |, and set corpus.nested: outermost"
        _refuse_tags(pool, rows, several, language, None, nested_problem, hint)
    if has_letters(scheme) and any(map(is_nested, used)):
        return _nested_notation(pool, rows, language, names, used, config)
    if scheme == "auto":
        try:
            scheme = guess_scheme(tags for _, tags in tag_sequences(pool, rows, names))
        except MixedTagsError as error:
            problem, hint = str(error), "correct the tag; where no tag is of a span set corpus.scheme: flat"
            odd = {tag for tag, name in zip(pool.tags, names, strict=True) if name in error.odd}
            _refuse_tags(pool, rows, odd, language, config, lambda _: problem, hint)
            raise AssertionError("the odd tags are those of some sentence") from error
    return Notation(scheme, names, used)


def _nested_notation(
    pool: Pool,
    rows: np.ndarray,
    language: str,
    names: Sequence[str],
    used: Set[str],
    config: SourceConfig,
) -> Notation:
    """Notation of a language with several labels at some words."""
    if config.nested == "refuse":
        odd = {tag for tag, name in zip(pool.tags, names, strict=True) if name in used and is_nested(name)}
        _refuse_tags(pool, rows, odd, language, None, nested_problem, NESTED_HINT)
    scheme = config.scheme_of(language)
    scheme = nested_scheme(used) if scheme == "auto" else scheme
    unknown = unknown_tags({label for tag in used for label in split_labels(tag)}, scheme)
    odd_labels = {
        tag: label
        for tag, name in zip(pool.tags, names, strict=True)
        for label in split_labels(name)
        if label in unknown
    }
    _refuse_tags(
        pool, rows, {*odd_labels}, language, config,
        lambda tag: scheme_problem(odd_labels[tag], scheme), "correct the tag",
    )  # fmt: skip
    sequences = tag_sequences(pool, rows, names)
    outer = frozenset(tag for _, tags in sequences for tag in keep_outermost(tags, scheme).tags)
    return Notation(scheme, names, outer, nested=True)


def tag_sequences(pool: Pool, rows: np.ndarray, names: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Return the tags of labelled rows; of equal sequences near each other, only the first.

    Args:
        pool: Sentences of the source.
        rows: Labelled rows.
        names: Names of the tags, in the order of `pool.tags`.

    Yields:
        Row and tags.
    """
    seen_keys: set[bytes] = set()
    for batch_rows, batch in pool.batches(rows, ["tags"]):
        for row, numbers in zip(batch_rows.tolist(), number_rows(batch["tags"]), strict=True):
            key = numbers.tobytes()
            if key in seen_keys:
                continue
            if len(seen_keys) == MAX_CACHED_SEQUENCES:
                seen_keys.clear()
            seen_keys.add(key)
            places: list[int] = numbers.tolist()
            yield row, [names[place] for place in places]


def number_rows(column: pa.ListArray) -> Iterator[np.ndarray]:
    """Return the lists of numbers of a column; a null is an empty list."""
    bounds = list_bounds(column).tolist()
    values = column.flatten().to_numpy()
    return (values[start:end] for start, end in pairwise(bounds))


def list_bounds(column: pa.ListArray) -> np.ndarray:
    """Return the bounds of lists among their flat values, int64 [lists + 1]."""
    return chunk_bounds(column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False))


def _refuse_tags(
    pool: Pool,
    rows: np.ndarray,
    odd: Set[str],
    language: str,
    config: SourceConfig | None,
    problem: Callable[[str], str],
    hint: str,
) -> None:
    """Raise CorpusError for sentences with `odd` tags; without a `config`, no hint proposes to skip them."""
    if not odd:
        return
    # With `skip`, sentences with odd tags were left out before: a remaining one is an error.
    faults = Faults("stop" if config is None or config.on_error == "skip" else config.on_error)
    for row, tags in tag_sequences(pool, rows, pool.tags):
        first = next((tag for tag in tags if tag in odd), None)
        if first is not None:
            faults.record("", Faulty(language, (fault_at(pool, row, problem(first), hint),)))
    faults.refuse()


def _mixed_schemes_error(
    pool: Pool, rows: np.ndarray, language: str, notations: Mapping[str, Notation]
) -> CorpusError:
    schemes = ", ".join(f"{name} {notation.scheme}" for name, notation in notations.items())
    names = notations[language].names
    row = next(row for row, tags in tag_sequences(pool, rows, names) if set(tags) - {OUTSIDE})
    hint = f"remove the language, or where each word of a span has its type set corpus.scheme: {{{language}: io}}"
    return fault_at(pool, row, f"some languages have spans and others one tag per word ({schemes})", hint)
