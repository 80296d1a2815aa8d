"""The labels of many sentences, mapped from a corpus, and batches of them.

Shapes: B sentences of a batch, T labels of the longest of them: its words, or 1 where a sentence has one class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from raykd.forms.ragged import Ragged, RaggedBlocks, offsets_from_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from jaxtyping import Bool, Int64
    from torch import Tensor

    from raykd.structures import Distribution, LegalTransitions


@dataclass(frozen=True)
class Targets:
    """What B sentences are to be labelled with: tag numbers, 0 on padding, and which sentences are labelled at all."""

    tags_BT: Int64[Tensor, "batch time"]
    labelled_B: Bool[Tensor, " batch"]

    def to(self, device: torch.device | str) -> Targets:
        """The same targets on another device."""
        from raykd.structures.device import to_device

        return Targets(to_device(self.tags_BT, device), to_device(self.labelled_B, device))


class ModelOutput(Protocol):
    """What a model says of B sentences."""

    @property
    def distribution(self) -> Distribution:
        """Over their labellings."""
        ...

    @property
    def legal(self) -> LegalTransitions | None:
        """The labellings among which the best one is sought; None: all of them."""
        ...


class TargetColumn(Protocol):
    """The targets of N sentences."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> np.ndarray:
        """Targets of each sentence, int64 [N]; 0 where it is unlabelled."""
        ...

    @property
    def labelled(self) -> np.ndarray:
        """Which sentences are labelled, bool [N]."""
        ...

    def gather(self, rows: np.ndarray) -> Targets:
        """Those of the sentences at `rows`, in that order."""
        ...


@dataclass(frozen=True)
class LabelColumn:
    """Tag numbers of N sentences, one row each, and which are labelled, bool [N]; the others have an empty row."""

    tags: RaggedBlocks
    labelled: np.ndarray

    @classmethod
    def from_table(cls, table: pa.Table) -> LabelColumn:
        """The `tags` column of a corpus part; its chunks are not copied."""
        column = table["tags"]
        labelled = [chunk.is_valid().to_numpy(zero_copy_only=False) for chunk in column.chunks]
        blocks = tuple(ragged_from_chunk(chunk) for chunk in column.chunks)
        return cls(RaggedBlocks(blocks), np.concatenate([np.zeros(0, bool), *labelled]))

    def __len__(self) -> int:
        return len(self.labelled)

    @property
    def lengths(self) -> np.ndarray:
        """Labels of each sentence, int64 [N]; 0 where it is unlabelled."""
        return self.tags.lengths

    def gather(self, rows: np.ndarray) -> Targets:
        """The targets of the sentences at `rows`, in that order; T is at least 1."""
        tags_BT, _ = self.tags.pad(rows)
        if not tags_BT.shape[1]:
            tags_BT = np.zeros((len(tags_BT), 1), dtype=np.int64)
        import torch

        return Targets(torch.from_numpy(tags_BT), torch.from_numpy(self.labelled[rows]))

    def lists(self, names: Sequence[str]) -> list[list[str]]:
        """The labels of every sentence as strings; `names` are in the order of their numbers."""
        known = np.asarray(names, dtype=object)
        return [
            list(part)
            for block in self.tags.blocks
            if len(block)
            for part in np.split(known[block.values], block.offsets[1:-1])
        ]


def ragged_from_chunk(chunk: pa.ListArray) -> Ragged:
    """The rows of a chunk of lists, not copied; a null is an empty row."""
    lengths = chunk.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return Ragged(chunk.flatten().to_numpy(zero_copy_only=False), offsets_from_lengths(lengths))


def best_labels(output: ModelOutput) -> list[np.ndarray]:
    """The best labelling of every sentence of a batch, among the legal ones where the output says which these are, by
    the numbers of its labels.
    """
    from raykd.structures import viterbi

    paths_BT = viterbi(output.distribution, output.legal)[0].cpu().numpy()
    lengths_B = output.distribution.lengths_B.tolist()
    return [path[:length] for path, length in zip(paths_BT, lengths_B, strict=True)]
