"""What a run's model predicts: the tags of its corpus, or the labels that a student of another task was given.

These are made once of the corpus' training part, and stored in one file, named by what they were made of.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from raykd.corpora.corpus import Corpus
from raykd.forms import Labels, labels_from
from raykd.forms.tree.codes import Encoding
from raykd.identity import PlainObject, identity
from raykd.storage.layout import LABEL_SETS
from raykd.storage.store import Storage
from raykd.structures import LegalTransitions
from raykd.tasks import Task


def store_labels(
    storage: Storage, task: Task, encoding: Encoding, corpus: Corpus, corpus_id: str, where: str
) -> str:
    """Find or make the labels of a student of `task`; gives their id, and "" where they are the corpus' tags.

    Raises:
        CorpusError: the corpus, read from `where`, lacks what they are made of.
    """
    if not task.form.has_student_labels:
        return ""
    name = identity("labels", {"corpus": corpus_id, "encoding": encoding})
    if not storage.exists(labels_file(name)):
        storage.write_json(labels_file(name), task.form.student_labels(corpus, encoding, where).to_plain())
    return name


@lru_cache(maxsize=4)
def read_labels(store_uri: str, name: str) -> Labels:
    """The labels called `name`."""
    return Storage(store_uri).read_json(labels_file(name), labels_from)


def legal_as_json(legal: LegalTransitions) -> PlainObject:
    """JSON-able form, as an export carries it: which labels, by number, may be `first` and `last`, and which may come
    next after each label, as the place `after` of its list in `next`; most labels share one.
    """
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
    return f"{LABEL_SETS}/{name}.json"
