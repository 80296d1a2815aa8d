"""The model of the papers' students: pieces (and characters) through an encoder, and a projection, to a head.

Shapes: B batch, P pieces, T labels (one per word, or one), C characters, D size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import nn

from raykd.errors import ExportError
from raykd.layers.bilstm import BiLSTM
from raykd.layers.characters import CharacterEncoder
from raykd.layers.dropout import VariationalDropout
from raykd.layers.heads import head_of
from raykd.layers.model import Model, Output, checked_layer
from raykd.layers.piece_embedding import TokenEmbedding
from raykd.layers.piece_vectors import (
    add_words_to_pieces_to,
    first_of_pieces,
    mean_of_sentence,
    words_to_pieces,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jaxtyping import Float
    from onnx import ModelProto
    from torch import Tensor

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.layers.frozen_inputs import Context
    from raykd.layers.graph import Batch, Graph, Value


@dataclass(frozen=True, kw_only=True)
class TaggerShape:
    """Sizes of a `Tagger`. Without `characters` none are read; `projection` is its width, 0 where there is none.
    `hidden_dim` (per direction) and `layers` are of a tagger that is given no encoder, `decoder` of one without a head.
    """

    pieces: int
    tags: int
    embedding_dim: int
    hidden_dim: int = 0
    layers: int = 1
    projection: int = 0
    decoder: Literal["crf", "maxent"] = "crf"
    unit: Literal["word", "sentence"] = "word"
    characters: int = 0
    character_dim: int = 0
    character_hidden: int = 0


class SequenceEncoder(Protocol):
    """What stands between a tagger's inputs and its head: a module with `depth` layers."""

    input_size: int
    output_size: int
    depth: int

    def states(self, inputs_BPD: Tensor, lengths_B: Tensor) -> list[Tensor]:
        """The inputs, and the outputs [B, P, D] of every layer in order."""
        ...

    def of_sentence(self, states_BPD: Tensor, lengths_B: Tensor) -> Float[Tensor, "batch 1 size"]:
        """The state of each sentence, from the outputs of a layer."""
        ...

    def add_to(self, graph: Graph, inputs_BPD: Value, lengths_B: Value) -> Value:
        """The outputs [B, P, D] of the last layer, as nodes of a graph."""
        ...

    def add_of_sentence_to(self, graph: Graph, states_BPD: Value, lengths_B: Value) -> Value:
        """`of_sentence`, as nodes of a graph."""
        ...


class Projection(nn.Module):
    """GELU(W h + b): states in the width of another model (Mukherjee & Awadallah 2020, Eq. 5)."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, states_BTD: Float[Tensor, "batch label size"]) -> Float[Tensor, "batch label width"]:
        return nn.functional.gelu(self.linear(states_BTD))

    def add_to(self, graph: Graph, states_BTD: Value) -> Value:
        return graph.add("Gelu", graph.linear(self.linear, states_BTD))


class Tagger(Model):
    """Reads pieces and predicts one label per word, at the word's first piece; the other pieces have no label. Where
    the unit is the sentence, it predicts one label from the encoder's state of the sentence.

    Where characters or a frozen encoder's features are read, each piece gets its word's vectors next to its own; with
    `embedding_dim` 0 these are all it reads. `encoder` makes the encoder from the size of its inputs, `head` the head
    from the size of the states; without them these are a BiLSTM and what `shape.decoder` says. The projection counts as
    the layer above the encoder's last.

    Raises:
        ValueError: in `forward`, when the model reads characters or features and the batch has none.
    """

    def __init__(
        self,
        shape: TaggerShape,
        *,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
        context: Context | None = None,
        encoder: Callable[[int], SequenceEncoder] | None = None,
        head: Callable[[int], nn.Module] | None = None,
    ):
        super().__init__()
        self.unit: Literal["word", "sentence"] = shape.unit
        self.embedding, self.characters, self.context, self.projection = None, None, context, None
        if shape.embedding_dim:
            self.embedding = TokenEmbedding(shape.pieces, shape.embedding_dim, word_dropout=word_dropout)
        inputs = shape.embedding_dim + (context.output_size if context is not None else 0)
        if shape.characters:
            self.characters = CharacterEncoder(
                shape.characters, shape.character_dim, shape.character_hidden, dropout=dropout
            )
            inputs += self.characters.output_size
        self.input_dropout = VariationalDropout(dropout)
        bilstm = partial(BiLSTM, hidden=shape.hidden_dim, layers=shape.layers, dropout=dropout)
        self.encoder: Any = (encoder or bilstm)(inputs)
        self.output_dropout = VariationalDropout(dropout)
        states: int = self.encoder.output_size
        if shape.projection:
            self.projection = Projection(states, shape.projection)
            self.projection_dropout = VariationalDropout(dropout)
        head = head or head_of(shape.decoder, shape.tags)
        self._new_head = partial(head, shape.projection or states)
        self.head: Any = self._new_head()

    def forward(self, batch: TokenBatch, *, layers: Sequence[int] = ()) -> Output:
        wanted = {layer: self._place(layer) for layer in layers}
        states = self.encoder.states(self.input_dropout(self._inputs(batch)), batch.piece_lengths_B)
        top_BTD = self._at_labels(self.output_dropout(states[-1]), batch, of_inputs=False)
        hidden = {
            layer: self._at_labels(states[place], batch, of_inputs=place == 0)
            for layer, place in wanted.items()
            if place < len(states)
        }
        if self.projection is not None:
            projected_BTD = self.projection(top_BTD)
            hidden |= {layer: projected_BTD for layer, place in wanted.items() if place == len(states)}
            top_BTD = self.projection_dropout(projected_BTD)
        lengths_B = batch.lengths_B if self.unit == "word" else torch.ones_like(batch.lengths_B)
        return Output(self.head(top_BTD, lengths_B), hidden, legal=self.legal)

    def hidden_size(self, layer: int) -> int:
        place = self._place(layer)
        if self.projection is not None and place == self._depth:
            return self.projection.linear.out_features
        return self.encoder.output_size if place else self.encoder.input_size

    def projected(self, layer: int) -> bool:
        return self.projection is not None and self._place(layer) == self._depth

    def draw_head(self) -> None:
        self.head.load_state_dict(self._new_head().state_dict())

    def layer_groups(self) -> Mapping[str, list[nn.Parameter]]:
        below = [part for part in (self.embedding, self.characters) if part is not None]
        projection = {} if self.projection is None else {"projection": list(self.projection.parameters())}
        return {
            "head": list(self.head.parameters()),
            **projection,
            "encoder": list(self.encoder.parameters()),
            "embeddings": [parameter for part in below for parameter in part.parameters()],
        }

    def embedding_matrix(self) -> Tensor:
        return super().embedding_matrix() if self.embedding is None else self.embedding.table.weight

    def frozen(self) -> Mapping[str, Sequence[nn.Parameter]]:
        return {} if self.context is None else self.context.frozen()

    def to_onnx(self) -> ModelProto:
        from raykd.layers.graph import Batch, Graph  # ONNX takes half a second to import

        if self.context is not None:
            hint = "export a student without contextual"
            raise ExportError(f"it reads frozen encoders or word vectors, which are not exported; {hint}")
        graph, batch = Graph(), Batch()
        inputs_BPD = self._add_inputs_to(graph, batch)
        states_BPD = self.encoder.add_to(graph, inputs_BPD, batch.piece_lengths_B)
        if self.unit == "word":
            top_BTD, lengths_B = graph.take(states_BPD, batch.first_BT), batch.lengths_B
        else:
            top_BTD = self.encoder.add_of_sentence_to(graph, states_BPD, batch.piece_lengths_B)
            lengths_B = graph.add("Min", batch.lengths_B, graph.constant(1))
        if self.projection is not None:
            top_BTD = self.projection.add_to(graph, top_BTD)
        labels_BT, scores_BTY = self.head.add_to(graph, top_BTD, lengths_B, self.legal)
        return graph.model(labels_BT, scores_BTY, unit=self.unit, spelling=self.characters is not None)

    def _add_inputs_to(self, graph: Graph, batch: Batch) -> Value:
        read = [] if self.embedding is None else [self.embedding.add_to(graph, batch.pieces_BP)]
        if self.characters is not None:
            words_BTD = self.characters.add_to(graph, batch.characters_BTC, batch.character_lengths_BT)
            read.append(add_words_to_pieces_to(graph, words_BTD, batch))
        return graph.add("Concat", *read, axis=2) if len(read) > 1 else read[0]

    @property
    def _depth(self) -> int:
        """Its layers, the projection among them."""
        return self.encoder.depth + (self.projection is not None)

    def _place(self, layer: int) -> int:
        return checked_layer(layer, self._depth, "the model")

    def _at_labels(self, states_BPD: Tensor, batch: TokenBatch, *, of_inputs: bool) -> Tensor:
        """The states [B, T, D] that labels are predicted from."""
        if self.unit == "word":
            return first_of_pieces(states_BPD, batch)
        if of_inputs:
            return mean_of_sentence(states_BPD, batch.piece_lengths_B)
        return self.encoder.of_sentence(states_BPD, batch.piece_lengths_B)

    def _inputs(self, batch: TokenBatch) -> Tensor:
        """What the encoder reads of each piece [B, P, D]."""
        read = [] if self.embedding is None else [self.embedding(batch.pieces_BP)]
        if self.characters is not None:
            read.append(words_to_pieces(_spelling(self.characters, batch), batch))
        if self.context is not None:
            read.append(words_to_pieces(self.context(batch), batch))
        return torch.cat(read, dim=-1)


def _spelling(encoder: CharacterEncoder, batch: TokenBatch) -> Tensor:
    """The character vector of each word [B, T, D]."""
    if batch.characters_BTC is None or batch.character_lengths_BT is None:
        raise ValueError("the model reads characters, the batch has none: encode it with its characters too")
    return encoder(batch.characters_BTC, batch.character_lengths_BT)
