"""Common base of chains, spans and arcs: a batch of sentences of different lengths, padded to the longest.

Shapes: B batch, T time (words), X further dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from raykd.structures.device import all_true

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


class PaddedBatch:
    """A batch of padded sentences. Its sizes are those of one tensor [B, T, …] of the subclass: scores or states."""

    lengths_B: Tensor
    """Words of each sentence."""
    rows_field: ClassVar[str]
    """Name of the field with the tensor [B, T, …]."""

    @property
    def rows_BTX(self) -> Tensor:
        """The tensor [B, T, …] from which batch, time, dtype and device are read."""
        return getattr(self, self.rows_field)

    @property
    def batch(self) -> int:
        """Number of sentences."""
        return self.rows_BTX.shape[0]

    @property
    def time(self) -> int:
        """T: the number of words of the longest sentence, or more."""
        return self.rows_BTX.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        """Type of the scores."""
        return self.rows_BTX.dtype

    @property
    def device(self) -> torch.device:
        """Device of the scores."""
        return self.rows_BTX.device

    def widen(self, *names: str) -> None:
        """Convert all scores to one type: float64 if one of them is float64, else float32.

        Args:
            *names: Fields with scores, which are set to the converted ones; None is skipped.
        """
        parts = {name: part for name in names if (part := getattr(self, name)) is not None}
        wide = any(part.dtype == torch.float64 for part in parts.values())
        for name, part in parts.items():
            object.__setattr__(
                self, name, part.to(torch.float64 if wide else torch.float32)
            )  # the class is frozen

    @property
    def mask_BT(self) -> Bool[Tensor, "batch time"]:
        """True on words, False on padding."""
        return length_mask(self.lengths_B, self.time)


def length_mask(lengths_B: Int[Tensor, " batch"], time: int) -> Bool[Tensor, "batch time"]:
    """Return a mask [B, T] that is True on words, False on padding.

    Args:
        lengths_B: Words of each sentence.
        time: T.
    """
    return torch.arange(time, device=lengths_B.device) < lengths_B[:, None]


def end_rows(token_BTY: Tensor, lengths_B: Tensor) -> Tensor:
    """Return the row [B, Y] of each sentence's last token."""
    last_B1Y = (lengths_B.long() - 1)[:, None, None].expand(-1, 1, token_BTY.shape[2])
    return token_BTY.gather(1, last_B1Y).squeeze(1)


def check_form(scores: Tensor, name: str, form: str, *, fits: bool) -> None:
    """Raise ValueError unless scores are floating point and `fits` is True; `form` says the expected dimensions.

    `name`, of the scores, is a plural.
    """
    if not fits or not scores.is_floating_point():
        raise ValueError(f"{name} must be floating point [{form}]; got {scores.dtype} {list(scores.shape)}")


def check_tags(paths: Tensor, tags: int) -> None:
    """Raise ValueError if paths have a tag outside 0..tags-1."""
    if paths.numel():
        lowest, highest = paths.aminmax()
        if not all_true((lowest >= 0) & (highest < tags)):
            raise ValueError(f"tags of paths must lie in 0..{tags - 1}; got {int(lowest)}..{int(highest)}")


def check_lengths(lengths: Tensor, rows: Tensor, name: str) -> None:
    """Raise ValueError if lengths do not fit rows [B, T, …]; `name` of the rows is a plural."""
    B, T = rows.shape[:2]
    if tuple(lengths.shape) != (B,) or lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise ValueError(f"lengths must be integers [{B}]; got {lengths.dtype} {list(lengths.shape)}")
    if lengths.device != rows.device:
        raise ValueError(f"lengths are on {lengths.device}, {name} on {rows.device}; move one of them")
    if B:
        shortest, longest = lengths.aminmax()
        if not all_true((shortest >= 1) & (longest <= T)):
            raise ValueError(
                f"lengths must lie in 1..{T} (the {name}' time); got {int(shortest)}..{int(longest)}; "
                "drop empty sentences before batching"
            )
