"""The trees of many sentences, mapped from a treebank, and batches of them.

Shapes: N sentences, B of a batch, T words of the longest of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch

from raykd.corpora.ragged import RaggedBlocks
from raykd.corpora.targets import ragged_of

if TYPE_CHECKING:
    from jaxtyping import Bool, Int64
    from torch import Tensor

UNKNOWN = -1
"""In the place of a part of speech: it is not known, or there is no word."""
Tree = tuple[np.ndarray, np.ndarray]
"""Heads (0 the root, h the word h − 1) and relations of a sentence, by their numbers in the tag set, each [T]."""


@dataclass(frozen=True)
class TreeTargets:
    """The trees of B sentences: 0 on padding; and which sentences have one at all."""

    heads_BT: Int64[Tensor, "batch time"]
    """0 the root, h the word h − 1."""
    relations_BT: Int64[Tensor, "batch time"]
    pos_BT: Int64[Tensor, "batch time"]
    """Parts of speech, also of sentences without a tree; `UNKNOWN` where there is none, and on padding."""
    labelled_B: Bool[Tensor, " batch"]

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> TreeTargets:
        """The same targets on another device."""
        own = (self.heads_BT, self.relations_BT, self.pos_BT, self.labelled_B)
        return TreeTargets(*(tensor.to(device, non_blocking=non_blocking) for tensor in own))


@dataclass(frozen=True)
class TreeColumn:
    """The trees of N sentences; a sentence without a tree has empty rows, and so has one without parts of speech."""

    tokens: pa.ChunkedArray
    words: np.ndarray
    """Words of each sentence, int64 [N]."""
    heads: RaggedBlocks
    relations: RaggedBlocks
    pos: RaggedBlocks
    labelled: np.ndarray
    """Which sentences have a tree, bool [N]."""
    names: tuple[str, ...]
    """The parts of speech, in the order of their numbers."""

    @classmethod
    def of(cls, table: pa.Table, names: Sequence[str]) -> TreeColumn:
        """The trees of a treebank's part, from its columns `tokens`, `heads`, `tags` and `pos`; chunks are not copied.

        `names`: the corpus' parts of speech.
        """
        blocks = {
            name: RaggedBlocks(tuple(map(ragged_of, table[name].chunks))) for name in ("heads", "tags", "pos")
        }
        words = [chunk.value_lengths().to_numpy() for chunk in table["tokens"].chunks]
        labelled = [chunk.is_valid().to_numpy(zero_copy_only=False) for chunk in table["heads"].chunks]
        return cls(
            table["tokens"],
            np.concatenate([np.zeros(0, np.int64), *words]).astype(np.int64),
            blocks["heads"],
            blocks["tags"],
            blocks["pos"],
            np.concatenate([np.zeros(0, bool), *labelled]),
            tuple(names),
        )

    def __len__(self) -> int:
        return len(self.labelled)

    @property
    def lengths(self) -> np.ndarray:
        """Words with a head of each sentence, int64 [N]; 0 where it is unlabelled."""
        return self.heads.lengths

    def gather(self, rows: np.ndarray) -> TreeTargets:
        """The targets of the sentences at `rows`, in that order; T is the words of the longest, whether it has a tree
        or not."""
        time = int(self.words[rows].max(initial=1))
        return TreeTargets(
            _padded(self.heads, rows, time),
            _padded(self.relations, rows, time),
            _padded(self.pos, rows, time, fill=UNKNOWN),
            torch.from_numpy(self.labelled[rows]),
        )

    def trees(self) -> Iterator[Tree]:
        """The tree of every sentence; an empty one where it is unlabelled."""
        return zip(_rows(self.heads), _rows(self.relations), strict=True)

    def parts_of_speech(self) -> Iterator[np.ndarray]:
        """The parts of speech of every sentence, by their numbers; empty where they are not known."""
        return _rows(self.pos)

    def texts(self) -> Iterator[list[str]]:
        """The words of every sentence."""
        return (words for chunk in self.tokens.chunks for words in chunk.to_pylist())


def _padded(blocks: RaggedBlocks, rows: np.ndarray, time: int, *, fill: int = 0) -> Tensor:
    padded_BT, _ = blocks.padded(rows, fill=fill)
    missing = time - padded_BT.shape[1]
    return torch.from_numpy(np.pad(padded_BT, ((0, 0), (0, missing)), constant_values=fill))


def _rows(blocks: RaggedBlocks) -> Iterator[np.ndarray]:
    for block in blocks.blocks:
        if len(block):
            yield from np.split(block.values, block.offsets[1:-1])
