"""Reading what frozen encoders gave for sentences: found by their words, in whichever text it was computed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from pydantic import TypeAdapter
from torch import Tensor

from raykd.corpora.hashes import sentence_hashes
from raykd.layers.contextual import FrozenConfig
from raykd.runs.run import Run
from raykd.signals import Need
from raykd.storage import Storage
from raykd.transfer import Covered, Text, TransferSet, open_text, signal_id

FEATURES = Need("features")
FOLDER = "encoders"
CONFIG = "encoder.json"


@dataclass(frozen=True)
class _Source:
    """The features of one text, as a transfer set reads them."""

    folders: Mapping[str, str]


class StoredFeatures:
    """The features of some sentences, of several encoders side by side, by row."""

    def __init__(self, encoders: Sequence[TransferSet]):
        self.encoders = encoders

    def gather(self, rows: np.ndarray) -> Tensor:
        """The features [B, T, D] of the sentences at `rows`, padded with zeros; float16."""
        found = [encoder.gather(rows).features for encoder in self.encoders]
        return torch.cat([each for each in found if each is not None], -1)


def frozen_configs(run: Run) -> tuple[Any, ...]:
    """The frozen encoders and tables that the run's model reads."""
    plain = run.model.get("contextual") or ()
    return tuple(_adapter().validate_json(json.dumps(each)) for each in plain)


def encoder_ids(run: Run) -> tuple[str, ...]:
    """The identities of what the run's model reads, in its order."""
    return tuple(config.id for config in frozen_configs(run))


def open_features(
    storage: Storage, encoders: Sequence[str], tokens: pa.ChunkedArray | Sequence[Sequence[str]]
) -> StoredFeatures | None:
    """The stored features of these sentences; None where there is an encoder that has not read them all."""
    if not encoders:
        return None
    opened, hashes = [], sentence_hashes(tokens)
    for encoder_id in encoders:
        covered = list(_covering(storage, encoder_id, hashes))
        if sum(len(each.rows) for each in covered) < len(tokens):
            return None
        opened.append(TransferSet.open(storage, covered, [FEATURES]))
    return StoredFeatures(opened)


def stored_texts(storage: Storage, encoder_id: str) -> list[Text]:
    """The texts that an encoder has read; one that was removed from the store since is not among them."""
    names = text_ids(storage, encoder_id)
    return [_text(storage.uri, name) for name in names if storage.child("transfer", name).names()]


def text_ids(storage: Storage, encoder_id: str) -> list[str]:
    """The ids of the texts that an encoder has read."""
    names = sorted(storage.child(FOLDER, encoder_id).names())
    return [name.removesuffix(".json") for name in names if name.startswith("text-")]


def _covering(storage: Storage, encoder_id: str, hashes: np.ndarray) -> Iterator[Covered]:
    """Which of the sentences are in which text that the encoder has read; each in the first that has it."""
    left = np.ones(len(hashes), bool)
    for text in stored_texts(storage, encoder_id):
        found = text.rows(hashes)
        rows = np.flatnonzero(left & (found >= 0))
        if len(rows):
            left[rows] = False
            signal = signal_id(FEATURES, teacher_id=encoder_id, text_id=text.id)
            yield Covered(_Source({FEATURES.name: signal}), rows, found[rows])


@lru_cache(maxsize=8)
def _text(store_uri: str, text_id: str) -> Text:
    return open_text(Storage(store_uri), text_id)


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter:
    return TypeAdapter(FrozenConfig)
