"""What one run trains on: encoded text, labels and teacher signals, mapped from the store, cut into global batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from raykd.corpora.batching import plan_batches
from raykd.corpora.corpus import Corpus, open_corpus
from raykd.corpora.encoded_text import EncodedText, TokenBatch, encode_text
from raykd.corpora.hashes import sentence_hashes
from raykd.corpora.masking import MaskedText
from raykd.corpora.teacher_forcing import TeacherForcedText
from raykd.errors import StoreError
from raykd.forms import LabelForm, Labels
from raykd.forms.pieces import HiddenPieces, PieceLabels
from raykd.forms.targets import TargetColumn, Targets
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.signals import Need, TeacherBatch
from raykd.storage.store import Storage
from raykd.structures.device import deferred_checks
from raykd.tasks import TASKS
from raykd.training.label_sets import read_labels
from raykd.training.stored_features import EncoderRows, FeatureReader, StoredFeatures, encoder_ids
from raykd.training.stored_text import find_or_encode
from raykd.transfer import TeacherRows, TransferSet, open_text
from raykd.transfer.manifest import RERUN_HINT

if TYPE_CHECKING:
    from raykd.forms.steps import StepColumn


@dataclass(frozen=True)
class Part:
    """One part of a corpus, encoded for a model."""

    form: LabelForm
    text: EncodedText | MaskedText | TeacherForcedText
    labels: TargetColumn
    languages: np.ndarray

    def __len__(self) -> int:
        return len(self.languages)

    def for_epoch(self, seed: int, epoch: int, rows: np.ndarray) -> tuple[Part, np.ndarray]:
        """The part as it is read in an epoch, and where its `rows` are there: of a language model other pieces are
        masked in each epoch, and in each copy of a sentence.
        """
        if not isinstance(self.text, MaskedText):
            return self, rows
        copies = len(np.unique(rows)) < len(rows)
        text = self.text.for_epoch(seed, epoch, rows if copies else None)
        own = np.arange(len(rows)) if copies else rows
        return replace(self, text=text, labels=HiddenPieces(text)), own

    def with_decoder_input(self) -> Part:
        """The part as it is trained on: a decoder is given the steps that it learns."""
        if not self.form.generates:
            return self
        return replace(
            self, text=TeacherForcedText(cast("EncodedText", self.text), cast("StepColumn", self.labels))
        )


@dataclass(frozen=True)
class Batch:
    """One worker's slice of a global batch."""

    text: TokenBatch
    targets: Targets
    teacher: TeacherBatch


class TrainingData:
    """The sentences a stage is trained on, with labels and teacher signals, addressed by row."""

    def __init__(self, part: Part, transfer: TransferSet | None, rows: np.ndarray | None = None):
        self.part, self.transfer = part, transfer
        self.rows = np.arange(len(part)) if rows is None else rows
        """The rows of `part` that the stage is trained on."""
        self._window_G = np.zeros(len(part), np.int32)
        self._windows: list[np.ndarray] = []
        self._window = -1

    def plan(
        self, rows: np.ndarray, *, batch_tokens: int, seed: int, epoch: int, shuffle: bool = True
    ) -> list[np.ndarray]:
        """The global batches of an epoch over `rows`, window by window where the signals are more than one."""
        self.part, rows = self.part.for_epoch(seed, epoch, rows)
        lengths, windows = self.part.text.piece_lengths[rows], [np.arange(len(rows))]
        if self._signals:
            # What else is read is read by the windows of the largest.
            largest = max(self._signals, key=lambda signals: signals.bytes_of(rows))
            windows = largest.plan(rows, seed=seed, epoch=epoch, shuffle=shuffle)
        self._windows, self._window = [rows[window] for window in windows], -1
        for number, own in enumerate(self._windows):
            self._window_G[own] = number
        cut = partial(plan_batches, batch_tokens=batch_tokens, seed=seed, epoch=epoch, shuffle=shuffle)
        return [
            rows[window[batch]]
            for number, window in enumerate(windows)
            for batch in cut(lengths[window], window=number)
        ]

    def close(self) -> None:
        """Let go of the signals."""
        for signals in self._signals:
            signals.close()

    def _go_to(self, window: int) -> None:
        """Where another window begins, let go of the last one and fetch ahead. A batch is of one window."""
        if self._windows and window != self._window:
            self._window = window
            for signals in self._signals:
                signals.prefetch(self._windows[window : window + 2])

    @property
    def _signals(self) -> list[TransferSet | EncoderRows]:
        """All that is read beside text and labels: what teachers give, and each frozen encoder."""
        features = self.part.text.features
        encoders = features.encoders if isinstance(features, StoredFeatures) else ()
        return [*([] if self.transfer is None else [self.transfer]), *encoders]

    def gather(self, rows: np.ndarray, device: torch.device) -> Batch:
        """The batch of `rows` of the part, padded, on `device`."""
        self._go_to(int(self._window_G[rows[0]]))
        text = self.part.text.gather(rows).to(device)
        targets = self.part.labels.gather(rows).to(device)
        with deferred_checks():  # what is stored was looked at when it was stored
            teacher = TeacherBatch() if self.transfer is None else self.transfer.gather(rows, device)
            return Batch(text, targets, self._on_labels(teacher, rows))

    def _on_labels(self, teacher: TeacherBatch, rows: np.ndarray) -> TeacherBatch:
        """With a parser's arcs as the student's labels say them."""
        if teacher.arcs is None:
            return teacher
        return replace(teacher, on_labels=self.part.form.arcs_on_labels(self.part.labels, teacher.arcs, rows))


def sentence_languages(table: pa.Table) -> np.ndarray:
    """The language of each sentence; a name that occurs often is held once."""
    column = table["language"].combine_chunks().dictionary_encode()
    names = np.asarray(column.dictionary.to_pylist(), dtype=object)
    return names[column.indices.to_numpy(zero_copy_only=False)]


@lru_cache(maxsize=2)
def cached_corpus(store_uri: str, corpus_id: str) -> Corpus:
    """The stored corpus, mapped once per process: reused actors train many students on it."""
    return open_corpus(Storage(store_uri), corpus_id)


def run_labels(store_uri: str, run: Run) -> Labels:
    """What the run's model predicts."""
    if run.labels_id:
        return read_labels(store_uri, run.labels_id)
    form = TASKS[run.task].form
    if form.hides_pieces:
        return PieceLabels(open_vocabulary(Storage(store_uri), run.vocabulary_id).pieces.size)
    return form.predicted_tags(cached_corpus(store_uri, run.corpus_id).tag_set)


def encoded_part(store_uri: str, run: Run, *names: str) -> Part:
    """These parts of the run's corpus, one after the other, encoded for its model."""
    own = (run.corpus_id, run.vocabulary_id, run.labels_id, run.task)
    return _cached_part(store_uri, *own, encoder_ids(run), names)


@lru_cache(maxsize=8)
def _cached_part(
    store_uri: str,
    corpus_id: str,
    vocabulary_id: str,
    labels_id: str,
    task: str,
    encoders: tuple[str, ...],
    names: tuple[str, ...],
) -> Part:
    storage, corpus = Storage(store_uri), cached_corpus(store_uri, corpus_id)
    vocabulary = open_vocabulary(storage, vocabulary_id)
    texts = [find_or_encode(storage, corpus_id, name, corpus.parts[name], vocabulary) for name in names]
    text = EncodedText.concatenate(texts, padding=vocabulary.pieces.special.padding)
    form = TASKS[task].form
    table = pa.concat_tables([corpus.parts[name].select(form.columns) for name in names])
    if form.hides_pieces:
        hiding = MaskedText(text, vocabulary.pieces.special, vocabulary.pieces.size)
        return Part(form, hiding, HiddenPieces(hiding), sentence_languages(table))
    labels: Labels = read_labels(store_uri, labels_id) if labels_id else corpus.tag_set
    features = FeatureReader(storage, encoders).find(table["tokens"])
    context = () if features is not None else tuple(encode_text(table, own) for own in vocabulary.context)
    text = replace(text, features=features, context=context)
    return Part(form, text, form.targets(table, pos=corpus.pos, labels=labels), sentence_languages(table))


def training_data(store_uri: str, run: Run, needs: Sequence[Need], *, text: str) -> TrainingData:
    """What one stage of `run` is trained on: its `text` (labelled, unlabelled or all) with the signals it `needs`."""
    beside = any(stage["text"] != "labelled" for stage in run.stages)
    part = encoded_part(store_uri, run, "train", *(["unlabelled"] if beside else [])).with_decoder_input()
    labelled = cached_corpus(store_uri, run.corpus_id).parts["train"].num_rows
    rows = {
        "labelled": np.arange(labelled), "unlabelled": np.arange(labelled, len(part)), "all": np.arange(len(part)),
    }[text]  # fmt: skip
    if not needs:
        return TrainingData(part, None, rows)
    return TrainingData(part, open_transfer(store_uri, run, part.languages, needs), rows)


def open_transfer(store_uri: str, run: Run, languages: np.ndarray, needs: Sequence[Need]) -> TransferSet:
    """Join the signals of each teacher over the rows of the training table whose language it covers."""
    storage = Storage(store_uri)
    covered = []
    for source in run.sources:
        rows = np.flatnonzero(np.isin(languages, source.languages))
        text_rows = _rows_in_stored_text(storage, run, source.languages, source.text_id)
        covered.append(TeacherRows(source, rows, None if text_rows is None else text_rows[: len(rows)]))
    return TransferSet.open(storage, covered, needs)


def _rows_in_stored_text(
    storage: Storage, run: Run, languages: tuple[str, ...], text_id: str
) -> np.ndarray | None:
    """Where the sentences of the run's own text are in the larger text that the signals were computed for."""
    if not text_id:
        return None
    parts, wanted = (
        cached_corpus(storage.uri, run.corpus_id).parts,
        pc.field("language").isin(list(languages)),
    )
    hashes = [
        sentence_hashes(pa.table(batch).filter(wanted)["tokens"])
        for name in ("train", "unlabelled")
        for batch in parts[name].select(["tokens", "language"]).to_batches()
    ]
    rows = open_text(storage, text_id).rows(np.concatenate(hashes))
    if (rows < 0).any():
        address = storage.child("transfer", text_id).address
        raise StoreError(address, "the text lacks a sentence of the run's corpus", RERUN_HINT)
    return rows
