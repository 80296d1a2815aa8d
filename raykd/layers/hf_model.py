"""What all models that are Transformers encoders have in common: how they read, and what of their inside they give.

Shapes: B batch, P pieces, D what is read of a piece, H heads.
"""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import torch
from torch import nn

from raykd.errors import StoreError
from raykd.identity import PlainObject
from raykd.layers.attention_scores import attention_scores, encoder_layers
from raykd.layers.dropout import OwnDropout, of_sentences
from raykd.layers.model import Model, checked_layer
from raykd.layers.windows import in_windows
from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor
    from transformers import PreTrainedModel

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.layers.attention_scores import Scores

Frozen = Literal["embeddings"] | int


class HFModel(Model):
    """A Transformers model. Sentences longer than `limit` are read in overlapping windows (`layers/windows.py`).

    Args:
        model: of a class of Transformers with a head.
        limit: the most pieces that it reads at once, `prefix` and `suffix` special ones around a sentence included.
        freeze: what is never trained: the embeddings, and layers by their numbers from 1.
    """

    def __init__(
        self, model: PreTrainedModel, *, limit: int, prefix: int, suffix: int, freeze: Sequence[Frozen] = ()
    ):
        super().__init__()
        self.model: Any = model
        self._limit, self._prefix, self._suffix = limit, prefix, suffix
        self._freeze = tuple(freeze)
        self._attention: str = self.model.config._attn_implementation

    def train(self, mode: bool = True) -> Self:
        # The fused kernels of attention draw their dropout themselves, by the rows that one worker has.
        dropped = mode and getattr(self.model.config, "attention_probs_dropout_prob", 1.0) > 0
        self.model.set_attn_implementation("eager" if dropped else self._attention)
        return super().train(mode)

    @property
    def depth(self) -> int:
        """Layers of the encoder."""
        return self.model.config.num_hidden_layers

    @property
    def piece_limit(self) -> int:
        return self._limit

    def pruned(self, kept: Sequence[int] | None) -> Self:
        """Itself, with these rows alone of its embedding of pieces; None: with all of them.

        Raises:
            StoreError: it cannot be pruned, or has no layer that `freeze` names.
        """
        if kept is not None:
            self.keep_rows(kept)
        self.fixed()  # refuses layers that are not there
        return self

    def keep_rows(self, kept: Sequence[int]) -> None:
        """Keep these rows alone of the embedding of pieces: ids are then places in `kept`."""
        whole = self.model.get_input_embeddings()
        rows = whole.weight.detach()[torch.tensor(kept, dtype=torch.long)].clone()
        self.model.set_input_embeddings(
            nn.Embedding.from_pretrained(rows, freeze=False, padding_idx=whole.padding_idx)
        )
        self.model.config.vocab_size = len(rows)

    def architecture(self) -> PlainObject:
        # As JSON, since a Transformers configuration holds types and numbers as keys.
        config = json.loads(self.model.config.to_json_string(use_diff=False))
        return {"config": config, "limit": self._limit, "prefix": self._prefix, "suffix": self._suffix}

    def embedding_matrix(self) -> Tensor:
        return self.model.get_input_embeddings().weight

    def hidden_size(self, layer: int) -> int:
        self.checked(layer)
        return self.model.config.hidden_size

    def checked(self, layer: int) -> int:
        """A layer's number from 0; ValueError where there is none."""
        return checked_layer(layer, self.depth, "the checkpoint")

    def fixed(self) -> Sequence[nn.Parameter]:
        parts = [self._embeddings() if part == "embeddings" else self._layer(part) for part in self._freeze]
        return [parameter for part in parts for parameter in part.parameters()]

    def layer_groups(self) -> Mapping[str, list[nn.Parameter]]:
        embeddings = [*self._embeddings().parameters()]
        body = {id(p): p for p in self.model.base_model.parameters()}
        known = {id(p) for p in embeddings}
        return {
            "head": [p for p in self.model.parameters() if id(p) not in body],
            "encoder": [p for key, p in body.items() if key not in known],
            "embeddings": embeddings,
        }

    def states_of(
        self, batch: TokenBatch, layers: Sequence[int], attention: Sequence[int], *, head: int = 0
    ) -> tuple[Tensor, dict[int, Tensor], Scores]:
        """What the head gives of each piece [B, P, `head`], the states [B, P, D] of `layers`, under the numbers that
        they are asked for by, and the attention scores of others.
        """
        number = {layer: self.checked(layer) for layer in layers}
        read = tuple(dict.fromkeys(number.values()))
        read_BPD, scores = self.read(batch, read, attention)
        sizes = [head, *(self.model.config.hidden_size for _ in read)]
        head_BPX, *states = read_BPD.split(sizes, -1)
        by_number = dict(zip(read, states, strict=True))
        return head_BPX, {layer: by_number[place] for layer, place in number.items()}, scores

    def read(
        self, batch: TokenBatch, layers: Sequence[int], attention: Sequence[int]
    ) -> tuple[Tensor, Scores]:
        """What `read_whole` gives [B, P, D] for sentences of any length, and the attention scores of these layers."""
        own = partial(self.read_whole, tuple(layers))
        windows = partial(in_windows, limit=self._limit, prefix=self._prefix, suffix=self._suffix)
        pieces_BP, lengths_B = batch.pieces_BP, batch.piece_lengths_B
        with OwnDropout() if self.training else nullcontext():
            if not attention:
                return windows(own, pieces_BP, lengths_B), {}
            fits_B = lengths_B <= self._limit
            if bool(fits_B.all()):
                with attention_scores(self.model.base_model, attention) as found:
                    return own(pieces_BP, lengths_B), found
            return windows(own, pieces_BP, lengths_B), self._of_those_that_fit(batch, fits_B, attention)

    def read_whole(self, layers: tuple[int, ...], pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        """The states of these layers [B, P, D], side by side, or of the last one where none is named, of sentences
        that it reads at once; a classifier's begin with what its head gives.
        """
        mask_BP = length_mask(lengths_B, pieces_BP.shape[1])
        more = any(layer != self.depth for layer in layers)
        found = self.model.base_model(
            input_ids=pieces_BP, attention_mask=mask_BP.long(), output_hidden_states=more
        )
        if not more:
            return found.last_hidden_state
        return torch.cat([found.hidden_states[layer] for layer in layers], -1)

    def _of_those_that_fit(self, batch: TokenBatch, fits_B: Tensor, attention: Sequence[int]) -> Scores:
        rows = fits_B.nonzero()[:, 0]
        pieces, heads = batch.pieces_BP.shape[1], self.model.config.num_attention_heads
        empty = torch.full((len(fits_B), heads, pieces, pieces), -math.inf, device=rows.device)
        if not len(rows):
            return dict.fromkeys(attention, empty)
        lengths = batch.piece_lengths_B[rows]
        most = int(lengths.max())
        with attention_scores(self.model.base_model, attention) as found, of_sentences(rows):
            self.read_whole((), batch.pieces_BP[rows, :most], lengths)
        return {layer: _placed(scores, rows, empty) for layer, scores in found.items()}

    def _embeddings(self) -> nn.Module:
        base = self.model.base_model
        return base.embeddings if hasattr(base, "embeddings") else base.get_input_embeddings()

    def _layer(self, number: int) -> nn.Module:
        """The encoder's layer `number`, from 1."""
        if not 1 <= number <= self.depth:
            hint = f"name layers from 1 to {self.depth}, or embeddings"
            raise StoreError(str(self.model.config.name_or_path), f"has no layer {number} to freeze", hint)
        layers = encoder_layers(self.model.base_model, self.depth)
        if layers is None:
            problem = "has no list of layers, one of which could be frozen"
            raise StoreError(str(self.model.config.name_or_path), problem, "freeze embeddings alone")
        return layers[number - 1]


def _placed(scores_RHQQ: Tensor, rows: Tensor, empty_BHPP: Tensor) -> Tensor:
    """The scores of some sentences in their places among all."""
    free = empty_BHPP.shape[-1] - scores_RHQQ.shape[-1]
    padded_RHPP = nn.functional.pad(scores_RHQQ, (0, free, 0, free))
    return empty_BHPP.to(padded_RHPP.dtype).index_copy(0, rows, padded_RHPP)
