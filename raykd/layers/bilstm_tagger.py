"""The BiLSTM model of the papers: pieces (and characters) through a BiLSTM to a head.

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
from raykd.layers.model import Model, Output, checked_layer
from raykd.layers.pieces import last_states, words_to_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor, nn

    from raykd.corpora.encoding import TokenBatch
    from raykd.layers.contextual import Context


@dataclass(frozen=True, kw_only=True)
class BiLSTMTaggerShape:
    """Sizes of a `BiLSTMTagger`. Hidden sizes are per direction; without `characters` none are read."""

    pieces: int
    tags: int
    embedding_dim: int
    hidden_dim: int
    layers: int = 1
    decoder: Literal["crf", "maxent", "spans"] = "crf"
    unit: Literal["word", "sentence"] = "word"
    characters: int = 0
    character_dim: int = 0
    character_hidden: int = 0


class BiLSTMTagger(Model):
    """Reads pieces and predicts one label per word, at the word's first piece; the other pieces have no label. Where
    the unit is the sentence, it predicts one label from the last state of each direction.

    Where characters or a frozen encoder's features are read, each piece gets its word's vectors next to its own; with
    `embedding_dim` 0 these are all it reads. `head` makes the head from the size of the encoder's states; without it
    `shape.decoder` decides.

    Raises:
        ValueError: in `forward`, when the model reads characters or features and the batch has none.
    """

    def __init__(
        self,
        shape: BiLSTMTaggerShape,
        *,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
        context: Context | None = None,
        head: Callable[[int], nn.Module] | None = None,
    ):
        super().__init__()
        self.unit = shape.unit
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

    def forward(self, batch: TokenBatch, *, layers: Sequence[int] = ()) -> Output:
        wanted = {layer: checked_layer(layer, len(self.encoder.layers), "the BiLSTM") for layer in layers}
        states = self.encoder.states(self.input_dropout(self._inputs(batch)), batch.piece_lengths_B)
        states_BPD = self.output_dropout(states[-1])
        hidden = {layer: states[place] for layer, place in wanted.items()}
        if self.unit == "sentence":
            states_B1D = last_states(states_BPD, batch.piece_lengths_B)
            return Output(self.head(states_B1D, torch.ones_like(batch.lengths_B)), hidden, batch.first_BT)
        states_BTD = states_BPD.take_along_dim(batch.first_BT[:, :, None], 1)
        return Output(self.head(states_BTD, batch.lengths_B), hidden, batch.first_BT)

    def hidden_size(self, layer: int) -> int:
        place = checked_layer(layer, len(self.encoder.layers), "the BiLSTM")
        return self.encoder.output_size if place else self.encoder.input_size

    def layer_groups(self) -> Mapping[str, list[nn.Parameter]]:
        below = [part for part in (self.embedding, self.characters) if part is not None]
        return {
            "head": list(self.head.parameters()),
            "encoder": list(self.encoder.parameters()),
            "embeddings": [parameter for part in below for parameter in part.parameters()],
        }

    def _inputs(self, batch: TokenBatch) -> Tensor:
        """What the BiLSTM reads of each piece [B, P, D]."""
        read = [] if self.embedding is None else [self.embedding(batch.pieces_BP)]
        if self.characters is not None:
            read.append(words_to_pieces(_spelling(self.characters, batch), batch))
        if self.context is not None:
            read.append(words_to_pieces(self.context(batch), batch))
        return torch.cat(read, dim=-1)

    def frozen(self) -> Mapping[str, Sequence[nn.Parameter]]:
        return {} if self.context is None else self.context.frozen()


def _spelling(encoder: CharacterEncoder, batch: TokenBatch) -> Tensor:
    """The character vector of each word [B, T, D]."""
    if batch.characters_BTC is None or batch.character_lengths_BT is None:
        raise ValueError("the model reads characters, the batch has none: encode it with its characters too")
    return encoder(batch.characters_BTC, batch.character_lengths_BT)
