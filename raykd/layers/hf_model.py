"""The base of all models with a Transformers encoder: reading of text, hidden states, and attention scores.

Shapes: B batch, P pieces, D components of the output for a piece, X those of a head, H attention heads.
"""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import torch
from torch import nn
from typing_extensions import override

from raykd.errors import StoreError
from raykd.identity import PlainObject
from raykd.layers.attention_scores import attention_scores, encoder_layers
from raykd.layers.cut import Cut
from raykd.layers.dropout import ReproducibleDropout, masks_by_sentence
from raykd.layers.model import Model, resolve_layer
from raykd.layers.smaller_encoder import cut_encoder, standard_form
from raykd.layers.windows import read_in_windows
from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor
    from transformers import PreTrainedModel

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.layers.attention_scores import Scores
    from raykd.layers.smaller_encoder import Parts

FrozenPart = Literal["embeddings"] | int
"""The embeddings, or a layer by its number from 1."""


class HFModel(Model):
    """A Transformers model; sentences longer than `limit` are read in overlapping windows (`layers/windows.py`).

    Args:
        model: a model of Transformers, with or without a head.
        limit: most pieces that it reads at once, the special ones around a sentence included.
        prefix: special pieces before a sentence.
        suffix: special pieces after a sentence.
        freeze: parts that are never trained.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        limit: int,
        prefix: int,
        suffix: int,
        freeze: Sequence[FrozenPart] = (),
    ):
        super().__init__()
        self.model: Any = model
        self._limit, self._prefix, self._suffix = limit, prefix, suffix
        self._freeze = tuple(freeze)
        self._cut = Cut()
        self._whole_config: PlainObject = {}
        self._whole_heads: int = self.model.config.num_attention_heads
        self._attention_implementation: str = self.model.config._attn_implementation

    @override
    def train(self, mode: bool = True) -> Self:
        """Set the training mode; attention is computed without fused kernels while it has dropout."""
        # Fused attention kernels draw their own dropout masks, which would depend on the rows of one worker.
        has_dropout = mode and getattr(self.model.config, "attention_probs_dropout_prob", 1.0) > 0
        self.model.set_attn_implementation("eager" if has_dropout else self._attention_implementation)
        return super().train(mode)

    @property
    def depth(self) -> int:
        """Number of layers of the encoder."""
        return self.model.config.num_hidden_layers

    @property
    @override
    def piece_limit(self) -> int:
        return self._limit

    def prune(self, kept_pieces: Sequence[int] | None) -> Self:
        """Prune the embedding of pieces and return the model.

        Args:
            kept_pieces: rows that stay; None: all of them.

        Raises:
            StoreError: it cannot be pruned, or has no layer that `freeze` names.
        """
        if kept_pieces is not None:
            self.prune_embedding(kept_pieces)
        self.fixed_parameters()  # refuses a `freeze` that names missing layers
        return self

    def prune_embedding(self, kept_pieces: Sequence[int]) -> None:
        """Keep only some rows of the embedding of pieces; ids become places in `kept_pieces`.

        Args:
            kept_pieces: rows that stay.
        """
        embedding = self.model.get_input_embeddings()
        rows = embedding.weight.detach()[torch.tensor(kept_pieces, dtype=torch.long)].clone()
        self.model.set_input_embeddings(
            nn.Embedding.from_pretrained(rows, freeze=False, padding_idx=embedding.padding_idx)
        )
        self.model.config.vocab_size = len(rows)

    def cut(self, cut: Cut, kept: Sequence[Parts] | None = None) -> Self:
        """Cut the encoder down and return the model.

        Args:
            cut: what stays of the whole encoder.
            kept: for each layer of the whole encoder the heads and neurons that stay. None: only the sizes matter.

        Raises:
            StoreError: the encoder has not all parts that stay, or no layer that `freeze` names.
        """
        if not cut.is_whole:
            self._whole_config, self._cut = self._plain_config(), cut.plain
            cut_encoder(self.model, cut, kept)
            self.fixed_parameters()  # refuses a `freeze` that names missing layers
        return self

    def standard_form(self) -> PreTrainedModel:
        """Return a copy of the model of Transformers, of the sizes that its configuration describes.

        Raises:
            StoreError: no configuration describes the model.
        """
        return standard_form(self.model, self._whole_heads)

    @override
    def architecture(self) -> PlainObject:
        sizes = {"limit": self._limit, "prefix": self._prefix, "suffix": self._suffix}
        if self._cut.is_whole:
            return {"config": self._plain_config(), **sizes}
        return {"config": self._whole_config, **sizes, "cut": self._cut.model_dump(mode="json")}

    def _plain_config(self) -> PlainObject:
        # As JSON, since a Transformers configuration holds types and numbers as keys.
        return json.loads(self.model.config.to_json_string(use_diff=False))

    @override
    def embedding_matrix(self) -> Tensor:
        return self.model.get_input_embeddings().weight

    @override
    def hidden_size(self, layer: int) -> int:
        self.layer_number(layer)
        return self.model.config.hidden_size

    def layer_number(self, layer: int) -> int:
        """Return the number of a layer, counted from 0.

        Args:
            layer: number of the layer; a negative one counts from the last layer.

        Raises:
            ValueError: there is no such layer.
        """
        return resolve_layer(layer, self.depth, "the checkpoint")

    @override
    def fixed_parameters(self) -> Sequence[nn.Parameter]:
        parts = [self._embeddings() if part == "embeddings" else self._layer(part) for part in self._freeze]
        return [parameter for part in parts for parameter in part.parameters()]

    @override
    def layer_groups(self) -> Mapping[str, list[nn.Parameter]]:
        embeddings = [*self._embeddings().parameters()]
        body = {id(p): p for p in self.model.base_model.parameters()}
        embedding_ids = {id(p) for p in embeddings}
        return {
            "head": [p for p in self.model.parameters() if id(p) not in body],
            "encoder": [p for key, p in body.items() if key not in embedding_ids],
            "embeddings": embeddings,
        }

    def read_states(
        self, batch: TokenBatch, layers: Sequence[int], attention: Sequence[int], *, head: int = 0
    ) -> tuple[Tensor, dict[int, Tensor], Scores]:
        """Return the head's output, hidden states and attention scores of a batch.

        Args:
            batch: sentences of any length.
            layers: layers whose states are returned.
            attention: layers whose attention scores are returned.
            head: components of the head's output, which `read_whole` puts before the states; 0: none.

        Returns:
            The head's output [B, P, head]; the states [B, P, D] by the layer numbers of `layers`; the attention scores
            [B, H, P, P] by layer.
        """
        layer_numbers = {layer: self.layer_number(layer) for layer in layers}
        read_layers = tuple(dict.fromkeys(layer_numbers.values()))
        output_BPD, scores = self.read_batch(batch, read_layers, attention)
        sizes = [head, *(self.model.config.hidden_size for _ in read_layers)]
        head_BPX, *states = output_BPD.split(sizes, -1)
        by_number = dict(zip(read_layers, states, strict=True))
        return head_BPX, {layer: by_number[number] for layer, number in layer_numbers.items()}, scores

    def read_batch(
        self, batch: TokenBatch, layers: Sequence[int], attention: Sequence[int]
    ) -> tuple[Tensor, Scores]:
        """Return the output of `read_whole` for sentences of any length, and attention scores.

        Args:
            batch: sentences of any length.
            layers: layers for `read_whole`.
            attention: layers whose attention scores are returned.

        Returns:
            The output [B, P, D], and the attention scores [B, H, P, P] by layer, −∞ for sentences beyond the limit.
        """
        read_whole = partial(self.read_whole, tuple(layers))
        windows = partial(read_in_windows, limit=self._limit, prefix=self._prefix, suffix=self._suffix)
        pieces_BP, lengths_B = batch.pieces_BP, batch.piece_lengths_B
        with ReproducibleDropout() if self.training else nullcontext():
            if not attention:
                return windows(read_whole, pieces_BP, lengths_B), {}
            fits_B = lengths_B <= self._limit
            if bool(fits_B.all()):
                with attention_scores(self.model.base_model, attention) as scores:
                    return read_whole(pieces_BP, lengths_B), scores
            return windows(read_whole, pieces_BP, lengths_B), self._scores_within_limit(
                batch, fits_B, attention
            )

    def read_whole(self, layers: tuple[int, ...], pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        """Return the states of some layers side by side, for sentences within the limit.

        A classifier puts its head's output before them.

        Args:
            layers: numbers of the layers from 0; empty for the last layer only.
            pieces_BP: pieces of the sentences.
            lengths_B: pieces of each sentence.

        Returns:
            The states [B, P, D].
        """
        mask_BP = length_mask(lengths_B, pieces_BP.shape[1])
        all_layers = any(layer != self.depth for layer in layers)
        output = self.model.base_model(
            input_ids=pieces_BP, attention_mask=mask_BP.long(), output_hidden_states=all_layers
        )
        if not all_layers:
            return output.last_hidden_state
        return torch.cat([output.hidden_states[layer] for layer in layers], -1)

    def _scores_within_limit(self, batch: TokenBatch, fits_B: Tensor, attention: Sequence[int]) -> Scores:
        """Return the attention scores by layer, −∞ for sentences beyond the limit."""
        rows = fits_B.nonzero()[:, 0]
        pieces, heads = batch.pieces_BP.shape[1], self.model.config.num_attention_heads
        empty = torch.full((len(fits_B), heads, pieces, pieces), -math.inf, device=rows.device)
        if not len(rows):
            return dict.fromkeys(attention, empty)
        lengths = batch.piece_lengths_B[rows]
        longest = int(lengths.max())
        with attention_scores(self.model.base_model, attention) as scores, masks_by_sentence(rows):
            self.read_whole((), batch.pieces_BP[rows, :longest], lengths)
        return {layer: _scatter_rows(scores_RHQQ, rows, empty) for layer, scores_RHQQ in scores.items()}

    def _embeddings(self) -> nn.Module:
        base = self.model.base_model
        return base.embeddings if hasattr(base, "embeddings") else base.get_input_embeddings()

    def _layer(self, number: int) -> nn.Module:
        if not 1 <= number <= self.depth:
            hint = f"name layers from 1 to {self.depth}, or embeddings"
            raise StoreError(str(self.model.config.name_or_path), f"has no layer {number} to freeze", hint)
        layers = encoder_layers(self.model.base_model, self.depth)
        if layers is None:
            problem = "has no list of layers, one of which could be frozen"
            raise StoreError(str(self.model.config.name_or_path), problem, "freeze embeddings alone")
        return layers[number - 1]


def _scatter_rows(scores_RHQQ: Tensor, rows: Tensor, empty_BHPP: Tensor) -> Tensor:
    """Return `empty_BHPP` with the scores of R of the B sentences, padded from Q to P pieces, in their rows."""
    padding = empty_BHPP.shape[-1] - scores_RHQQ.shape[-1]
    padded_RHPP = nn.functional.pad(scores_RHQQ, (0, padding, 0, padding))
    return empty_BHPP.to(padded_RHPP.dtype).index_copy(0, rows, padded_RHPP)
