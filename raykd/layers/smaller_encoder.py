"""A smaller Transformers encoder cut from a larger one, in place.

Shapes: B batch, P pieces, D components of a state, H attention heads, F components of a head, N neurons of the
feed-forward part, V pieces of the vocabulary, R rank, X any axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn
from typing_extensions import override

from raykd.errors import StoreError
from raykd.layers.attention_scores import encoder_layers
from raykd.layers.cut import FEED_FORWARD
from raykd.layers.reduction import svd_factors

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor
    from transformers import PreTrainedModel

    from raykd.layers.cut import Cut


class Names(NamedTuple):
    """Names of the linear layers within a layer of an encoder."""

    queries_keys_values: tuple[str, str, str]
    attention_output: str
    feed_forward: str
    feed_forward_output: str


_BERT = Names(
    ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention.output.dense", "intermediate.dense", "output.dense",
)  # fmt: skip
_DISTILBERT = Names(
    ("attention.q_lin", "attention.k_lin", "attention.v_lin"), "attention.out_lin", "ffn.lin1", "ffn.lin2"
)


@dataclass(frozen=True)
class Parts:
    """Heads and neurons of one layer: their importance, or the numbers of those that stay."""

    heads: Sequence[Any]
    neurons: Sequence[Any]


class FactorisedEmbedding(nn.Module):
    """Piece vectors as the product of two matrices, V × R and R × D."""

    def __init__(self, pieces: int, rank: int, size: int, padding: int | None):
        super().__init__()
        self.factor = nn.Embedding(pieces, rank, padding_idx=padding)
        self.expansion = nn.Linear(rank, size, bias=False)

    @property
    def weight(self) -> Tensor:
        """The factor with a row [R] for each piece."""
        return self.factor.weight

    @property
    def padding_idx(self) -> int | None:
        """Number of the padding."""
        return self.factor.padding_idx

    @override
    def forward(self, pieces_X: Tensor) -> Float[Tensor, "... size"]:
        return self.expansion(self.factor(pieces_X))

    def multiplied(self) -> nn.Embedding:
        """Return the embedding of the product [V, D]."""
        vectors_VD = self.factor.weight.detach() @ self.expansion.weight.detach().T
        return nn.Embedding.from_pretrained(vectors_VD, freeze=False, padding_idx=self.padding_idx)


def cut_encoder(model: PreTrainedModel, cut: Cut, kept: Sequence[Parts] | None = None) -> None:
    """Cut a model of Transformers down, in place; its configuration has the new sizes.

    Args:
        model: the model, with or without a head.
        cut: what stays.
        kept: for each layer of the whole encoder the heads and neurons that stay. None: only the sizes matter, so the
            first ones stay, and factorised vectors are random.

    Raises:
        StoreError: the encoder has not all parts that stay, or no list of layers.
    """
    config: Any = model.config
    cut.check(config, str(config.name_or_path))
    layers = layers_of(model)
    if cut.is_narrow:
        names, heads, neurons = names_of(config), config.num_attention_heads, neurons_of(config)
        default = Parts(range(cut.heads or heads), range(cut.feed_forward or neurons))
        for number, layer in enumerate(layers):
            _narrow(layer, names, kept[number] if kept else default, heads)
        config.num_attention_heads = cut.heads or heads
        setattr(config, FEED_FORWARD[config.model_type], cut.feed_forward or neurons)
    if cut.layers is not None:
        for number in reversed(range(len(layers))):
            if number not in cut.layers:
                del layers[number]
        config.num_hidden_layers = len(layers)
        if getattr(config, "layer_types", None):
            config.layer_types = [config.layer_types[number] for number in cut.layers]
    if cut.embedding_rank is not None:
        embedding = model.get_input_embeddings()
        model.set_input_embeddings(_factorised(embedding, cut.embedding_rank, exact=kept is not None))


def standard_form(model: PreTrainedModel, heads: int) -> PreTrainedModel:
    """Return a copy that a class of Transformers builds from its configuration alone, with the same output.

    Heads that were left out come back with zeros in the place of their output, and factorised vectors are multiplied.

    Args:
        model: the model, cut or whole.
        heads: attention heads of a layer before the cut.

    Raises:
        StoreError: no configuration describes the model.
    """
    standard: Any = deepcopy(model)
    embedding = standard.get_input_embeddings()
    if isinstance(embedding, FactorisedEmbedding):
        standard.set_input_embeddings(embedding.multiplied())
    if heads != standard.config.num_attention_heads:
        names = names_of(standard.config)
        for layer in layers_of(standard):
            _widen(layer, names, standard.config.num_attention_heads, heads)
        standard.config.num_attention_heads = heads
    with torch.device("meta"):
        built = type(standard)._from_config(standard.config)
    shapes = (
        {name: tensor.shape for name, tensor in form.state_dict().items()} for form in (standard, built)
    )
    if next(shapes) != next(shapes):
        problem = "lost a layer that an encoder of its type must have, so that no configuration describes it"
        raise StoreError(
            str(standard.config.name_or_path), problem, "keep layer 0, or export it without --checkpoint"
        )
    return standard


def layers_of(model: PreTrainedModel) -> nn.ModuleList:
    """Return the layers of an encoder; raise StoreError if it has no list of them."""
    layers = encoder_layers(model.base_model, model.config.num_hidden_layers)
    if layers is None:
        problem = "has no list of layers, of which some could stay"
        raise StoreError(str(model.config.name_or_path), problem, "omit student.layers")
    return layers


def names_of(config: Any) -> Names:
    """Return the names of the linear layers of an encoder whose layers can be narrowed."""
    return _DISTILBERT if config.model_type == "distilbert" else _BERT


def neurons_of(config: Any) -> int:
    """Return the number of neurons of a layer of an encoder whose layers can be narrowed."""
    return getattr(config, FEED_FORWARD[config.model_type])


def _narrow(layer: nn.Module, names: Names, kept: Parts, heads: int) -> None:
    """Keep some heads and neurons of a layer with `heads` heads."""
    output: Any = layer.get_submodule(names.attention_output)
    size = output.in_features // heads
    head_places = [head * size + place for head in kept.heads for place in range(size)]
    for name in names.queries_keys_values:
        _keep(layer.get_submodule(name), head_places, 0)
    _keep(output, head_places, 1)
    _keep(layer.get_submodule(names.feed_forward), kept.neurons, 0)
    _keep(layer.get_submodule(names.feed_forward_output), kept.neurons, 1)


def _keep(linear: Any, places: Sequence[int], axis: int) -> None:
    """Keep outputs (axis 0) or inputs (axis 1) of a linear layer."""
    index = torch.tensor(list(places), dtype=torch.long)
    linear.weight = nn.Parameter(linear.weight.detach().index_select(axis, index))
    if axis == 0:
        linear.bias = nn.Parameter(linear.bias.detach()[index])
    linear.out_features, linear.in_features = linear.weight.shape


def _widen(layer: nn.Module, names: Names, heads: int, whole_heads: int) -> None:
    """Add heads without effect behind the `heads` of a layer."""
    output: Any = layer.get_submodule(names.attention_output)
    missing: int = output.in_features // heads * (whole_heads - heads)
    for name, axis in (*((name, 0) for name in names.queries_keys_values), (names.attention_output, 1)):
        linear: Any = layer.get_submodule(name)
        padding = (0, 0, 0, missing) if axis == 0 else (0, missing)
        linear.weight = nn.Parameter(nn.functional.pad(linear.weight.detach(), padding))
        if axis == 0:
            linear.bias = nn.Parameter(nn.functional.pad(linear.bias.detach(), (0, missing)))


def _factorised(embedding: Any, rank: int, *, exact: bool) -> FactorisedEmbedding:
    """The product of rank R nearest to the embedding; without `exact`, a random one of its shape."""
    pieces, size = embedding.weight.shape
    product = FactorisedEmbedding(pieces, rank, size, embedding.padding_idx)
    if exact:
        factor_VR, axes_DR = svd_factors(embedding.weight.detach(), rank)
        product.factor.weight = nn.Parameter(factor_VR)
        product.expansion.weight = nn.Parameter(axes_DR)
    return product
