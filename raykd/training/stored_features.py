"""Reading what frozen encoders gave for sentences: found by their words, in whichever text it was computed."""

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
    """The features of one text, as a transfer set reads them."""

    folders: Mapping[str, str]


class EncoderRows:
    """What one encoder gave for some sentences: `rows` are theirs in all that it has read."""

    def __init__(self, features: TransferSet, rows: np.ndarray):
        self._features, self._rows = features, rows

    def bytes_of(self, rows: np.ndarray) -> int:
        """Bytes of what the encoder gave for the sentences at `rows`."""
        return self._features.bytes_of(self._rows[rows])

    def plan(self, rows: np.ndarray, *, seed: int, epoch: int, shuffle: bool = True) -> list[np.ndarray]:
        """The windows of an epoch over the sentences at `rows`, as those of a transfer set."""
        return self._features.plan(self._rows[rows], seed=seed, epoch=epoch, shuffle=shuffle)

    def expect(self, windows: Sequence[np.ndarray]) -> None:
        """The sentences of these windows are read next."""
        self._features.prefetch([self._rows[rows] for rows in windows])

    def gather(self, rows: np.ndarray) -> Tensor:
        """The features [B, T, D] of the sentences at `rows`, padded with zeros; float16."""
        found = self._features.gather(self._rows[rows]).features
        if found is None:
            raise ValueError("the transfer set of an encoder has no features")
        return found

    def close(self) -> None:
        """End the background threads and unmap all shards."""
        self._features.close()


class StoredFeatures:
    """The features of some sentences, of several encoders side by side, by row."""

    def __init__(self, encoders: Sequence[EncoderRows]):
        self.encoders = encoders

    def gather(self, rows: np.ndarray) -> Tensor:
        """The features [B, T, D] of the sentences at `rows`, padded with zeros; float16."""
        return torch.cat([encoder.gather(np.asarray(rows)) for encoder in self.encoders], -1)


def frozen_encoder_configs(run: Run) -> tuple[Part, ...]:
    """The frozen encoders and tables that the run's model reads."""
    return tuple(validate_plain(part_class(each), each) for each in run.model.get("contextual") or ())


def encoder_ids(run: Run) -> tuple[str, ...]:
    """The identities of what the run's model reads, in its order."""
    return tuple(config.id for config in frozen_encoder_configs(run))


class FeatureReader:
    """Finds what some encoders had given when it was made."""

    def __init__(self, storage: Storage, encoders: Sequence[str]):
        self._encoders = [
            _features_of(storage.uri, encoder_id, tuple(text_ids(storage, encoder_id)))
            for encoder_id in encoders
        ]

    def find(self, tokens: pa.ChunkedArray | Sequence[Sequence[str]]) -> StoredFeatures | None:
        """The stored features of these sentences; None where there is an encoder that has not read them all."""
        if not self._encoders:
            return None
        opened, hashes = [], sentence_hashes(tokens)
        for features, texts in self._encoders:
            rows = np.full(len(hashes), -1, np.int64)
            for first, text in texts:
                found = text.rows(hashes)
                rows = np.where((rows < 0) & (found >= 0), first + found, rows)
            if (rows < 0).any():
                return None
            opened.append(EncoderRows(features, rows))
        return StoredFeatures(opened)


@lru_cache(maxsize=4)
def _features_of(
    store_uri: str, encoder_id: str, names: tuple[str, ...]
) -> tuple[TransferSet, list[tuple[int, Text]]]:
    """All that an encoder gave for these texts, one after the other, and each text with its first row."""
    texts, covered, first = [], [], 0
    for name in names:
        text = _text(store_uri, name)
        signal = signal_id(FEATURES, teacher_id=encoder_id, text_id=name)
        covered.append(TeacherRows(_Source({FEATURES.name: signal}), first + np.arange(len(text))))
        texts.append((first, text))
        first += len(text)
    return TransferSet.open(Storage(store_uri), covered, [FEATURES]), texts


def stored_texts(storage: Storage, encoder_id: str) -> list[Text]:
    """The texts that an encoder has read."""
    return [_text(storage.uri, name) for name in text_ids(storage, encoder_id)]


def text_ids(storage: Storage, encoder_id: str) -> list[str]:
    """The ids of the texts that an encoder has read; one that was removed from the store since is not among them."""
    names = sorted(storage.child(ENCODERS, encoder_id).names())
    ids = [name.removesuffix(".json") for name in names if name.startswith("text-")]
    return [name for name in ids if storage.child("transfer", name).exists(TEXT)]


@lru_cache(maxsize=8)
def _text(store_uri: str, text_id: str) -> Text:
    return open_text(Storage(store_uri), text_id)
