"""Counts of labels in the parts of a corpus, and labels or languages that lack them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raykd.forms import TagSet

LabelCounts = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Part → language → label → count, for languages with labelled sentences."""


def label_counts_by_part(
    tables: Mapping[str, pa.Table], tag_set: TagSet
) -> dict[str, dict[str, dict[str, int]]]:
    """Return the `label_counts` of the labelled sentences of all parts.

    Args:
        tables: Part → table.
        tag_set: The tags.
    """
    return {
        part: label_counts(table.select(["tags", "language"]).filter(table["tags"].is_valid()), tag_set)
        for part, table in tables.items()
    }


def label_counts(table: pa.Table, tag_set: TagSet) -> dict[str, dict[str, int]]:
    """Count the labels of a table.

    Args:
        table: Labelled sentences.
        tag_set: The tags.

    Returns:
        Language → label → count: spans by type (BIOES), words by tag (flat), sentences by class, brackets of trees by
        their opening label.
    """
    counts_by_language: dict[str, np.ndarray] = {}
    for batch in table.select(["tags", "language"]).to_batches():
        for language in batch["language"].unique().to_pylist():
            tags = (
                batch["tags"]
                .filter(pc.call_function("equal", [batch["language"], pa.scalar(language)]))
                .flatten()
                .to_numpy()
            )
            # The steps of a tree that are words have numbers behind those of the tags.
            counts = np.bincount(tags, minlength=len(tag_set))[: len(tag_set)]
            counts_by_language[language] = counts_by_language.get(language, 0) + counts
    return {language: _by_label(counts, tag_set) for language, counts in counts_by_language.items()}


def _by_label(counts: np.ndarray, tag_set: TagSet) -> dict[str, int]:
    by_label: dict[str, int] = {}
    for tag, count in zip(tag_set.tags, counts.tolist(), strict=True):
        label = tag_set.form.label_of(tag)
        if label is not None and count:
            by_label[label] = by_label.get(label, 0) + count
    return by_label


def unseen_labels(counts: LabelCounts) -> dict[str, dict[str, dict[str, int]]]:
    """Return label → part → language → count, for labels of dev and test without a training sentence."""
    train_labels = {label for labels in counts["train"].values() for label in labels}
    unseen: dict[str, dict[str, dict[str, int]]] = {}
    for part in ("dev", "test"):
        for language, labels in counts[part].items():
            for label in sorted(set(labels) - train_labels):
                unseen.setdefault(label, {}).setdefault(part, {})[language] = labels[label]
    return unseen


def labels_differing_in_case(tag_set: TagSet) -> list[list[str]]:
    """Return groups of span types that differ only in capital letters."""
    if not tag_set.form.bioes:
        return []
    groups: dict[str, list[str]] = {}
    for label in tag_set.labels:
        groups.setdefault(label.casefold(), []).append(label)
    return [labels for labels in groups.values() if len(labels) > 1]


def languages_without_labels(counts: LabelCounts) -> dict[str, list[str]]:
    """Return part → languages whose labelled sentences have no label at all.

    Args:
        counts: The `label_counts_by_part`.
    """
    by_part = {
        part: [language for language, labels in by_language.items() if not labels]
        for part, by_language in counts.items()
    }
    return {part: languages for part, languages in by_part.items() if languages}
