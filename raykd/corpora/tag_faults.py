"""Sentences with a tag that the scheme of their language does not have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raykd.corpora.chunks import bounds_of
from raykd.corpora.faults import Faults, summary
from raykd.corpora.pool import Columns, Pool
from raykd.corpora.sentence import shown_words
from raykd.corpora.source import SourceConfig
from raykd.errors import CorpusError
from raykd.forms import form_of
from raykd.forms.tag_schemes import LETTERS, ReadScheme, not_of_scheme
from raykd.storage.layout import PARTS


def fault_at(pool: Pool, row: int, problem: str, hint: str) -> CorpusError:
    """A fault of a sentence, at its first line."""
    file, line = pool.origin(row)
    words = shown_words(pool.sentence(row).tokens)
    return CorpusError(file, line, f"{problem} in the sentence {words[:60]!r}", hint)


def without_unknown_tags(pool: Pool, config: SourceConfig, faults: Faults) -> Columns:
    """The pool's columns, in which the sentences that have an unknown tag are in no part; they count as skipped."""
    columns = pool.columns
    part = columns.part.copy()
    for code, language in enumerate(columns.languages):
        rows = np.flatnonzero(pool.labelled & (columns.language == code))
        scheme = config.scheme_of(language)
        for row, tag in _with_unknown(pool, rows, scheme):
            problem = (
                not_of_scheme(tag, scheme) if scheme in LETTERS else f"tag {tag!r} is no span's (B-, I-)"
            )
            faults.skipped.add(PARTS[columns.part[row]], language, summary(fault_at(pool, row, problem, "")))
            part[row] = -1
    return replace(columns, part=part)


def _with_unknown(pool: Pool, rows: np.ndarray, scheme: ReadScheme) -> list[tuple[int, str]]:
    """(row, tag) of each of `rows` that has an unknown tag, with the first one."""
    used: set[int] = set()
    for _, batch in pool.batches(rows, ["tags"]):
        used.update(np.unique(batch["tags"].flatten().to_numpy()).tolist())
    unknown = form_of(scheme).unknown_tags((pool.tags[number] for number in used), scheme)
    numbers = np.array([number for number in used if pool.tags[number] in unknown], dtype=np.int32)
    found: list[tuple[int, str]] = []
    if not len(numbers):
        return found
    for own, batch in pool.batches(rows, ["tags"]):
        values = batch["tags"].flatten().to_numpy()
        places = np.flatnonzero(np.isin(values, numbers))
        sentences = np.searchsorted(bounds_of(batch["tags"].value_lengths().to_pylist()), places, "right") - 1
        which, first = np.unique(sentences, return_index=True)
        found += [(int(own[i]), pool.tags[values[places[j]]]) for i, j in zip(which, first, strict=True)]
    return found
