"""Reading stored features of frozen encoders: a sentence is found by its words, in any text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from raykd.corpora.hashes import sentence_hashes
from raykd.layers.contextual import Part, part_class
from raykd.recipes.run import Run, validate_plain
from raykd.signals import Need
from raykd.storage.layout import ENCODERS, TEXT
from raykd.storage.store import Storage
from raykd.transfer import TeacherRows, Text, TransferSet, open_text, signal_id

FEATURES = Need("features")


@dataclass(frozen=True)
class _Source:
    """The features of one text, in the form that a transfer set reads."""

    stored_ids: Mapping[str, str]


class EncoderRows:
    """The features of some sentences by one encoder; `rows` are their positions in all texts of the encoder."""

    def __init__(self, features: TransferSet, rows: np.ndarray):
        self._features, self._rows = features, rows

    def bytes_of(self, rows: np.ndarray) -> int:
        """Return the bytes of the features of the sentences at `rows`."""
        return self._features.bytes_of(self._rows[rows])

    def plan(self, rows: np.ndarray, *, seed: int, epoch: int, shuffle: bool = True) -> list[np.ndarray]:
        """Return the windows of an epoch over the sentences at `rows`, as `TransferSet.plan` does.

        Args:
            rows: of the sentences.
            seed: decides the order, with the epoch.
            epoch: counted over all stages.
            shuffle: false for the order of the rows.
        """
        return self._features.plan(self._rows[rows], seed=seed, epoch=epoch, shuffle=shuffle)

    def prefetch(self, windows: Sequence[np.ndarray]) -> None:
        """Prefetch the sentences of the next windows."""
        self._features.prefetch([self._rows[rows] for rows in windows])

    def gather(self, rows: np.ndarray) -> Tensor:
        """Return the features [B, T, D] of the sentences at `rows`, float16, padded with zeros."""
        features = self._features.gather(self._rows[rows]).features
        if features is None:
            raise ValueError("the transfer set of an encoder has no features")
        return features

    def close(self) -> None:
        """End the background threads and unmap all shards."""
        self._features.close()


class StoredFeatures:
    """The features of some sentences by several encoders, side by side."""

    def __init__(self, encoders: Sequence[EncoderRows]):
        self.encoders = encoders

    def gather(self, rows: np.ndarray) -> Tensor:
        """Return the features [B, T, D] of the sentences at `rows`, float16, padded with zeros.

        The features of the encoders stand side by side: D is the sum of their sizes.
        """
        return torch.cat([encoder.gather(np.asarray(rows)) for encoder in self.encoders], -1)


def frozen_encoder_configs(run: Run) -> tuple[Part, ...]:
    """Return the frozen encoders and word vectors of a run's model.

    Args:
        run: the run.
    """
    return tuple(validate_plain(part_class(config), config) for config in run.model.get("contextual") or ())


def encoder_ids(run: Run) -> tuple[str, ...]:
    """Return the identities of the frozen encoders of a run's model, in the model's order.

    Args:
        run: the run.
    """
    return tuple(config.id for config in frozen_encoder_configs(run))


class FeatureReader:
    """Finds the stored features of some encoders; features stored after its creation are not seen."""

    def __init__(self, storage: Storage, encoders: Sequence[str]):
        self._encoders = [
            _features_of(storage.uri, encoder_id, tuple(text_ids(storage, encoder_id)))
            for encoder_id in encoders
        ]

    def find(self, tokens: pa.ChunkedArray | Sequence[Sequence[str]]) -> StoredFeatures | None:
        """Return the stored features of sentences; None if an encoder has not read all of them.

        Args:
            tokens: the words of each sentence.
        """
        if not self._encoders:
            return None
        opened, hashes = [], sentence_hashes(tokens)
        for features, texts in self._encoders:
            rows = np.full(len(hashes), -1, np.int64)
            for first, text in texts:
                text_rows = text.rows(hashes)
                rows = np.where((rows < 0) & (text_rows >= 0), first + text_rows, rows)
            if (rows < 0).any():
                return None
            opened.append(EncoderRows(features, rows))
        return StoredFeatures(opened)


@lru_cache(maxsize=4)
def _features_of(
    store_uri: str, encoder_id: str, names: tuple[str, ...]
) -> tuple[TransferSet, list[tuple[int, Text]]]:
    """The features of an encoder for several texts, one after the other, and each text with its first row."""
    texts, covered, first = [], [], 0
    for name in names:
        text = _text(store_uri, name)
        signal = signal_id(FEATURES, teacher_id=encoder_id, text_id=name)
        covered.append(TeacherRows(_Source({FEATURES.name: signal}), first + np.arange(len(text))))
        texts.append((first, text))
        first += len(text)
    return TransferSet.open(Storage(store_uri), covered, [FEATURES]), texts


def stored_texts(storage: Storage, encoder_id: str) -> list[Text]:
    """Return the texts with stored features of an encoder.

    Args:
        storage: of the features.
        encoder_id: of the encoder.
    """
    return [_text(storage.uri, name) for name in text_ids(storage, encoder_id)]


def text_ids(storage: Storage, encoder_id: str) -> list[str]:
    """Return the ids of the texts with stored features of an encoder, without those removed from the store since.

    Args:
        storage: of the features.
        encoder_id: of the encoder.
    """
    names = sorted(storage.child(ENCODERS, encoder_id).names())
    ids = [name.removesuffix(".json") for name in names if name.startswith("text-")]
    return [name for name in ids if storage.child("transfer", name).exists(TEXT)]


@lru_cache(maxsize=8)
def _text(store_uri: str, text_id: str) -> Text:
    return open_text(Storage(store_uri), text_id)
