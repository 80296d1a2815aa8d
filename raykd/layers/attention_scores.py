"""The self-attention scores of a Transformers encoder, before their softmax: Transformers gives them after it only.

Shapes: B batch, P pieces, H heads, F components of a head.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from torch import nn

from raykd.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jaxtyping import Float
    from torch import Tensor
    from transformers import PreTrainedModel

NAMES = (("query", "key"), ("q_lin", "k_lin"), ("q_proj", "k_proj"))
"""What Transformers calls the layers that queries and keys come from: BERT and its like, DistilBERT, others."""

ROTARY = ("rotary", "roformer")
"""What the names of modules, or of their classes, have where queries and keys are turned (Su et al. 2021)."""
HINT = "omit the objective 'attention', or use BERT, RoBERTa or DistilBERT"

Scores = dict[int, "Float[Tensor, 'batch head piece piece']"]


def encoder_layers(base: nn.Module, depth: int) -> nn.ModuleList | None:
    """The layers of a Transformers encoder from below; None where it has no list of them."""
    lists = (part for part in base.modules() if isinstance(part, nn.ModuleList))
    return next((part for part in lists if len(part) == depth), None)


@contextmanager
def attention_scores(base: PreTrainedModel, layers: Sequence[int]) -> Iterator[Scores]:
    """While it is open, each pass through `base` puts the scores q · k / √F of these layers, from 1, into what it
    gives.

    Raises:
        StoreError: the encoder does not say which of its layers queries and keys come from, or turns them by their
            positions afterwards.
    """
    config, name, found = base.config, str(base.config.name_or_path), Scores()
    names = [f"{own} {type(part).__name__}".lower() for own, part in base.named_modules()]
    if any(word in own for own in names for word in ROTARY):
        problem = "turns queries and keys by their positions, so that its attention scores are not those of the layers"
        raise StoreError(name, problem, HINT)
    stack, heads = encoder_layers(base, config.num_hidden_layers), config.num_attention_heads
    with ExitStack() as hooks:
        for layer in layers:
            query, key = _projections(stack[layer - 1] if stack is not None else None, name)
            kept: list[Tensor] = []
            hooks.callback(query.register_forward_hook(_keeping(kept)).remove)
            hooks.callback(key.register_forward_hook(_scoring(kept, found, layer, heads)).remove)
        yield found


def _projections(layer: nn.Module | None, name: str) -> tuple[nn.Module, nn.Module]:
    own = {} if layer is None else {each.rpartition(".")[2]: part for each, part in layer.named_modules()}
    for query, key in NAMES:
        if query in own and key in own:
            return own[query], own[key]
    problem = "does not say which layers its queries and keys come from, so it has no attention scores"
    raise StoreError(name, problem, HINT)


def _keeping(kept: list[Tensor]) -> Callable[..., None]:
    def hook(module: nn.Module, inputs: object, output: Tensor) -> None:
        kept[:] = [output]

    return hook


def _scoring(kept: list[Tensor], found: Scores, layer: int, heads: int) -> Callable[..., None]:
    def hook(module: nn.Module, inputs: object, output: Tensor) -> None:
        # Transformers computes queries before keys.
        queries_BHPF, keys_BHPF = (
            each.unflatten(-1, (heads, -1)).transpose(1, 2) for each in (kept[0], output)
        )
        found[layer] = queries_BHPF @ keys_BHPF.mT * queries_BHPF.shape[-1] ** -0.5

    return hook
