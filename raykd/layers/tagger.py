"""A tagger of raykd's own layers: input vectors of pieces through an encoder, and perhaps a projection, to a head.

Shapes: B batch, P pieces, T labels (one per word, or one), C characters, D size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import nn
from typing_extensions import override

from raykd.errors import ExportError
from raykd.layers.bilstm import BiLSTM
from raykd.layers.characters import CharacterEncoder
from raykd.layers.dropout import VariationalDropout
from raykd.layers.heads import head_builder
from raykd.layers.model import Model, Output, resolve_layer
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
    from raykd.layers.frozen_inputs import FrozenInputs
    from raykd.layers.graph import Batch, Graph, Value
    from raykd.layers.heads import Head
    from raykd.layers.sequence_encoder import SequenceEncoder


@dataclass(frozen=True, kw_only=True)
class TaggerShape:
    """Sizes of a `Tagger`.

    Attributes:
        pieces: pieces of the vocabulary.
        tags: number of tags.
        embedding_dim: components of a piece's vector; 0: it has none.
        hidden_dim: hidden size of each direction of the default BiLSTM.
        layers: layers of the default BiLSTM.
        projection: width of the projection; 0: there is none.
        decoder: the default head.
        unit: one label for each word, or for each sentence.
        characters: characters of the vocabulary; 0: none are read.
        character_dim: components of a character's vector.
        character_hidden: hidden size of each direction of the character encoder.
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


class Projection(nn.Module):
    """GELU(W h + b): states in the width of another model (Mukherjee & Awadallah 2020, Eq. 5).

    Args:
        inputs: components of a state.
        outputs: components of the other model's states.
    """

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    @override
    def forward(self, states_BTD: Float[Tensor, "batch label size"]) -> Float[Tensor, "batch label width"]:
        """Return the projected states."""
        return nn.functional.gelu(self.linear(states_BTD))

    def add_to(self, graph: Graph, states_BTD: Value) -> Value:
        """Add the projection to a graph.

        Args:
            graph: graph that the nodes are added to.
            states_BTD: name of the states.

        Returns:
            Name of the projected states.
        """
        return graph.add("Gelu", graph.linear(self.linear, states_BTD))


class Tagger(Model):
    """A sequence encoder between input vectors and a head: one label per word, or one per sentence.

    A word's label is predicted from the state of its first piece; later pieces have no label. A sentence's label is
    predicted from the encoder's state of the sentence. A piece's input is its own vector next to those of its word,
    from characters and frozen encoders, where there are any. The projection counts as a layer above the encoder's.

    Args:
        shape: sizes.
        dropout: variational dropout of inputs and outputs of the encoder.
        word_dropout: share of pieces read as unknown in training.
        context: frozen vectors.
        encoder: builds the encoder from the size of its inputs; None: a BiLSTM.
        head: builds the head from the size of the states; None: the head that `shape.decoder` names.

    Raises:
        ValueError: in `forward`, when the model reads characters or frozen vectors and the batch has none.
    """

    def __init__(
        self,
        shape: TaggerShape,
        *,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
        context: FrozenInputs | None = None,
        encoder: Callable[[int], SequenceEncoder] | None = None,
        head: Callable[[int], Head] | None = None,
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
        head = head or head_builder(shape.decoder, shape.tags)
        self._new_head = partial(head, shape.projection or states)
        self.head: Any = self._new_head()

    @override
    def forward(self, batch: TokenBatch, *, layers: Sequence[int] = ()) -> Output:
        layer_numbers = {layer: self._layer_number(layer) for layer in layers}
        states = self.encoder.states(self.input_dropout(self._inputs(batch)), batch.piece_lengths_B)
        top_BTD = self._at_labels(self.output_dropout(states[-1]), batch, of_inputs=False)
        hidden = {
            layer: self._at_labels(states[number], batch, of_inputs=number == 0)
            for layer, number in layer_numbers.items()
            if number < len(states)
        }
        if self.projection is not None:
            projected_BTD = self.projection(top_BTD)
            hidden |= {
                layer: projected_BTD for layer, number in layer_numbers.items() if number == len(states)
            }
            top_BTD = self.projection_dropout(projected_BTD)
        lengths_B = batch.lengths_B if self.unit == "word" else torch.ones_like(batch.lengths_B)
        return Output(self.head(top_BTD, lengths_B), hidden, legal=self.legal)

    @override
    def hidden_size(self, layer: int) -> int:
        number = self._layer_number(layer)
        if self.projection is not None and number == self._depth:
            return self.projection.linear.out_features
        return self.encoder.output_size if number else self.encoder.input_size

    @override
    def is_projection(self, layer: int) -> bool:
        return self.projection is not None and self._layer_number(layer) == self._depth

    @override
    def reset_head(self) -> None:
        self.head.load_state_dict(self._new_head().state_dict())

    @override
    def layer_groups(self) -> Mapping[str, list[nn.Parameter]]:
        below = [part for part in (self.embedding, self.characters) if part is not None]
        projection = {} if self.projection is None else {"projection": list(self.projection.parameters())}
        return {
            "head": list(self.head.parameters()),
            **projection,
            "encoder": list(self.encoder.parameters()),
            "embeddings": [parameter for part in below for parameter in part.parameters()],
        }

    @override
    def embedding_matrix(self) -> Tensor:
        return super().embedding_matrix() if self.embedding is None else self.embedding.table.weight

    @override
    def external_parameters(self) -> Mapping[str, Sequence[nn.Parameter]]:
        return {} if self.context is None else self.context.external_parameters()

    @override
    def to_onnx(self) -> ModelProto:
        from raykd.layers.graph import Batch, Graph  # ONNX takes half a second to import

        if self.context is not None:
            hint = "export a student without contextual"
            raise ExportError(f"it reads frozen encoders or word vectors, which have no ONNX form; {hint}")
        graph, batch = Graph(), Batch()
        inputs_BPD = self._add_inputs_to(graph, batch)
        states_BPD = self.encoder.add_to(graph, inputs_BPD, batch.piece_lengths_B)
        if self.unit == "word":
            top_BTD, lengths_B = graph.take(states_BPD, batch.first_BT), batch.lengths_B
        else:
            top_BTD = self.encoder.add_sentence_state_to(graph, states_BPD, batch.piece_lengths_B)
            lengths_B = graph.add("Min", batch.lengths_B, graph.constant(1))
        if self.projection is not None:
            top_BTD = self.projection.add_to(graph, top_BTD)
        labels_BT, scores_BTY = self.head.add_to(graph, top_BTD, lengths_B, self.legal)
        return graph.model_proto(
            labels_BT, scores_BTY, unit=self.unit, reads_characters=self.characters is not None
        )

    def _add_inputs_to(self, graph: Graph, batch: Batch) -> Value:
        inputs = [] if self.embedding is None else [self.embedding.add_to(graph, batch.pieces_BP)]
        if self.characters is not None:
            words_BTD = self.characters.add_to(graph, batch.characters_BTC, batch.character_lengths_BT)
            inputs.append(add_words_to_pieces_to(graph, words_BTD, batch))
        return graph.add("Concat", *inputs, axis=2) if len(inputs) > 1 else inputs[0]

    @property
    def _depth(self) -> int:
        """Number of layers, the projection included."""
        return self.encoder.depth + (self.projection is not None)

    def _layer_number(self, layer: int) -> int:
        return resolve_layer(layer, self._depth, "the model")

    def _at_labels(self, states_BPD: Tensor, batch: TokenBatch, *, of_inputs: bool) -> Tensor:
        """Return states [B, T, D] of words or sentences; a sentence's encoder input (`of_inputs`) has the mean."""
        if self.unit == "word":
            return first_of_pieces(states_BPD, batch)
        if of_inputs:
            return mean_of_sentence(states_BPD, batch.piece_lengths_B)
        return self.encoder.sentence_state(states_BPD, batch.piece_lengths_B)

    def _inputs(self, batch: TokenBatch) -> Tensor:
        """Return the encoder's inputs [B, P, D]."""
        inputs = [] if self.embedding is None else [self.embedding(batch.pieces_BP)]
        if self.characters is not None:
            inputs.append(words_to_pieces(_character_vectors(self.characters, batch), batch))
        if self.context is not None:
            inputs.append(words_to_pieces(self.context(batch), batch))
        return torch.cat(inputs, dim=-1)


def _character_vectors(encoder: CharacterEncoder, batch: TokenBatch) -> Tensor:
    """Return the character vectors of words [B, T, D]."""
    if batch.characters_BTC is None or batch.character_lengths_BT is None:
        raise ValueError("the model reads characters, which the batch lacks: encode it with its characters")
    return encoder(batch.characters_BTC, batch.character_lengths_BT)
