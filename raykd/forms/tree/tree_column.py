"""The trees of many sentences, memory-mapped from a treebank, and batches of them.

Shapes: N sentences, B of a batch, T words of the longest of them, H = T + 1 heads, Y labels, R relations.
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
"""Number for an unknown part of speech, and for padding."""


class GoldTree(NamedTuple):
    """A gold tree with the words and parts of speech of the sentence."""

    heads_T: np.ndarray
    """0 is the root, h the word h − 1."""
    relations_T: np.ndarray
    """Numbers in the corpus' tag set, or names."""
    words: Sequence[str]
    pos: Sequence[str]
    """Empty where they are not known."""


@dataclass(frozen=True)
class TreeColumn:
    """The trees of N sentences.

    A sentence without a tree, or without parts of speech, has empty rows there. `labels` define the target of a word
    as one number. For a student's `TreeLabels` it is the number of its label. For the relations of a treebank it is
    head · R + relation, as a parser predicts it.
    """

    tokens: pa.ChunkedArray
    words: np.ndarray
    """Words of each sentence, int64 [N]."""
    heads: RaggedBlocks
    relations: RaggedBlocks
    pos: RaggedBlocks
    labelled: np.ndarray
    """Sentences with a tree, bool [N]."""
    names: tuple[str, ...]
    """Parts of speech, in the order of their numbers."""
    labels: Labels

    @classmethod
    def from_table(cls, table: pa.Table, names: Sequence[str], labels: Labels) -> TreeColumn:
        """Return the trees of a treebank's part; chunks are not copied.

        Args:
            table: Part with the columns `tokens`, `heads`, `tags` and `pos`.
            names: Parts of speech of the corpus.
            labels: Labels that the model predicts.
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
        """Number of words with a head per sentence, int64 [N]; 0 for an unlabelled one."""
        return self.heads.lengths

    def gather(self, rows: np.ndarray) -> Targets:
        """Return the targets of the sentences at `rows`, in that order.

        T is the length of the longest sentence, with or without a tree. An arc without a label among a student's gets
        label 0; this cannot happen in the sentences from which the labels were made.
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
        """Return the numbers of the codes of possible heads, int64 [B, T, H] (`TreeLabels.codes`).

        Raises:
            TypeError: The labels are not a student's.
        """
        return self.student_labels.codes(self._padded(self.pos, rows, fill=UNKNOWN), self.words[rows])

    def label_heads(self, rows: np.ndarray) -> np.ndarray:
        """Return the heads meant by labels, for all words, int64 [B, T, Y] (`TreeLabels.heads`).

        Raises:
            TypeError: The labels are not a student's.
        """
        return self.student_labels.heads(self._padded(self.pos, rows, fill=UNKNOWN), self.words[rows])

    @property
    def student_labels(self) -> TreeLabels:
        """The labels of a student.

        Raises:
            TypeError: The labels are not a student's.
        """
        if not isinstance(self.labels, TreeLabels):
            raise TypeError("relations alone mean no heads; a student's labels do")
        return self.labels

    def _padded(self, blocks: RaggedBlocks, rows: np.ndarray, fill: int = 0) -> np.ndarray:
        """Rows padded to the longest sentence of the batch, at least 1."""
        padded_BT, _ = blocks.pad(rows, fill=fill)
        missing = int(self.words[rows].max(initial=1)) - padded_BT.shape[1]
        return np.pad(padded_BT, ((0, 0), (0, missing)), constant_values=fill)

    def trees(self) -> Iterator[GoldTree]:
        """Return the trees of all sentences; an empty one for an unlabelled sentence."""
        names = np.asarray([*self.names, ""], object)
        pos = (names[pos_T].tolist() for pos_T in _rows(self.pos))
        texts = (words for chunk in self.tokens.chunks for words in chunk.to_pylist())
        parts = zip(_rows(self.heads), _rows(self.relations), texts, pos, strict=True)
        return (GoldTree(*columns) for columns in parts)


def _rows(blocks: RaggedBlocks) -> Iterator[np.ndarray]:
    for block in blocks.blocks:
        if len(block):
            yield from np.split(block.values, block.offsets[1:-1])
