"""The importance of heads and neurons in a Transformers encoder: the mean length of what they add to a state.

Shapes: P pieces, D components of a state, H attention heads, F components of a head, N neurons of the feed-forward
part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import nn

from raykd.layers.smaller_encoder import Parts, layers_of, names_of, neurons_of
from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from torch import Tensor

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.layers.cut import Cut
    from raykd.layers.hf_model import HFModel


def part_importance(model: HFModel, batches: Iterable[TokenBatch]) -> list[Parts]:
    """Return the importance of the heads and neurons of each layer: see `Cut`.

    Args:
        model: the whole encoder.
        batches: text within the limit of the model.

    Raises:
        StoreError: heads and neurons of the encoder cannot be told apart.
    """
    encoder = model.model
    names, heads = names_of(encoder.config), encoder.config.num_attention_heads
    layers = layers_of(encoder)
    sums = [[torch.zeros(heads), torch.zeros(neurons_of(encoder.config))] for _ in layers]
    pieces, inside_BP = 0, torch.ones(0, 0, dtype=torch.bool)

    def add_heads(number: int, linear: nn.Linear, inputs: tuple[Tensor, ...]) -> None:
        added_PHD = torch.einsum(
            "phf,dhf->phd",
            inputs[0][inside_BP].unflatten(-1, (heads, -1)),
            linear.weight.unflatten(-1, (heads, -1)),
        )
        sums[number][0] += added_PHD.norm(dim=-1).sum(0).cpu()

    def add_neurons(number: int, linear: nn.Linear, inputs: tuple[Tensor, ...]) -> None:
        lengths_N = linear.weight.norm(dim=0)
        sums[number][1] += (inputs[0][inside_BP].abs().sum(0) * lengths_N).cpu()

    with ExitStack() as hooks, torch.inference_mode():
        for number, layer in enumerate(layers):
            for name, add in ((names.attention_output, add_heads), (names.feed_forward_output, add_neurons)):
                hook = partial(add, number)
                hooks.callback(layer.get_submodule(name).register_forward_pre_hook(hook).remove)
        for batch in batches:
            inside_BP = length_mask(batch.piece_lengths_B, batch.pieces_BP.shape[1])
            pieces += int(inside_BP.sum())
            model.read_whole((), batch.pieces_BP, batch.piece_lengths_B)
    return [Parts((heads_H / pieces).tolist(), (neurons_N / pieces).tolist()) for heads_H, neurons_N in sums]


def most_important(importance: Sequence[Parts], cut: Cut) -> list[Parts]:
    """Return the heads and neurons that stay in each layer of the whole encoder, in their order.

    Args:
        importance: of all heads and neurons, by layer.
        cut: says how many stay.
    """
    return [
        Parts(_largest(layer.heads, cut.heads), _largest(layer.neurons, cut.feed_forward))
        for layer in importance
    ]


def _largest(importance: Sequence[float], count: int | None) -> list[int]:
    numbers = range(len(importance))
    return sorted(sorted(numbers, key=lambda number: -importance[number])[:count])
