"""Vectors of words computed from characters.

Shapes: B batch, T time (words), C characters, N distinct words, D size, H hidden size per direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from raykd.layers.bilstm import BiLSTM
from raykd.layers.dropout import Dropout, hash_rows
from raykd.layers.piece_embedding import TokenEmbedding
from raykd.layers.piece_vectors import last_states

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.layers.graph import Graph, Value

# Distinct words are run in groups of similar length, so that one long word does not pad all others to its length:
# 2–4 times faster than one padded block, and faster than a packed sequence (measured, one thread).
GROUP = 128


class CharacterEncoder(nn.Module):
    """BiLSTM over the characters of words (Lample et al. 2016, §4.1).

    A word's vector is the last forward state and the last backward state; padding words have the zero vector. On the
    CPU each distinct word of a batch is computed once.

    Args:
        characters: number of characters.
        size: components D of a character's vector.
        hidden: hidden size H of each direction; the output has 2·H components.
        dropout: dropout of character vectors.
    """

    def __init__(self, characters: int, size: int, hidden: int, *, dropout: float = 0.0):
        super().__init__()
        self.embedding = TokenEmbedding(characters, size)
        self.dropout = Dropout(dropout)
        self.lstm = BiLSTM(size, hidden)
        self.output_size = 2 * hidden

    def forward(
        self,
        characters_BTC: Int[Tensor, "batch time character"],
        character_lengths_BT: Int[Tensor, "batch time"],
    ) -> Float[Tensor, "batch time output"]:
        """Return the vectors of the words."""
        is_word_BT = character_lengths_BT > 0
        if characters_BTC.device.type != "cpu":
            # Finding the distinct words would make the CPU wait for the GPU, which has room for all words at once.
            vectors_ND = self._vectors(
                characters_BTC.flatten(0, 1), character_lengths_BT.flatten().clamp(min=1)
            )
            return vectors_ND.view(*is_word_BT.shape, -1) * is_word_BT[..., None]
        rows = torch.cat([character_lengths_BT[is_word_BT][:, None], characters_BTC[is_word_BT]], dim=1)
        distinct, place = torch.unique(rows, dim=0, return_inverse=True)
        vectors_ND = self._distinct_vectors(distinct[:, 1:], distinct[:, 0])
        output_BTD = vectors_ND.new_zeros(*is_word_BT.shape, self.output_size)
        return output_BTD.index_put(is_word_BT.nonzero(as_tuple=True), vectors_ND[place])

    def add_to(self, graph: Graph, characters_BTC: Value, character_lengths_BT: Value) -> Value:
        """Add the encoder to a graph and return the name of the vectors [B, T, 2H], meaningless on padding."""
        characters_NC = graph.reshape(characters_BTC, -1, graph.size(characters_BTC, 2))
        lengths_N = graph.add("Max", graph.reshape(character_lengths_BT, -1), graph.constant(1))
        vectors_ND = self.lstm.add_ends_to(graph, self.embedding.add_to(graph, characters_NC), lengths_N)
        words = (graph.size(character_lengths_BT, axis) for axis in (0, 1))
        return graph.reshape(vectors_ND, *words, self.output_size)

    def _distinct_vectors(self, characters_NC: Tensor, lengths_N: Tensor) -> Tensor:
        # torch.unique sorts rows, and their first column is the length: neighbours are of similar length already.
        groups = zip(characters_NC.split(GROUP), lengths_N.split(GROUP), strict=True)
        return torch.cat([self._vectors(letters[:, : int(sizes.max())], sizes) for letters, sizes in groups])

    def _vectors(self, characters_NC: Tensor, lengths_N: Tensor) -> Tensor:
        inputs_NCD = self.dropout(self.embedding(characters_NC), keys_N=hash_rows(characters_NC))
        return last_states(self.lstm(inputs_NCD, lengths_N), lengths_N)[:, 0]
