"""What one run trains on: encoded text, tags and teacher signals, mapped from the store and cut into global batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from raykd.corpora.corpus import Corpus, open_corpus
from raykd.corpora.encoding import EncodedText, TokenBatch
from raykd.errors import SignalError
from raykd.runs.run import Run
from raykd.runs.vocabularies import StoredVocabulary, open_vocabulary
from raykd.signals import Need, TeacherBatch
from raykd.storage import Storage
from raykd.transfer import TransferSet


@dataclass(frozen=True)
class TagColumn:
    """Tags of many sentences, flat; unlabelled sentences have no tags and `labelled` False."""

    values: np.ndarray
    offsets: np.ndarray
    labelled: np.ndarray

    @staticmethod
    def of(table: pa.Table) -> TagColumn:
        """The `tags` column of a corpus part, mapped without a copy per sentence."""
        column = table["tags"].combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        values = column.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        return TagColumn(values, offsets, column.is_valid().to_numpy(zero_copy_only=False))

    def gather(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Padded tags [B, T] (0 on padding) and which rows are labelled [B]."""
        starts, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        steps = np.arange(max(1, int(lengths.max(initial=0))))
        mask = steps[None, :] < lengths[:, None]
        padded = np.zeros(mask.shape, dtype=np.int64)
        padded[mask] = self.values[(starts[:, None] + steps[None, :])[mask]]
        return torch.from_numpy(padded), torch.from_numpy(self.labelled[rows].copy())

    def lists(self, names: Sequence[str]) -> list[list[str]]:
        """Tag strings of every sentence."""
        strings = np.asarray(names, dtype=object)[self.values]
        return [list(part) for part in np.split(strings, self.offsets[1:-1])]


@dataclass(frozen=True)
class Part:
    """One part of a corpus, encoded for a model."""

    text: EncodedText
    tags: TagColumn
    languages: np.ndarray

    def __len__(self) -> int:
        return len(self.languages)


@dataclass(frozen=True)
class Batch:
    """One worker's slice of a global batch. `reference_BT`: gold tags, or the teacher's best path where unlabelled."""

    text: TokenBatch
    reference_BT: Tensor
    teacher: TeacherBatch | None


class TrainingData:
    """The sentences a run trains on, with tags and teacher signals, addressed by row."""

    def __init__(self, part: Part, transfer: TransferSet | None):
        self.part, self._transfer = part, transfer

    def gather(self, rows: np.ndarray, device: torch.device) -> Batch:
        """The batch of `rows`, padded, on `device`."""
        text = self.part.text.gather(rows).to(device)
        tags_BT, labelled_B = self.part.tags.gather(rows)
        teacher = self._transfer.gather(rows, device) if self._transfer is not None else None
        if bool(labelled_B.all()):
            return Batch(text, tags_BT.to(device), teacher)
        width = int(text.lengths_B.max())
        reference_BT = tags_BT.new_zeros(len(rows), width)
        reference_BT[:, : tags_BT.shape[1]] = tags_BT
        # Top-1 pseudo-labels (ACL 2021 §4): the teacher's best path stands in for gold on unlabelled text.
        best_BT = _best_paths(teacher)[:, :width].cpu()
        reference_BT = torch.where(labelled_B[:, None], reference_BT, best_BT)
        return Batch(text, reference_BT.to(device), teacher)


def _best_paths(teacher: TeacherBatch | None) -> Tensor:
    if teacher is None or teacher.paths_BKT is None:
        raise SignalError("unlabelled sentences need their teacher's best path; the transfer set holds none")
    return teacher.paths_BKT[:, 0]


def encode_part(table: pa.Table, vocabulary: StoredVocabulary) -> Part:
    """Encode one corpus part for a model with `vocabulary`."""
    return Part(
        vocabulary.encode(table), TagColumn.of(table), np.asarray(table["language"].to_pylist(), dtype=object)
    )


@lru_cache(maxsize=2)
def corpus_of(store_uri: str, corpus_id: str) -> Corpus:
    """The stored corpus, mapped once per process: reused actors train many students on it."""
    return open_corpus(Storage(store_uri), corpus_id)


@lru_cache(maxsize=2)
def training_part(store_uri: str, corpus_id: str, vocabulary_id: str, unlabelled: bool) -> Part:
    """Labelled sentences, followed by the unlabelled ones where asked."""
    parts = corpus_of(store_uri, corpus_id).parts
    table = parts["train"].select(["tokens", "tags", "language"])
    if unlabelled:
        table = pa.concat_tables([table, parts["unlabelled"].select(table.column_names)])
    return encode_part(table, open_vocabulary(Storage(store_uri), vocabulary_id))


@lru_cache(maxsize=4)
def evaluation_part(store_uri: str, corpus_id: str, vocabulary_id: str, name: str) -> Part:
    """The dev or test part."""
    table = corpus_of(store_uri, corpus_id).parts[name]
    return encode_part(table, open_vocabulary(Storage(store_uri), vocabulary_id))


def training_data(store_uri: str, run: Run, needs: Sequence[Need], *, verify: bool) -> TrainingData:
    """Everything that `run` trains on. `verify` recomputes the checksums of the transfer set's shards."""
    part = training_part(store_uri, run.corpus_id, run.vocabulary_id, run.unlabelled)
    if not run.sources:
        return TrainingData(part, None)
    return TrainingData(part, open_transfer(store_uri, run, part.languages, needs, verify=verify))


def open_transfer(
    store_uri: str, run: Run, languages: np.ndarray, needs: Sequence[Need], *, verify: bool
) -> TransferSet:
    """Join the signals of each teacher over the rows of the training table whose language it covers."""
    covered = [(source, np.flatnonzero(np.isin(languages, source.languages))) for source in run.sources]
    return TransferSet.open(Storage(store_uri), covered, needs, verify=verify)
