"""What a run's model predicts: the tags of its corpus, or the labels that a student of another task was given.

These are made once of the corpus' training part, and stored in one file, named by what they were made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from raykd.corpora.corpus import Corpus
from raykd.corpora.head_codes import Encoding, TreeLabels
from raykd.corpora.tags import TagSet
from raykd.identity import identity
from raykd.storage.layout import OWN_LABELS
from raykd.storage.store import Storage
from raykd.structures import LegalTransitions
from raykd.tasks import ParsingTask, Task


@dataclass(frozen=True)
class PieceLabels:
    """The pieces of a vocabulary, which a masked language model predicts."""

    size: int

    @property
    def tags(self) -> tuple[str, ...]:
        """None: pieces have numbers alone."""
        return ()

    def __len__(self) -> int:
        return self.size


Labels = TagSet | TreeLabels | PieceLabels


def store_labels(
    storage: Storage, task: Task, encoding: Encoding, corpus: Corpus, corpus_id: str, where: str
) -> str:
    """Find or make the labels of a student of `task`; gives their id, and "" where they are the corpus' tags.

    Raises:
        CorpusError: the corpus, read from `where`, lacks what they are made of.
    """
    if not isinstance(task, ParsingTask):
        return ""
    name = identity("labels", {"corpus": corpus_id, "encoding": encoding})
    if not storage.exists(labels_file(name)):
        storage.write_json(labels_file(name), plain_labels(task.student_labels(corpus, encoding, where)))
    return name


@lru_cache(maxsize=4)
def stored_labels(store_uri: str, name: str) -> Labels:
    """The labels called `name`."""
    return Storage(store_uri).read_json(labels_file(name), labels_from)


def plain_labels(labels: Labels) -> dict[str, Any]:
    """JSON-able form, as it is stored and written beside a model."""
    if isinstance(labels, TreeLabels):
        return labels.to_plain()
    if isinstance(labels, PieceLabels):
        return {"pieces": labels.size}
    return {"scheme": labels.scheme, "tags": list(labels.tags)}


def labels_from(plain: Mapping[str, Any]) -> Labels:
    """What `plain_labels` wrote."""
    if "encoding" in plain:
        return TreeLabels.from_plain(plain)
    if "pieces" in plain:
        return PieceLabels(plain["pieces"])
    return TagSet(tuple(plain["tags"]), plain["scheme"])


def legal_transitions(labels: Labels) -> LegalTransitions | None:
    """Which labels may follow each other; None where all may."""
    if not (isinstance(labels, TagSet) and labels.constrained):
        return None
    return LegalTransitions.of(labels.allowed_transitions(), labels.allowed_start(), labels.allowed_end())


def plain_legal(legal: LegalTransitions) -> dict[str, Any]:
    """JSON-able form, as an export carries it: which labels, by number, may be `first` and `last`, and which may come
    next after each label, as the place `after` of its list in `next`; most labels share one."""
    allowed = [np.flatnonzero(row == 0).tolist() for row in legal.transitions_YY.numpy()]
    lists = sorted({tuple(own) for own in allowed})
    return {
        "first": np.flatnonzero(legal.start_Y.numpy() == 0).tolist(),
        "last": np.flatnonzero(legal.end_Y.numpy() == 0).tolist(),
        "next": [list(own) for own in lists],
        "after": [lists.index(tuple(own)) for own in allowed],
    }


def labels_file(name: str) -> str:
    """Where the labels called `name` are stored."""
    return f"{OWN_LABELS}/{name}.json"
