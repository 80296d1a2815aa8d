"""Vectors of words and pieces, one computed from the other.

Shapes: B batch, P pieces, T time (words), D size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.layers.graph import Batch, Graph, Value


_FLOAT16_MAX = torch.finfo(torch.float16).max


def word_of_piece(
    first_BT: Int[Tensor, "batch time"], lengths_B: Int[Tensor, " batch"], pieces: int
) -> Int[Tensor, "batch piece"]:
    """Return the index of a piece's word, -1 before the first word.

    Args:
        first_BT: place of the first piece of each word.
        lengths_B: words of each sentence.
        pieces: number of places P.
    """
    starts_BT = first_BT.masked_fill(~length_mask(lengths_B, first_BT.shape[1]), pieces)
    places_BP = torch.arange(pieces, device=first_BT.device).expand(len(first_BT), pieces).contiguous()
    return torch.searchsorted(starts_BT, places_BP, right=True) - 1


def words_to_pieces(
    words_BTD: Float[Tensor, "batch time size"], batch: TokenBatch
) -> Float[Tensor, "batch piece size"]:
    """Return for pieces the vectors of their words, zero before the first word.

    Args:
        words_BTD: vectors of the words.
        batch: the encoded sentences.
    """
    word_BP = word_of_piece(batch.first_BT, batch.lengths_B, batch.pieces_BP.shape[1])
    pieces_BPD = words_BTD.take_along_dim(word_BP.clamp_min(0)[:, :, None], 1)
    return pieces_BPD.masked_fill((word_BP < 0)[:, :, None], 0.0)


def add_words_to_pieces_to(graph: Graph, words_BTD: Value, batch: Batch) -> Value:
    """Add `words_to_pieces` to a graph and return the name of the pieces' vectors."""
    positions_P = graph.positions(batch.pieces_BP, 1)
    words_BT = graph.length_mask(graph.positions(batch.first_BT, 1), batch.lengths_B)
    started_BPT = graph.add(
        "And",
        graph.unsqueeze(words_BT, 1),
        graph.add("LessOrEqual", graph.unsqueeze(batch.first_BT, 1), graph.unsqueeze(positions_P, 1)),
    )
    started_BP = graph.add("ReduceSum", graph.cast(started_BPT, "int64"), graph.constant([2]), keepdims=0)
    word_BP = graph.add("Max", graph.add("Sub", started_BP, graph.constant(1)), graph.constant(0))
    in_word_BP1 = graph.unsqueeze(graph.add("Greater", started_BP, graph.constant(0)), 2)
    return graph.add("Where", in_word_BP1, graph.take(words_BTD, word_BP), graph.constant(0.0))


def mean_of_pieces(
    pieces_BPD: Float[Tensor, "batch piece size"], batch: TokenBatch, *, suffix: int = 0
) -> Float[Tensor, "batch time size"]:
    """Return the mean over a word's pieces, zero on padding.

    Args:
        pieces_BPD: vectors of the pieces.
        batch: the encoded sentences.
        suffix: number of last pieces of a sentence that belong to no word.
    """
    pieces, time = pieces_BPD.shape[1], batch.first_BT.shape[1]
    word_BP = word_of_piece(batch.first_BT, batch.lengths_B, pieces)
    inside_BP = (word_BP >= 0) & length_mask(batch.piece_lengths_B - suffix, pieces)
    member_BTP = word_BP[:, None] == torch.arange(time, device=word_BP.device)[:, None]
    weights_BTP = (member_BTP & inside_BP[:, None]).to(pieces_BPD.dtype)
    return weights_BTP @ pieces_BPD / weights_BTP.sum(2, keepdim=True).clamp_min(1)


def first_of_pieces(
    pieces_BPD: Float[Tensor, "batch piece size"], batch: TokenBatch
) -> Float[Tensor, "batch time size"]:
    """Return the vectors of words' first pieces; padding gets that of the sentence's first piece.

    Args:
        pieces_BPD: vectors of the pieces.
        batch: the encoded sentences.
    """
    return pieces_BPD.take_along_dim(batch.first_BT[:, :, None], 1)


def last_states(
    states_BPD: Float[Tensor, "batch piece size"], lengths_B: Int[Tensor, " batch"]
) -> Float[Tensor, "batch 1 size"]:
    """Return the final states of a bidirectional encoder: forward at the last piece, backward at the first.

    Args:
        states_BPD: states, the forward half first.
        lengths_B: pieces of each sentence.
    """
    forward_BPH, backward_BPH = states_BPD.chunk(2, dim=-1)
    last_B11 = (lengths_B - 1)[:, None, None]
    return torch.cat([forward_BPH.take_along_dim(last_B11, 1), backward_BPH[:, :1]], dim=-1)


def add_last_states_to(graph: Graph, states_BPD: Value, lengths_B: Value) -> Value:
    """Add `last_states` to a graph and return the name of the output."""
    forward_BPH, backward_BPH = graph.add_with_outputs("Split", states_BPD, outputs=2, axis=-1, num_outputs=2)
    last_B1 = graph.unsqueeze(graph.add("Sub", lengths_B, graph.constant(1)), 1)
    first_B1H = graph.add("Gather", backward_BPH, graph.constant([0]), axis=1)
    return graph.add("Concat", graph.take(forward_BPH, last_B1), first_B1H, axis=-1)


def mean_of_sentence(
    states_BPD: Float[Tensor, "batch piece size"], lengths_B: Int[Tensor, " batch"]
) -> Float[Tensor, "batch 1 size"]:
    """Return the mean over the pieces of a sentence.

    Args:
        states_BPD: states of the pieces.
        lengths_B: pieces of each sentence.
    """
    inside_BP = length_mask(lengths_B, states_BPD.shape[1])
    total_BD = states_BPD.masked_fill(~inside_BP[:, :, None], 0.0).sum(1)
    return (total_BD / lengths_B[:, None])[:, None]


def add_mean_of_sentence_to(graph: Graph, states_BPD: Value, lengths_B: Value) -> Value:
    """Add `mean_of_sentence` to a graph and return the name of the output."""
    inside_BP1 = graph.unsqueeze(graph.length_mask(graph.positions(states_BPD, 1), lengths_B), 2)
    masked_BPD = graph.add("Where", inside_BP1, states_BPD, graph.constant(0.0))
    total_B1D = graph.add("ReduceSum", masked_BPD, graph.constant([1]), keepdims=1)
    return graph.add("Div", total_B1D, graph.unsqueeze(graph.cast(lengths_B, "float32"), 1, 2))


def to_float16(values: Tensor) -> Tensor:
    """Return the values in float16, clamped to its range."""
    return values.clamp(-_FLOAT16_MAX, _FLOAT16_MAX).half()
