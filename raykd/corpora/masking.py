"""Masked text for language models: which pieces are hidden, what stands in their place, what has to be predicted.

What happens to a piece is a hash of the seed, the epoch, the row of its sentence in the text and its place there. So it
depends neither on batches nor on workers, every epoch masks other pieces, and dev is masked alike for every model.

Shapes: N sentences of a text, B of a batch, P pieces, M masked pieces of the sentence with the most of them.
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
"""Of the pieces of a sentence that are predicted (Devlin et al. 2019, §3.1)."""
MASK_SHARE, RANDOM_SHARE = 0.8, 0.1
"""Of these: become the mask, become any piece. The others stay as they are."""
BLOCK = 2**16
"""Sentences whose masks are counted at once."""
_STRIDE, _FIRST, _SECOND = (
    np.uint64(constant) for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@dataclass(frozen=True)
class MaskedText:
    """An encoded text whose pieces are masked for one epoch. Its batches have the masked pieces in the place of words:
    `first_BT` is where they are, and `lengths_B` how many. Of every sentence at least one piece is predicted; pieces
    around a sentence never are.

    Raises ValueError where the vocabulary has no piece that masks others.
    """

    text: EncodedText
    special: Special
    size: int
    """Pieces of the vocabulary."""
    seed: int = 0
    epoch: int = 0
    sampled_rows: np.ndarray | None = None
    """The sentences of an epoch in which some come more than once, int64, ascending: each copy has masks of its own."""

    def __post_init__(self):
        if self.special.mask is None:
            raise ValueError("the vocabulary has no piece that masks others")

    def __len__(self) -> int:
        return len(self.text if self.sampled_rows is None else self.sampled_rows)

    def for_epoch(self, seed: int, epoch: int, sampled_rows: np.ndarray | None = None) -> MaskedText:
        """The same text with the masks of another epoch; of the sentences `drawn` for it, where some are copies."""
        same = (seed, epoch) == (self.seed, self.epoch) and sampled_rows is None and self.sampled_rows is None
        return self if same else replace(self, seed=seed, epoch=epoch, sampled_rows=sampled_rows)

    @property
    def features(self) -> None:
        """It reads no frozen encoders."""

    @property
    def piece_lengths(self) -> np.ndarray:
        """Pieces of each sentence, those around it included, int64 [N]."""
        lengths = self.text.piece_lengths
        return lengths if self.sampled_rows is None else lengths[self.sampled_rows]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Masked pieces of each sentence, int64 [N]."""
        blocks = (np.arange(first, min(first + BLOCK, len(self))) for first in range(0, len(self), BLOCK))
        return np.concatenate([np.empty(0, np.int64), *map(self._count, blocks)])

    def gather(self, indices: np.ndarray) -> TokenBatch:
        """The sentences at `indices`, masked."""
        batch = self.text.gather(self._text_rows(indices))
        pieces_BP = batch.pieces_BP.numpy()
        masked_BP = self._masked_pieces(indices, pieces_BP.shape[1])
        row_B1, place_P = self._mask_keys(indices)[:, None], np.arange(pieces_BP.shape[1])
        fate_BP = self._random_share(row_B1, place_P, 1)
        anything_BP = (self._random_share(row_B1, place_P, 2) * self.size).astype(np.int64)
        mask = np.int64(self.special.mask or 0)  # there is one
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
        """The pieces that are predicted, int64 [B, M], 0 behind them."""
        pieces_BP, _ = self.text.pieces.pad(self._text_rows(indices))
        first_BM, lengths_B = _true_positions(self._masked_pieces(indices, pieces_BP.shape[1]))
        pieces_BM = np.take_along_axis(pieces_BP, first_BM, 1)
        return np.where(np.arange(first_BM.shape[1]) < lengths_B[:, None], pieces_BM, 0)

    def _masked_pieces(self, indices: np.ndarray, width: int) -> np.ndarray:
        """Which pieces of the sentences are predicted, bool [B, P]."""
        rows = np.asarray(indices)
        before, place_P = len(self.special.prefix), np.arange(width)
        ends_B = before + self._inner_lengths(self.piece_lengths[rows])
        inside_BP = (place_P >= before) & (place_P < ends_B[:, None])
        drawn_BP = np.where(inside_BP, self._random_share(self._mask_keys(rows)[:, None], place_P, 0), np.inf)
        masked_BP = drawn_BP < PREDICTED_SHARE
        none_B = np.flatnonzero(~masked_BP.any(1))
        masked_BP[none_B, drawn_BP[none_B].argmin(1)] = True
        return masked_BP

    def _count(self, rows: np.ndarray) -> np.ndarray:
        """Masked pieces of the sentences at `rows`."""
        inside_R = self._inner_lengths(self.piece_lengths[rows])
        starts = offsets_from_lengths(inside_R)
        own = np.repeat(np.arange(len(rows)), inside_R)
        place = np.arange(starts[-1]) - starts[own] + len(self.special.prefix)
        masked = np.concatenate(
            [[0], np.cumsum(self._random_share(self._mask_keys(rows)[own], place, 0) < PREDICTED_SHARE)]
        )
        return np.maximum(masked[starts[1:]] - masked[starts[:-1]], 1)

    def _text_rows(self, indices: np.ndarray) -> np.ndarray:
        """Where the sentences are in the text."""
        rows = np.asarray(indices, np.int64)
        return rows if self.sampled_rows is None else self.sampled_rows[rows]

    def _mask_keys(self, indices: np.ndarray) -> np.ndarray:
        """What masks are drawn by: the sentence, of a second copy one behind all sentences, and so on."""
        own = self._text_rows(indices)
        if self.sampled_rows is None:
            return own
        copies = np.asarray(indices, np.int64) - np.searchsorted(self.sampled_rows, own)
        return own + copies * len(self.text)

    def _inner_lengths(self, lengths: np.ndarray) -> np.ndarray:
        return lengths - len(self.special.prefix) - len(self.special.suffix)

    def _random_share(self, row: np.ndarray, place: np.ndarray, purpose: int) -> np.ndarray:
        """A number from 0 to 1 for every piece, by splitmix64 (Steele et al. 2014)."""
        mixed = np.zeros(1, np.uint64)
        for part in (self.seed, self.epoch, purpose, row, place):
            mixed = (mixed ^ np.asarray(part).astype(np.uint64)) + _STRIDE
            mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
            mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
            mixed = mixed ^ (mixed >> np.uint64(31))
        return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _true_positions(masked_BP: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each row is true, int64 [B, M] with 0 behind, and how often [B]."""
    lengths_B = masked_BP.sum(1)
    rows, places = np.nonzero(masked_BP)
    first_BM = np.zeros((len(masked_BP), int(lengths_B.max(initial=1))), np.int64)
    first_BM[rows, np.arange(len(rows)) - np.repeat(offsets_from_lengths(lengths_B)[:-1], lengths_B)] = places
    return first_BM, lengths_B.astype(np.int64)
