"""Masked text for language models: hidden pieces, their substitutes, and the predictions to make.

The fate of a piece is a hash of the seed, the epoch, the row of its sentence in the text and its place there. So it
depends neither on batches nor on workers, every epoch masks other pieces, and dev is masked alike for every model.

Shapes: N sentences of a text, B of a batch, P pieces, M masked pieces of the sentence with the most of them, R rows
counted at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from raykd.forms.ragged import offsets_from_lengths

if TYPE_CHECKING:
    from raykd.corpora.encoded_text import EncodedText, TokenBatch
    from raykd.corpora.word_pieces import Special

PREDICTED_SHARE = 0.15
"""Share of a sentence's pieces that is predicted (Devlin et al. 2019, §3.1)."""
MASK_SHARE, RANDOM_SHARE = 0.8, 0.1
"""Shares of the predicted pieces that become the mask, and a random piece. The rest stays unchanged."""
BLOCK = 2**16
"""Number of sentences whose masks are counted at once."""
_STRIDE, _FIRST, _SECOND = (
    np.uint64(constant) for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@dataclass(frozen=True)
class MaskedText:
    """An encoded text with pieces masked for one epoch.

    In its batches the masked pieces take the place of words: `first_BT` is their positions, `lengths_B` their number.
    At least one piece of a sentence is predicted. Special pieces around a sentence never are.

    Attributes:
        text: Text without masks.
        special: Special pieces of the vocabulary.
        size: Pieces of the vocabulary.
        seed: Seed of the masks.
        epoch: Epoch of the masks.
        sampled_rows: Sentences of an epoch that repeats some, int64, ascending; copies are masked differently.

    Raises:
        ValueError: The vocabulary has no mask.
    """

    text: EncodedText
    special: Special
    size: int
    seed: int = 0
    epoch: int = 0
    sampled_rows: np.ndarray | None = None

    def __post_init__(self):
        if self.special.mask is None:
            raise ValueError("the vocabulary has no piece that masks others")

    def __len__(self) -> int:
        return len(self.text if self.sampled_rows is None else self.sampled_rows)

    def for_epoch(self, seed: int, epoch: int, sampled_rows: np.ndarray | None = None) -> MaskedText:
        """Return the text with the masks of an epoch.

        Args:
            seed: Seed of the masks.
            epoch: Number of the epoch.
            sampled_rows: Sentences of the epoch, int64, ascending, with repetitions; None: all sentences once.
        """
        same = (seed, epoch) == (self.seed, self.epoch) and sampled_rows is None and self.sampled_rows is None
        return self if same else replace(self, seed=seed, epoch=epoch, sampled_rows=sampled_rows)

    @property
    def features(self) -> None:
        """None: no frozen encoders are read."""

    @property
    def piece_lengths(self) -> np.ndarray:
        """Number of pieces per sentence, special ones included, int64 [N]."""
        lengths = self.text.piece_lengths
        return lengths if self.sampled_rows is None else lengths[self.sampled_rows]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Number of masked pieces per sentence, int64 [N]."""
        blocks = (np.arange(first, min(first + BLOCK, len(self))) for first in range(0, len(self), BLOCK))
        return np.concatenate([np.empty(0, np.int64), *map(self._count, blocks)])

    def gather(self, indices: np.ndarray) -> TokenBatch:
        """Return the masked sentences at `indices`."""
        batch = self.text.gather(self._text_rows(indices))
        pieces_BP = batch.pieces_BP.numpy()
        masked_BP = self._masked_pieces(indices, pieces_BP.shape[1])
        row_B1, place_P = self._mask_keys(indices)[:, None], np.arange(pieces_BP.shape[1])
        fate_BP = self._random_share(row_B1, place_P, 1)
        anything_BP = (self._random_share(row_B1, place_P, 2) * self.size).astype(np.int64)
        mask = np.int64(self.special.mask or 0)  # never None: __post_init__ checks it
        read_BP = np.where(masked_BP & (fate_BP < MASK_SHARE), mask, pieces_BP)
        replaced_BP = masked_BP & (fate_BP >= MASK_SHARE) & (fate_BP < MASK_SHARE + RANDOM_SHARE)
        first_BM, lengths_B = _true_positions(masked_BP)
        return replace(
            batch,
            pieces_BP=torch.from_numpy(np.where(replaced_BP, anything_BP, read_BP)),
            first_BT=torch.from_numpy(first_BM),
            lengths_B=torch.from_numpy(lengths_B),
        )

    def hidden(self, indices: np.ndarray) -> np.ndarray:
        """Return the predicted pieces, int64 [B, M], padded with 0."""
        pieces_BP, _ = self.text.pieces.pad(self._text_rows(indices))
        first_BM, lengths_B = _true_positions(self._masked_pieces(indices, pieces_BP.shape[1]))
        pieces_BM = np.take_along_axis(pieces_BP, first_BM, 1)
        return np.where(np.arange(first_BM.shape[1]) < lengths_B[:, None], pieces_BM, 0)

    def _masked_pieces(self, indices: np.ndarray, width: int) -> np.ndarray:
        """Predicted pieces of the sentences, bool [B, P]."""
        rows = np.asarray(indices)
        before, place_P = len(self.special.prefix), np.arange(width)
        ends_B = before + self._inner_lengths(self.piece_lengths[rows])
        inside_BP = (place_P >= before) & (place_P < ends_B[:, None])
        random_BP = np.where(
            inside_BP, self._random_share(self._mask_keys(rows)[:, None], place_P, 0), np.inf
        )
        masked_BP = random_BP < PREDICTED_SHARE
        none_B = np.flatnonzero(~masked_BP.any(1))
        masked_BP[none_B, random_BP[none_B].argmin(1)] = True
        return masked_BP

    def _count(self, rows: np.ndarray) -> np.ndarray:
        """Number of masked pieces of the sentences at `rows`."""
        inside_R = self._inner_lengths(self.piece_lengths[rows])
        starts = offsets_from_lengths(inside_R)
        sentences = np.repeat(np.arange(len(rows)), inside_R)
        place = np.arange(starts[-1]) - starts[sentences] + len(self.special.prefix)
        masked = np.concatenate(
            [[0], np.cumsum(self._random_share(self._mask_keys(rows)[sentences], place, 0) < PREDICTED_SHARE)]
        )
        return np.maximum(masked[starts[1:]] - masked[starts[:-1]], 1)

    def _text_rows(self, indices: np.ndarray) -> np.ndarray:
        """Rows of the sentences in the text."""
        rows = np.asarray(indices, np.int64)
        return rows if self.sampled_rows is None else self.sampled_rows[rows]

    def _mask_keys(self, indices: np.ndarray) -> np.ndarray:
        """Keys of the random numbers: the row of the sentence, and for copies a number behind all rows."""
        text_rows = self._text_rows(indices)
        if self.sampled_rows is None:
            return text_rows
        copies = np.asarray(indices, np.int64) - np.searchsorted(self.sampled_rows, text_rows)
        return text_rows + copies * len(self.text)

    def _inner_lengths(self, lengths: np.ndarray) -> np.ndarray:
        return lengths - len(self.special.prefix) - len(self.special.suffix)

    def _random_share(self, row: np.ndarray, place: np.ndarray, purpose: int) -> np.ndarray:
        """Random numbers from 0 to 1 for the pieces, by splitmix64 (Steele et al. 2014)."""
        mixed = np.zeros(1, np.uint64)
        for part in (self.seed, self.epoch, purpose, row, place):
            mixed = (mixed ^ np.asarray(part).astype(np.uint64)) + _STRIDE
            mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
            mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
            mixed = mixed ^ (mixed >> np.uint64(31))
        return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _true_positions(masked_BP: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the true values of rows, int64 [B, M], padded with 0, and their numbers [B]."""
    lengths_B = masked_BP.sum(1)
    rows, places = np.nonzero(masked_BP)
    first_BM = np.zeros((len(masked_BP), int(lengths_B.max(initial=1))), np.int64)
    first_BM[rows, np.arange(len(rows)) - np.repeat(offsets_from_lengths(lengths_B)[:-1], lengths_B)] = places
    return first_BM, lengths_B.astype(np.int64)
