"""The trees of many sentences, mapped from a treebank, and batches of them.

Shapes: N sentences, B of a batch, T words of the longest of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from raykd.forms.ragged import RaggedBlocks
from raykd.forms.targets import Targets, ragged_from_chunk
from raykd.forms.tree.codes import TreeLabels

if TYPE_CHECKING:
    from raykd.forms.labels import Labels

UNKNOWN = -1
"""In the place of a part of speech: it is not known, or there is no word."""


class GoldTree(NamedTuple):
    """A gold tree with the words and parts of speech of its sentence."""

    heads_T: np.ndarray
    """0 the root, h the word h − 1."""
    relations_T: np.ndarray
    """By their numbers in the corpus' tag set, or names."""
    words: Sequence[str]
    pos: Sequence[str]
    """Empty where they are not known."""


@dataclass(frozen=True)
class TreeColumn:
    """The trees of N sentences; a sentence without a tree has empty rows, and so has one without parts of speech.

    `labels` say what a word's arc is as one number, the target of a model: its label among a student's `TreeLabels`;
    where these are the relations of a treebank, head · R + relation, which is what a parser predicts.
    """

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
    labels: Labels

    @classmethod
    def from_table(cls, table: pa.Table, names: Sequence[str], labels: Labels) -> TreeColumn:
        """The trees of a treebank's part, from its columns `tokens`, `heads`, `tags` and `pos`; chunks are not copied.

        `names`: the corpus' parts of speech.
        """
        blocks = {
            name: RaggedBlocks(tuple(map(ragged_from_chunk, table[name].chunks)))
            for name in ("heads", "tags", "pos")
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
            labels,
        )

    def __len__(self) -> int:
        return len(self.labelled)

    @property
    def lengths(self) -> np.ndarray:
        """Words with a head of each sentence, int64 [N]; 0 where it is unlabelled."""
        return self.heads.lengths

    def gather(self, rows: np.ndarray) -> Targets:
        """The targets of the sentences at `rows`, in that order; T is the words of the longest, whether it has a tree
        or not. A word whose arc none of a student's labels means is label 0: there is none in what they were made of.
        """
        heads_BT, relations_BT = self._padded(self.heads, rows), self._padded(self.relations, rows)
        if isinstance(self.labels, TreeLabels):
            codes_BT = np.take_along_axis(self.codes(rows), heads_BT[:, :, None], 2)[:, :, 0]
            tags_BT = self.labels.label_numbers(codes_BT, relations_BT).clip(0)
        else:
            tags_BT = heads_BT * len(self.labels) + relations_BT
        import torch

        return Targets(torch.from_numpy(tags_BT), torch.from_numpy(self.labelled[rows]))

    def codes(self, rows: np.ndarray) -> np.ndarray:
        """Of the sentences at `rows`, the code of every head of each word, int64 [B, T, H] (`TreeLabels.codes`).

        Raises TypeError where the labels are no student's.
        """
        return self.student_labels.codes(self._padded(self.pos, rows, fill=UNKNOWN), self.words[rows])

    def label_heads(self, rows: np.ndarray) -> np.ndarray:
        """Of the sentences at `rows`, the head that each label means for each word, int64 [B, T, Y]
        (`TreeLabels.heads`). Raises TypeError where the labels are no student's.
        """
        return self.student_labels.heads(self._padded(self.pos, rows, fill=UNKNOWN), self.words[rows])

    @property
    def student_labels(self) -> TreeLabels:
        """The labels; TypeError where they are no student's."""
        if not isinstance(self.labels, TreeLabels):
            raise TypeError("relations alone mean no heads; a student's labels do")
        return self.labels

    def _padded(self, blocks: RaggedBlocks, rows: np.ndarray, fill: int = 0) -> np.ndarray:
        """As wide as the longest sentence, at least 1."""
        padded_BT, _ = blocks.pad(rows, fill=fill)
        missing = int(self.words[rows].max(initial=1)) - padded_BT.shape[1]
        return np.pad(padded_BT, ((0, 0), (0, missing)), constant_values=fill)

    def trees(self) -> Iterator[GoldTree]:
        """The tree of every sentence; an empty one where it is unlabelled."""
        names = np.asarray([*self.names, ""], object)
        pos = (names[pos_T].tolist() for pos_T in _rows(self.pos))
        texts = (words for chunk in self.tokens.chunks for words in chunk.to_pylist())
        parts = zip(_rows(self.heads), _rows(self.relations), texts, pos, strict=True)
        return (GoldTree(*own) for own in parts)


def _rows(blocks: RaggedBlocks) -> Iterator[np.ndarray]:
    for block in blocks.blocks:
        if len(block):
            yield from np.split(block.values, block.offsets[1:-1])
