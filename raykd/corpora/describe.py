"""A corpus in figures: what `raykd corpus show` prints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raykd.corpora.corpus import Corpus, corpus_id
from raykd.corpora.report import label_counts


def describe(corpus: Corpus) -> dict[str, Any]:
    """Plain, JSON-able figures of `corpus`.

    `parts` has one entry per part and language with sentences: how many sentences and tokens, the mean
    and the largest length in tokens, and how often each label occurs (spans by type, words by tag, or
    sentences by class). `tags` are in the order of their numbers.
    """
    return {
        "corpus_id": corpus_id(corpus),
        "languages": list(corpus.languages),
        "roles": {language: corpus.report.role(language) for language in corpus.languages},
        "unit": corpus.unit,
        "scheme": corpus.tag_set.scheme,
        "tags": list(corpus.tag_set.tags),
        "labels": list(corpus.labels),
        "parts": [row for part, table in corpus.parts.items() for row in _rows(corpus, part, table)],
        "schemes": dict(corpus.report.schemes),
        "skipped": {part: dict(found) for part, found in corpus.report.skipped.items()},
        "examples": corpus.report.examples,
        "warnings": corpus.report.warnings(),
    }


def _rows(corpus: Corpus, part: str, table: pa.Table) -> list[dict[str, Any]]:
    labels = label_counts(table, corpus.tag_set)
    rows = []
    for language in corpus.languages:
        lengths = _lengths(table, language)
        if len(lengths):
            rows.append(
                {
                    "part": part,
                    "language": language,
                    "sentences": len(lengths),
                    "tokens": int(lengths.sum()),
                    "mean_length": float(lengths.mean()),
                    "longest": int(lengths.max()),
                    "labels": labels[language],
                }
            )
    return rows


def _lengths(table: pa.Table, language: str) -> np.ndarray:
    """The words of each sentence of a language."""
    lengths = [np.zeros(0, np.int64)]
    for batch in table.to_batches():
        own = pc.call_function("equal", [batch["language"], pa.scalar(language)])
        lengths.append(batch["tokens"].value_lengths().filter(own).to_numpy())
    return np.concatenate(lengths)
