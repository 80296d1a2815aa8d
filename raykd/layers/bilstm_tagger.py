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
from raykd.layers.pieces import words_to_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, nn

    from raykd.corpora.encoding import TokenBatch
    from raykd.layers.contextual import ContextualFeatures
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


class BiLSTMTagger(Tagger):
    """Reads pieces and predicts one tag per word, at the word's first piece; the other pieces have no label.

    Where characters or a frozen encoder's features are read, each piece gets its word's vectors beside its own; with
    `embedding_dim` 0 these are all it reads. `head`, given the size of the encoder's states, makes what stands on
    them; without it `shape.decoder` says.

    Raises:
        ValueError: in `forward`, when the model reads characters or features and the batch has none.
    """

    def __init__(
        self,
        shape: BiLSTMTaggerShape,
        *,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
        context: ContextualFeatures | None = None,
        head: Callable[[int], nn.Module] | None = None,
    ):
        super().__init__()
        self.embedding, self.characters, self.context = None, None, context
        if shape.embedding_dim:
            self.embedding = TokenEmbedding(shape.pieces, shape.embedding_dim, word_dropout=word_dropout)
        inputs = shape.embedding_dim + (context.output_size if context is not None else 0)
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
        states_BPD = self.encoder(self.input_dropout(self._inputs(batch)), batch.piece_lengths_B)
        states_BTD = self.output_dropout(states_BPD).take_along_dim(batch.first_BT[:, :, None], 1)
        return self.head(states_BTD, batch.lengths_B)

    def _inputs(self, batch: TokenBatch) -> Tensor:
        """What the BiLSTM reads of each piece [B, P, D]."""
        read = [] if self.embedding is None else [self.embedding(batch.pieces_BP)]
        if self.characters is not None:
            read.append(words_to_pieces(_spelling(self.characters, batch), batch))
        if self.context is not None:
            read.append(words_to_pieces(_context(self.context, batch), batch))
        return torch.cat(read, dim=-1)

    def all_parameters(self) -> Iterator[nn.Parameter]:
        yield from self.parameters()
        if self.context is not None:
            yield from self.context.frozen_parameters()


def _spelling(encoder: CharacterEncoder, batch: TokenBatch) -> Tensor:
    """The character vector of each word [B, T, D]."""
    if batch.characters_BTC is None or batch.character_lengths_BT is None:
        raise ValueError("the model reads characters, the batch has none: encode it with its characters too")
    return encoder(batch.characters_BTC, batch.character_lengths_BT)


def _context(features: ContextualFeatures, batch: TokenBatch) -> Tensor:
    """The contextual vector of each word [B, T, D]."""
    if batch.context is None:
        raise ValueError(
            "the model reads an encoder's features, the batch has none of its pieces: encode it with them"
        )
    return features(batch.context)
