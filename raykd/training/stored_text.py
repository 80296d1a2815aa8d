"""Encoded text in the store: written once, block by block, and mapped by all processes that train or evaluate on it.

    <store>/encoded/<id>/block-<number>.arrow …, encoded.json         the manifest last

Memory depends on the block: mapped pages belong to the system, and the actors of a node share them.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pyarrow as pa

from raykd.corpora.encoded_text import EncodedText, encode_text
from raykd.errors import StoreError
from raykd.forms.ragged import Ragged
from raykd.identity import PlainObject, identity
from raykd.recipes.stored_vocabulary import StoredVocabulary
from raykd.storage.cache import node_lock
from raykd.storage.layout import ENCODED, ENCODED_MANIFEST
from raykd.storage.sealed_json import DOCTOR
from raykd.storage.store import Storage
from raykd.transfer.arrow_file import ipc_bytes, open_arrow

FORMAT = 1
BLOCK_SENTENCES = 50_000
"""Some 20 MiB of numbers."""


def find_or_encode(
    storage: Storage, corpus_id: str, part: str, table: pa.Table, vocabulary: StoredVocabulary
) -> EncodedText:
    """Return the sentences of a corpus part in pieces, mapped; encode and store them if they are not stored yet.

    Args:
        storage: of the encoded text.
        corpus_id: of the corpus.
        part: name of the part.
        table: the sentences of the part.
        vocabulary: encodes the sentences.

    Raises:
        StoreError: a block is damaged.
    """
    name = encoded_text_id(corpus_id, part, vocabulary.id)
    folder = storage.child(ENCODED, name)
    text = _find(folder)
    if text is None:
        # The actors of a node start together, and one of them is enough; two would write the same bytes.
        with node_lock(identity("lock", {"store": storage.uri, "name": name})):
            if not folder.exists(ENCODED_MANIFEST):
                _write(folder, table, vocabulary)
        text = open_encoded_text(folder)
    return text


def encoded_text_id(corpus_id: str, part: str, vocabulary_id: str) -> str:
    """Return the identity of a corpus part encoded by a vocabulary.

    Args:
        corpus_id: of the corpus.
        part: name of the part.
        vocabulary_id: of the vocabulary.
    """
    settings = {"format": FORMAT, "corpus": corpus_id, "part": part, "vocabulary": vocabulary_id}
    return identity("encoded", settings)


def open_encoded_text(folder: Storage) -> EncodedText:
    """Map text written by `find_or_encode`.

    Args:
        folder: of the encoded text.

    Raises:
        StoreError: a block is missing or damaged.
    """
    return _open_blocks(folder, folder.read_json(ENCODED_MANIFEST))


def _find(folder: Storage) -> EncodedText | None:
    manifest = folder.find_json(ENCODED_MANIFEST)
    return None if manifest is None else _open_blocks(folder, manifest)


def _open_blocks(folder: Storage, manifest: PlainObject) -> EncodedText:
    texts = [_open_block(folder, block, manifest["padding"]) for block in manifest["blocks"]]
    return EncodedText.concatenate(texts, padding=manifest["padding"])


def _write(folder: Storage, table: pa.Table, vocabulary: StoredVocabulary) -> None:
    blocks = []
    for number, first in enumerate(range(0, table.num_rows, BLOCK_SENTENCES)):
        rows = table.slice(first, BLOCK_SENTENCES)
        text = encode_text(rows, vocabulary.pieces, vocabulary.characters)
        name = f"block-{number:05d}.arrow"
        data = ipc_bytes(_batch(_arrays(text)))
        folder.write(name, data)
        blocks.append({"name": name, "sha256": sha256(data).hexdigest()})
    padding = vocabulary.pieces.special.padding
    folder.write_json(ENCODED_MANIFEST, {"padding": padding, "blocks": blocks})


def _arrays(text: EncodedText) -> dict[str, np.ndarray]:
    rows = {"pieces": text.pieces, "first": text.first, "words": text.words, "characters": text.characters}
    return {
        f"{name}.{field}": getattr(ragged, field)
        for name, ragged in rows.items()
        if ragged is not None
        for field in ("values", "offsets")
    }


def _batch(arrays: dict[str, np.ndarray]) -> pa.RecordBatch:
    """A record batch of one row: each column is a list of numbers."""
    columns = {
        name: pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), pa.array(values))
        for name, values in arrays.items()
    }
    return pa.record_batch(columns)


def _open_block(folder: Storage, block: dict[str, str], padding: int) -> EncodedText:
    try:
        batch = open_arrow(folder, block["name"], sha256=block["sha256"])
    except (OSError, ValueError) as error:
        raise StoreError(f"{folder.address}/{block['name']}", f"is damaged: {error}", DOCTOR) from error
    numbers = {name: batch[name].values.to_numpy() for name in batch.schema.names}
    rows = {
        name: Ragged(numbers[f"{name}.values"], numbers[f"{name}.offsets"])
        if f"{name}.values" in numbers
        else None
        for name in ("pieces", "first", "words", "characters")
    }
    return EncodedText(**rows, padding=padding)  # type: ignore[arg-type]
