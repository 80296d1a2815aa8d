"""The steps that write the trees of many sentences, batches of them, and a text that comes with them.

Shapes: N sentences, B of a batch, S steps of the longest tree of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch

from raykd.corpora.ragged import Ragged, RaggedBlocks, offsets_of
from raykd.corpora.semantic_trees import steps_of, steps_of_slots, tree_of_slots
from raykd.corpora.targets import LabelColumn, Targets

if TYPE_CHECKING:
    from raykd.corpora.encoding import EncodedText, TokenBatch
    from raykd.corpora.tags import TagSet


@dataclass(frozen=True)
class StepColumn:
    """The steps of N sentences, by their numbers in `labels`; a sentence without a tree has none."""

    steps: RaggedBlocks
    labelled: np.ndarray
    """Which sentences have a tree, bool [N]."""
    tokens: pa.ChunkedArray
    labels: TagSet

    @classmethod
    def of(cls, table: pa.Table, tag_set: TagSet) -> StepColumn:
        """The trees of a corpus part whose tags are `tag_set`: steps as they are, or intents and slots."""
        tags = LabelColumn.of(table)
        if tag_set.scheme == "parse":
            return cls(tags.tags, tags.labelled, table["tokens"], tag_set)
        labels = steps_of_slots(tag_set)
        rows = [
            labels.encode(steps_of(tree_of_slots(own))) if own else np.zeros(0, np.int16)
            for own in tags.lists(tag_set.tags)
        ]
        values = np.concatenate([np.zeros(0, np.int16), *rows])
        steps = RaggedBlocks((Ragged(values, offsets_of(np.array([len(own) for own in rows], np.int64))),))
        return cls(steps, tags.labelled, table["tokens"], labels)

    def __len__(self) -> int:
        return len(self.labelled)

    @property
    def lengths(self) -> np.ndarray:
        """Steps of each sentence, int64 [N]; 0 where it has no tree."""
        return self.steps.lengths

    def gather(self, rows: np.ndarray) -> Targets:
        """The steps of the sentences at `rows`, in that order."""
        steps_BS, _ = self.steps.padded(rows)
        return Targets(torch.from_numpy(steps_BS), torch.from_numpy(self.labelled[rows]))

    def lists(self) -> Iterator[list[str]]:
        """The steps of every sentence."""
        for block in self.steps.blocks:
            if len(block):
                yield from (self.labels.decode(own) for own in np.split(block.values, block.offsets[1:-1]))

    def texts(self) -> Iterator[list[str]]:
        """The words of every sentence."""
        return (words for chunk in self.tokens.chunks for words in chunk.to_pylist())


@dataclass(frozen=True)
class GuidedText:
    """An encoded text whose batches have the steps that a decoder is given while it learns (teacher forcing). What is
    learnt of a sentence is its steps, so `lengths` are theirs."""

    text: EncodedText
    steps: StepColumn

    def __len__(self) -> int:
        return len(self.text)

    @property
    def features(self) -> None:
        """It reads no frozen encoders."""

    @property
    def piece_lengths(self) -> np.ndarray:
        """Pieces of each sentence, those around it included, int64 [N]."""
        return self.text.piece_lengths

    @property
    def lengths(self) -> np.ndarray:
        """Steps of each sentence, int64 [N]."""
        return self.steps.lengths

    def gather(self, indices: np.ndarray) -> TokenBatch:
        """The sentences at `indices`, with their steps."""
        steps_BS, lengths_B = self.steps.steps.padded(np.asarray(indices, np.int64))
        return replace(
            self.text.gather(indices),
            steps_BS=torch.from_numpy(steps_BS),
            step_lengths_B=torch.from_numpy(lengths_B),
        )
