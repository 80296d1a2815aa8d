"""The answers of annotators, found by the text and kept as they came: an answer is paid for once.

    <store>/answers/<annotator id>/batch-NUMBER-….arrow    the answers of one batch, written whole
    <store>/answers/<annotator id>/annotator.json          description of the annotator; of files, written last

Reading them (labels, places of mentions) comes after storing, so that other settings for reading never ask again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256

import pyarrow as pa

from raykd.corpora.answers.stored_answer import StoredAnswer
from raykd.errors import StoreError
from raykd.identity import PlainObject
from raykd.storage.layout import ANNOTATOR, ANSWERS
from raykd.storage.store import Storage
from raykd.transfer.arrow_file import ipc_bytes, open_arrow

_SCHEMA = pa.schema(
    {
        "key": pa.binary(), "answer": pa.string(), "problem": pa.string(), "origin": pa.string(), "start": pa.int32(),
        "document": pa.binary(), "samples": pa.int32(),
    }
)  # fmt: skip


class Answers:
    """The stored answers of one annotator, by the key of the text."""

    def __init__(self, batches: Sequence[pa.RecordBatch]):
        self._batches = batches
        self._places: dict[bytes, tuple[int, int]] = {}
        self.doubled: list[str] = []
        """Places of further answers to a text that say something else; the first answer counts."""
        for number, batch in enumerate(batches):
            for row, key in enumerate(batch["key"].to_pylist()):
                earlier = self._places.get(key)
                # An answer is better than a failure.
                if earlier is None or (self._problem(*earlier) and not self._problem(number, row)):
                    self._places[key] = (number, row)
                elif self._at(*earlier).answer != (doubled := self._at(number, row)).answer:
                    self.doubled.append(doubled.origin)

    @property
    def samples(self) -> int:
        """Largest number of samples of an answer."""
        return max((batch["samples"].to_numpy().max(initial=0) for batch in self._batches), default=0)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[StoredAnswer]:
        return (self._at(*place) for place in self._places.values())

    def find(self, key: bytes) -> StoredAnswer | None:
        """Return the answer about a text; None where there is none."""
        place = self._places.get(key)
        if place is None:
            return None
        answer = self._at(*place)
        if not answer.document:
            return answer
        whole = self._at(*self._places[answer.document])
        return answer._replace(answer=whole.answer, problem=whole.problem, origin=whole.origin)

    def _problem(self, number: int, row: int) -> str:
        return self._batches[number]["problem"][row].as_py()

    def _at(self, number: int, row: int) -> StoredAnswer:
        return StoredAnswer(*(column[row].as_py() for column in self._batches[number].columns))


def write_answers(storage: Storage, annotator_id: str, number: int, answers: Iterable[StoredAnswer]) -> None:
    """Store a batch of answers in one object; a batch that is stored stays as it is.

    Args:
        storage: The store.
        annotator_id: Identity of the annotator.
        number: Number of the batch: of two answers to a text, that of the lower number counts.
        answers: The answers, in order.
    """
    rows = [answer._asdict() for answer in answers]
    data = ipc_bytes(pa.RecordBatch.from_pylist(rows, _SCHEMA))
    folder, name = (
        storage.child(ANSWERS, annotator_id),
        f"batch-{number:06d}-{sha256(data).hexdigest()}.arrow",
    )
    if not folder.exists(name):
        folder.write(name, data)


def has_all_answers(storage: Storage, annotator_id: str) -> bool:
    """Return True if all answers of an annotator's files are stored, and none of their batches is lost.

    Args:
        storage: The store.
        annotator_id: Identity of the annotator.
    """
    described = annotator_description(storage, annotator_id)
    return bool(described) and set(described["batches"]) <= {*batch_names(storage, annotator_id)}


def describe_annotator(storage: Storage, annotator_id: str, description: PlainObject) -> None:
    """Store the description of an annotator, after all answers of its files.

    Args:
        storage: The store.
        annotator_id: Identity of the annotator.
        description: The annotator in plain data, without secrets.
    """
    content = {**description, "batches": list(batch_names(storage, annotator_id))}
    storage.child(ANSWERS, annotator_id).write_json(ANNOTATOR, content)


def annotator_description(storage: Storage, annotator_id: str) -> PlainObject:
    """Return the stored description of an annotator; empty where nothing is stored.

    Args:
        storage: The store.
        annotator_id: Identity of the annotator.
    """
    return storage.child(ANSWERS, annotator_id).find_json(ANNOTATOR) or {}


def open_answers(storage: Storage, annotator_id: str) -> Answers:
    """Return all stored answers of an annotator; none where nothing is stored.

    Args:
        storage: The store.
        annotator_id: Identity of the annotator.

    Raises:
        StoreError: A batch cannot be read.
    """
    return _opened(storage.uri, annotator_id, batch_names(storage, annotator_id))


def batch_names(storage: Storage, annotator_id: str) -> tuple[str, ...]:
    """Return the names of an annotator's batches, in their order.

    Args:
        storage: The store.
        annotator_id: Identity of the annotator.
    """
    names = storage.child(ANSWERS, annotator_id).names()
    return tuple(sorted(name for name in names if name.endswith(".arrow")))


@lru_cache(maxsize=4)
def _opened(store_uri: str, annotator_id: str, names: tuple[str, ...]) -> Answers:
    folder = Storage(store_uri).child(ANSWERS, annotator_id)
    return Answers([read_batch(folder, name) for name in names])


def read_batch(folder: Storage, name: str) -> pa.RecordBatch:
    """Return a stored batch of answers, after a comparison with its checksum.

    Args:
        folder: Folder of the annotator.
        name: Name of the batch.

    Raises:
        StoreError: The batch is damaged.
    """
    try:
        return open_arrow(folder, name, sha256=name.removesuffix(".arrow").rpartition("-")[2])
    except (ValueError, OSError) as error:
        hint = "restore the file from a copy; without it its texts are asked again"
        raise StoreError(f"{folder.address}/{name}", f"the answers are damaged ({error})", hint) from error
