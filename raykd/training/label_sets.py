"""The labels of a run's model: the tags of its corpus, or labels made for a student of another task.

Such labels are made once from the corpus' training part, and stored in one file, named by their sources.
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
    storage: Storage, task: Task, encoding: Encoding, corpus: Corpus, corpus_id: str, place: str
) -> str:
    """Find or make the labels of a student of `task`; return their id, or "" if they are the corpus' tags.

    Args:
        storage: of the labels.
        task: of the student.
        encoding: encoding of trees in the labels; other forms of labels do not read it.
        corpus: the corpus.
        corpus_id: of the corpus.
        place: folder or source of the corpus, for messages.

    Raises:
        CorpusError: the corpus lacks the information from which the labels are made.
    """
    if not task.form.has_student_labels:
        return ""
    labels_id = identity("labels", {"corpus": corpus_id, "encoding": encoding})
    if not storage.exists(_labels_file(labels_id)):
        labels = task.form.student_labels(corpus, encoding, place)
        storage.write_json(_labels_file(labels_id), labels.to_plain())
    return labels_id


@lru_cache(maxsize=4)
def read_labels(store_uri: str, labels_id: str) -> Labels:
    """Return the labels stored by `store_labels`, read once per process."""
    return Storage(store_uri).read_json(_labels_file(labels_id), labels_from)


def legal_as_json(legal: LegalTransitions) -> PlainObject:
    """Return the legal transitions as plain data, in the form of an export.

    Args:
        legal: the legal transitions.

    Returns:
        `first` and `last`: numbers of the labels that may begin and end a sentence. `next`: lists of labels that may
        follow a label, each list once. `after`: for each label the position of its list in `next`.
    """
    allowed = [np.flatnonzero(row == 0).tolist() for row in legal.transitions_YY.numpy()]
    lists = sorted({tuple(labels) for labels in allowed})
    return {
        "first": np.flatnonzero(legal.start_Y.numpy() == 0).tolist(),
        "last": np.flatnonzero(legal.end_Y.numpy() == 0).tolist(),
        "next": [list(labels) for labels in lists],
        "after": [lists.index(tuple(labels)) for labels in allowed],
    }


def _labels_file(labels_id: str) -> str:
    return f"{LABEL_SETS}/{labels_id}.json"
