"""The labels of many sentences, memory-mapped from a corpus, and batches of them.

Shapes: N sentences, B of a batch, T labels of the longest of them: its words, or 1 for sentences with one class.
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
    """The gold labels of B sentences.

    Attributes:
        tags_BT: Numbers of the tags, 0 on padding.
        labelled_B: True for sentences with labels.
    """

    tags_BT: Int64[Tensor, "batch time"]
    labelled_B: Bool[Tensor, " batch"]

    def to(self, device: torch.device | str) -> Targets:
        """Return the targets on a device."""
        from raykd.structures.device import to_device

        return Targets(to_device(self.tags_BT, device), to_device(self.labelled_B, device))


class ModelOutput(Protocol):
    """A model's output for B sentences."""

    @property
    def distribution(self) -> Distribution:
        """Distribution over the labellings."""
        ...

    @property
    def legal(self) -> LegalTransitions | None:
        """Legal labellings for decoding; None: all of them."""
        ...


class TargetColumn(Protocol):
    """The targets of N sentences."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> np.ndarray:
        """Number of targets per sentence, int64 [N]; 0 for an unlabelled one."""
        ...

    @property
    def labelled(self) -> np.ndarray:
        """Sentences with labels, bool [N]."""
        ...

    def gather(self, rows: np.ndarray) -> Targets:
        """Return the targets of the sentences at `rows`, in that order."""
        ...


@dataclass(frozen=True)
class LabelColumn:
    """Tag numbers of N sentences, one row each.

    Attributes:
        tags: Numbers of the tags; an unlabelled sentence has an empty row.
        labelled: Sentences with labels, bool [N].
    """

    tags: RaggedBlocks
    labelled: np.ndarray

    @classmethod
    def from_table(cls, table: pa.Table) -> LabelColumn:
        """Return the `tags` column of a corpus part; its chunks are not copied."""
        column = table["tags"]
        labelled = [chunk.is_valid().to_numpy(zero_copy_only=False) for chunk in column.chunks]
        blocks = tuple(ragged_from_chunk(chunk) for chunk in column.chunks)
        return cls(RaggedBlocks(blocks), np.concatenate([np.zeros(0, bool), *labelled]))

    def __len__(self) -> int:
        return len(self.labelled)

    @property
    def lengths(self) -> np.ndarray:
        """Number of labels per sentence, int64 [N]; 0 for an unlabelled one."""
        return self.tags.lengths

    def gather(self, rows: np.ndarray) -> Targets:
        """Return the targets of the sentences at `rows`, in that order; T is at least 1."""
        tags_BT, _ = self.tags.pad(rows)
        if not tags_BT.shape[1]:
            tags_BT = np.zeros((len(tags_BT), 1), dtype=np.int64)
        import torch

        return Targets(torch.from_numpy(tags_BT), torch.from_numpy(self.labelled[rows]))

    def lists(self, names: Sequence[str]) -> list[list[str]]:
        """Return the labels of all sentences as strings; an unlabelled sentence has an empty list.

        Args:
            names: Labels in the order of their numbers.
        """
        names_by_number = np.asarray(names, dtype=object)
        return [
            list(row)
            for block in self.tags.blocks
            if len(block)
            for row in np.split(names_by_number[block.values], block.offsets[1:-1])
        ]


def ragged_from_chunk(chunk: pa.ListArray) -> Ragged:
    """Return the rows of a chunk of lists, not copied; a null is an empty row."""
    lengths = chunk.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return Ragged(chunk.flatten().to_numpy(zero_copy_only=False), offsets_from_lengths(lengths))


def best_labels(output: ModelOutput) -> list[np.ndarray]:
    """Return the best labellings of a batch, as numbers of labels.

    Args:
        output: Output of a model; with `legal`, only legal labellings are considered.

    Returns:
        For each sentence, numbers of labels int64 [its length].
    """
    from raykd.structures import viterbi

    paths_BT = viterbi(output.distribution, output.legal)[0].cpu().numpy()
    lengths_B = output.distribution.lengths_B.tolist()
    return [path[:length] for path, length in zip(paths_BT, lengths_B, strict=True)]
