"""The data of a run: encoded text, labels and teacher signals, mapped from the store and cut into global batches.

Shapes: N sentences of a part.
"""

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
from raykd.tasks import find_task
from raykd.training.label_sets import read_labels
from raykd.training.stored_features import EncoderRows, FeatureReader, StoredFeatures, encoder_ids
from raykd.training.stored_text import find_or_encode
from raykd.transfer import TeacherRows, TransferSet, open_text
from raykd.transfer.manifest import RERUN_HINT

if TYPE_CHECKING:
    from raykd.forms.steps import StepColumn


@dataclass(frozen=True)
class Part:
    """One part of a corpus, encoded for a model.

    Attributes:
        languages: Language of each sentence [N].
    """

    form: LabelForm
    text: EncodedText | MaskedText | TeacherForcedText
    labels: TargetColumn
    languages: np.ndarray

    def __len__(self) -> int:
        return len(self.languages)

    def for_epoch(self, seed: int, epoch: int, rows: np.ndarray) -> tuple[Part, np.ndarray]:
        """Return the part for an epoch, and the positions of `rows` in it.

        In the text of a masked language model other pieces are masked in each epoch, and in each copy of a sentence. If
        `rows` has copies, the returned part therefore consists of them alone.

        Args:
            seed: of the masks.
            epoch: counted over all stages.
            rows: of the part without copies, ascending; a row may occur more than once.
        """
        if not isinstance(self.text, MaskedText):
            return self, rows
        copies = len(np.unique(rows)) < len(rows)
        text = self.text.for_epoch(seed, epoch, rows if copies else None)
        positions = np.arange(len(rows)) if copies else rows
        return replace(self, text=text, labels=HiddenPieces(text)), positions

    def with_decoder_input(self) -> Part:
        """Return the part for training: a decoder that generates steps gets the correct steps as its input."""
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
    """The sentences of a stage, with labels and teacher signals, addressed by row."""

    def __init__(self, part: Part, transfer: TransferSet | None, rows: np.ndarray | None = None):
        self.part, self.transfer = part, transfer
        self.rows = np.arange(len(part)) if rows is None else rows
        """Rows of `part` on which the stage is trained."""
        self._window_N = np.zeros(len(part), np.int32)
        """Number of the window of each sentence."""
        self._windows: list[np.ndarray] = []
        self._window = -1

    def plan(
        self, rows: np.ndarray, *, batch_tokens: int, seed: int, epoch: int, shuffle: bool = True
    ) -> list[np.ndarray]:
        """Return the global batches of an epoch over `rows`, as arrays of positions in `self.part`.

        If stored tensors are read, the epoch goes window by window (see `transfer/windows.py`), and `gather` reads the
        windows of the last plan. For a masked language model `self.part` is replaced.

        Args:
            rows: of the part.
            batch_tokens: pieces of a global batch, padding included.
            seed: decides the order, with the epoch.
            epoch: counted over all stages.
            shuffle: false for the order of the rows.
        """
        self.part, rows = self.part.for_epoch(seed, epoch, rows)
        lengths, windows = self.part.text.piece_lengths[rows], [np.arange(len(rows))]
        if self._signals:
            # Several signals share one order, so the windows of the largest serve all.
            largest = max(self._signals, key=lambda signals: signals.bytes_of(rows))
            windows = largest.plan(rows, seed=seed, epoch=epoch, shuffle=shuffle)
        self._windows, self._window = [rows[window] for window in windows], -1
        for number, window_rows in enumerate(self._windows):
            self._window_N[window_rows] = number
        cut = partial(plan_batches, batch_tokens=batch_tokens, seed=seed, epoch=epoch, shuffle=shuffle)
        return [
            rows[window[batch]]
            for number, window in enumerate(windows)
            for batch in cut(lengths[window], window=number)
        ]

    def close(self) -> None:
        """Release the signals."""
        for signals in self._signals:
            signals.close()

    def gather(self, rows: np.ndarray, device: torch.device) -> Batch:
        """Return the batch of `rows` of the part, padded, on `device`.

        Args:
            rows: of the part, all in one window.
            device: of the returned tensors.
        """
        self._go_to(int(self._window_N[rows[0]]))
        text = self.part.text.gather(rows).to(device)
        targets = self.part.labels.gather(rows).to(device)
        with deferred_checks():  # values were validated when they were stored
            teacher = TeacherBatch() if self.transfer is None else self.transfer.gather(rows, device)
            return Batch(text, targets, self._on_labels(teacher, rows))

    def _go_to(self, window: int) -> None:
        """When a new window begins, release the last one and prefetch the next; a batch belongs to one window."""
        if self._windows and window != self._window:
            self._window = window
            for signals in self._signals:
                signals.prefetch(self._windows[window : window + 2])

    @property
    def _signals(self) -> list[TransferSet | EncoderRows]:
        """All readers of stored tensors: of the teachers' signals, and of the features of the frozen encoders."""
        features = self.part.text.features
        encoders = features.encoders if isinstance(features, StoredFeatures) else ()
        return [*([] if self.transfer is None else [self.transfer]), *encoders]

    def _on_labels(self, teacher: TeacherBatch, rows: np.ndarray) -> TeacherBatch:
        """The signals with a parser's arcs expressed in the student's labels."""
        if teacher.arcs is None:
            return teacher
        return replace(teacher, on_labels=self.part.form.arcs_on_labels(self.part.labels, teacher.arcs, rows))


def sentence_languages(table: pa.Table) -> np.ndarray:
    """Return the languages of the sentences [N]; equal names share one string.

    Args:
        table: sentences with a column `language`.
    """
    column = table["language"].combine_chunks().dictionary_encode()
    names = np.asarray(column.dictionary.to_pylist(), dtype=object)
    return names[column.indices.to_numpy(zero_copy_only=False)]


@lru_cache(maxsize=2)
def cached_corpus(store_uri: str, corpus_id: str) -> Corpus:
    """Return a stored corpus, mapped once per process: reused actors train many students on it.

    Args:
        store_uri: of the store.
        corpus_id: of the corpus.
    """
    return open_corpus(Storage(store_uri), corpus_id)


def run_labels(store_uri: str, run: Run) -> Labels:
    """Return the labels of a run's model.

    Args:
        store_uri: of the store.
        run: the run.
    """
    if run.labels_id:
        return read_labels(store_uri, run.labels_id)
    form = find_task(run.task).form
    if form.hides_pieces:
        return PieceLabels(open_vocabulary(Storage(store_uri), run.vocabulary_id).pieces.size)
    return form.predicted_tags(cached_corpus(store_uri, run.corpus_id).tag_set)


def encoded_part(store_uri: str, run: Run, *names: str) -> Part:
    """Return parts of the run's corpus, one after the other, encoded for its model.

    Args:
        store_uri: of the store.
        run: the run.
        names: of the parts ("train", "dev", …).
    """
    ids = (run.corpus_id, run.vocabulary_id, run.labels_id, run.task)
    return _cached_part(store_uri, *ids, encoder_ids(run), names)


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
    form = find_task(task).form
    table = pa.concat_tables([corpus.parts[name].select(form.columns) for name in names])
    if form.hides_pieces:
        masked_text = MaskedText(text, vocabulary.pieces.special, vocabulary.pieces.size)
        return Part(form, masked_text, HiddenPieces(masked_text), sentence_languages(table))
    labels: Labels = read_labels(store_uri, labels_id) if labels_id else corpus.tag_set
    features = FeatureReader(storage, encoders).find(table["tokens"])
    context = (
        ()
        if features is not None
        else tuple(encode_text(table, context_vocabulary) for context_vocabulary in vocabulary.context)
    )
    text = replace(text, features=features, context=context)
    return Part(form, text, form.targets(table, pos=corpus.pos, labels=labels), sentence_languages(table))


def training_data(store_uri: str, run: Run, needs: Sequence[Need], *, text: str) -> TrainingData:
    """Return the training data of one stage: its text with the stored signals.

    Args:
        store_uri: of the store.
        run: the run.
        needs: the stored signals that the stage reads.
        text: "labelled", "unlabelled" or "all".
    """
    reads_unlabelled = any(stage["text"] != "labelled" for stage in run.stages)
    part = encoded_part(
        store_uri, run, "train", *(["unlabelled"] if reads_unlabelled else [])
    ).with_decoder_input()
    labelled_count = cached_corpus(store_uri, run.corpus_id).parts["train"].num_rows
    rows = np.arange(len(part))
    rows = {"labelled": rows[:labelled_count], "unlabelled": rows[labelled_count:], "all": rows}[text]
    if not needs:
        return TrainingData(part, None, rows)
    return TrainingData(part, _open_transfer(store_uri, run, part.languages, needs), rows)


def _open_transfer(store_uri: str, run: Run, languages: np.ndarray, needs: Sequence[Need]) -> TransferSet:
    """Join the signals of all teachers; a teacher covers the sentences in its languages.

    Args:
        store_uri: of the store.
        run: the run.
        languages: language of each sentence of the training text [N].
        needs: the stored signals.
    """
    storage = Storage(store_uri)
    covered = []
    for source in run.sources:
        rows = np.flatnonzero(np.isin(languages, source.languages))
        text_rows = _rows_in_stored_text(storage, run, source.languages, source.text_id)
        # A run on labelled text alone has no rows for the unlabelled sentences, the last in `text_rows`.
        covered.append(TeacherRows(source, rows, None if text_rows is None else text_rows[: len(rows)]))
    return TransferSet.open(storage, covered, needs)


def _rows_in_stored_text(
    storage: Storage, run: Run, languages: tuple[str, ...], text_id: str
) -> np.ndarray | None:
    """Positions of the run's sentences in the larger text of the signals; None if the run's text is the same."""
    if not text_id:
        return None
    parts = cached_corpus(storage.uri, run.corpus_id).parts
    in_languages = pc.field("language").isin(list(languages))
    hashes = [
        sentence_hashes(pa.table(batch).filter(in_languages)["tokens"])
        for name in ("train", "unlabelled")
        for batch in parts[name].select(["tokens", "language"]).to_batches()
    ]
    rows = open_text(storage, text_id).rows(np.concatenate(hashes))
    if (rows < 0).any():
        address = storage.child("transfer", text_id).address
        raise StoreError(address, "the text lacks a sentence of the run's corpus", RERUN_HINT)
    return rows
