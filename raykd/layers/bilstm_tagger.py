"""The BiLSTM tagger of the papers: pieces (and characters) through a BiLSTM to a CRF or MaxEnt head.

Shapes: B batch, P pieces, T time (words), C characters, D size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import torch

from raykd.layers.bilstm import BiLSTM
from raykd.layers.characters import CharacterEncoder
from raykd.layers.dropout import VariationalDropout
from raykd.layers.embedding import TokenEmbedding
from raykd.layers.heads import CRFHead, MaxEntHead
from raykd.layers.model import Tagger

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Int
    from torch import Tensor, nn

    from raykd.corpora.encoding import TokenBatch
    from raykd.structures import Distribution


@dataclass(frozen=True, kw_only=True)
class BiLSTMTaggerShape:
    """Sizes of a `BiLSTMTagger`. Hidden sizes are per direction; without `characters` none are read."""

    pieces: int
    tags: int
    embedding_dim: int
    hidden_dim: int
    layers: int = 1
    decoder: Literal["crf", "maxent", "spans"] = "crf"
    characters: int = 0
    character_dim: int = 0
    character_hidden: int = 0


def word_of_piece(
    first_BT: Int[Tensor, "batch time"], lengths_B: Int[Tensor, " batch"], pieces: int
) -> Int[Tensor, "batch piece"]:
    """Index of the word that each of `pieces` places belongs to, -1 before the first word."""
    padding_BT = torch.arange(first_BT.shape[1], device=first_BT.device) >= lengths_B[:, None]
    starts_BT = first_BT.masked_fill(padding_BT, pieces)
    places_BP = torch.arange(pieces, device=first_BT.device).expand(len(first_BT), pieces).contiguous()
    return torch.searchsorted(starts_BT, places_BP, right=True) - 1


class BiLSTMTagger(Tagger):
    """Reads pieces and predicts one tag per word, at the word's first piece; the other pieces have no label.

    Where characters are read, each piece gets its word's character vector beside its own. `head`, given the size of
    the encoder's states, makes what stands on them; without it `shape.decoder` says.

    Raises:
        ValueError: in `forward`, when the model reads characters and the batch has none.
    """

    def __init__(
        self,
        shape: BiLSTMTaggerShape,
        *,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
        head: Callable[[int], nn.Module] | None = None,
    ):
        super().__init__()
        self.embedding = TokenEmbedding(shape.pieces, shape.embedding_dim, word_dropout=word_dropout)
        inputs = shape.embedding_dim
        self.characters = None
        if shape.characters:
            self.characters = CharacterEncoder(
                shape.characters, shape.character_dim, shape.character_hidden, dropout=dropout
            )
            inputs += self.characters.output_size
        self.input_dropout = VariationalDropout(dropout)
        self.encoder = BiLSTM(inputs, shape.hidden_dim, layers=shape.layers, dropout=dropout)
        self.output_dropout = VariationalDropout(dropout)
        decoders = {"crf": CRFHead, "maxent": MaxEntHead}
        head = head or partial(decoders[shape.decoder], tags=shape.tags)
        self.head = head(self.encoder.output_size)

    def forward(self, batch: TokenBatch) -> Distribution:
        inputs_BPD = self.embedding(batch.pieces_BP)
        if self.characters is not None:
            inputs_BPD = torch.cat([inputs_BPD, _spelling(self.characters, batch)], dim=-1)
        states_BPD = self.encoder(self.input_dropout(inputs_BPD), batch.piece_lengths_B)
        states_BTD = self.output_dropout(states_BPD).take_along_dim(batch.first_BT[:, :, None], 1)
        return self.head(states_BTD, batch.lengths_B)


def _spelling(encoder: CharacterEncoder, batch: TokenBatch) -> Tensor:
    """The character vector of each piece's word [B, P, D], zero for pieces before the first word."""
    if batch.characters_BTC is None or batch.character_lengths_BT is None:
        raise ValueError("the model reads characters, the batch has none: encode it with its characters too")
    vectors_BTD = encoder(batch.characters_BTC, batch.character_lengths_BT)
    word_BP = word_of_piece(batch.first_BT, batch.lengths_B, batch.pieces_BP.shape[1])
    vectors_BPD = vectors_BTD.take_along_dim(word_BP.clamp_min(0)[:, :, None], 1)
    return vectors_BPD.masked_fill((word_BP < 0)[:, :, None], 0.0)
