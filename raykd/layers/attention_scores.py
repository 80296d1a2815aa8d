"""Self-attention scores of a Transformers encoder before the softmax; Transformers returns attention only after it.

Shapes: B batch, P pieces, H heads, F components of a head.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from torch import nn

from raykd.errors import StoreError
from raykd.layers.checkpoint import quiet_transformers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jaxtyping import Float
    from torch import Tensor
    from transformers import PreTrainedModel

NAMES = (("query", "key"), ("q_lin", "k_lin"), ("q_proj", "k_proj"))
"""Names of the layers for queries and keys: in BERT and its descendants, in DistilBERT, in others."""

ROTARY = ("rotary", "roformer")
"""Parts of names of modules or classes that rotate queries and keys by position (Su et al. 2021)."""
HINT = "omit the objective 'attention', or use BERT, RoBERTa, XLM-R or DistilBERT"

Scores = dict[int, "Float[Tensor, 'batch head piece piece']"]


def encoder_layers(base: nn.Module, depth: int) -> nn.ModuleList | None:
    """Return the layers of a Transformers encoder from the bottom; None where it has no list of them.

    Args:
        base: the encoder.
        depth: number of its layers.
    """
    lists = (part for part in base.modules() if isinstance(part, nn.ModuleList))
    return next((part for part in lists if len(part) == depth), None)


@contextmanager
def attention_scores(base: PreTrainedModel, layers: Sequence[int]) -> Iterator[Scores]:
    """Collect the attention scores q · k / √F of forward passes through `base` inside the `with` block.

    Args:
        base: the encoder.
        layers: numbers of layers, from 1.

    Yields:
        A dictionary from the layer to its scores [B, H, P, P], filled by each forward pass.

    Raises:
        StoreError: the names of the encoder's layers do not say which compute queries and keys, or queries and keys are
            rotated by position afterwards.
    """
    config, name, scores = base.config, str(base.config.name_or_path), Scores()
    _refuse_rotation(base, name)
    stack, heads = encoder_layers(base, config.num_hidden_layers), config.num_attention_heads
    with ExitStack() as hooks:
        for layer in layers:
            query, key = _projections(stack[layer - 1] if stack is not None else None, name)
            queries: list[Tensor] = []
            hooks.callback(query.register_forward_hook(_store_queries(queries)).remove)
            hooks.callback(key.register_forward_hook(_store_scores(queries, scores, layer, heads)).remove)
        yield scores


def refuse_hidden_attention(folder: str) -> None:
    """Check that attention scores can be read from a checkpoint's encoder, by its configuration alone.

    Args:
        folder: folder of the checkpoint.

    Raises:
        StoreError: as of `attention_scores`, or no encoder has this configuration.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    try:
        with torch.device("meta"), quiet_transformers():
            base = AutoModel.from_config(AutoConfig.from_pretrained(folder, trust_remote_code=False))
    except (OSError, ValueError) as error:
        raise StoreError(
            folder, f"cannot be loaded ({error})", "give a checkpoint that AutoModel reads"
        ) from error
    _refuse_rotation(base, folder)
    stack = encoder_layers(base, base.config.num_hidden_layers)
    _projections(None if stack is None else stack[0], folder)


def _refuse_rotation(base: nn.Module, name: str) -> None:
    names = [f"{module_name} {type(part).__name__}".lower() for module_name, part in base.named_modules()]
    if any(word in module_name for module_name in names for word in ROTARY):
        problem = (
            "rotates queries and keys by position, so its attention scores cannot be read from its layers"
        )
        raise StoreError(name, problem, HINT)


def _projections(layer: nn.Module | None, name: str) -> tuple[nn.Module, nn.Module]:
    parts = (
        {}
        if layer is None
        else {module_name.rpartition(".")[2]: part for module_name, part in layer.named_modules()}
    )
    for query, key in NAMES:
        if query in parts and key in parts:
            return parts[query], parts[key]
    problem = "has no layers named as those of queries and keys, so its attention scores cannot be read"
    raise StoreError(name, problem, HINT)


def _store_queries(queries: list[Tensor]) -> Callable[..., None]:
    def hook(module: nn.Module, inputs: object, output: Tensor) -> None:
        queries[:] = [output]

    return hook


def _store_scores(queries: list[Tensor], scores: Scores, layer: int, heads: int) -> Callable[..., None]:
    def hook(module: nn.Module, inputs: object, output: Tensor) -> None:
        # Transformers computes queries before keys.
        queries_BHPF, keys_BHPF = (
            values.unflatten(-1, (heads, -1)).transpose(1, 2) for values in (queries[0], output)
        )
        scores[layer] = queries_BHPF @ keys_BHPF.mT * queries_BHPF.shape[-1] ** -0.5

    return hook
