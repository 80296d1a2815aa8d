"""A Transformers classifier as a model: of tokens, or of sentences.

Shapes: B batch, P pieces, T labels (one per word, or one), L labels of the checkpoint, Y tags, D size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import torch
from torch import nn

from raykd.errors import StoreError
from raykd.layers import Model, Output
from raykd.layers.dropout import OwnDropout
from raykd.layers.heads import Places
from raykd.layers.model import checked_layer
from raykd.layers.windows import in_windows
from raykd.structures import Chain

if TYPE_CHECKING:
    from onnx import ModelProto
    from torch import Tensor

    from raykd.corpora.encoding import TokenBatch
    from raykd.teachers.label_map import LabelMap

Frozen = Literal["embeddings"] | int


class HFTagger(Model):
    """A classifier whose chain has no transitions. One of tokens labels a word at its first piece, or a sentence at the
    first piece of all, and reads sentences longer than it can at once in overlapping windows (`layers/windows.py`); one
    of sentences (`pools`) gives one label by its own pooling, and reads what fits of a longer sentence, or of both
    texts of a pair, which `separator` is between. With `types` the second text's pieces are of type 1.

    `precision` is that of its outputs where it is not trained: in bf16 a processor that has it is two to three times
    faster. `freeze` names what is never trained, `places` says which tags a word may have by its place.
    """

    def __init__(
        self,
        model: Any,
        labels: LabelMap,
        *,
        unit: Literal["word", "sentence"],
        limit: int,
        prefix: int,
        suffix: int,
        separator: Sequence[int] = (),
        types: bool = False,
        pools: bool = False,
        precision: Literal["float32", "bf16"] = "float32",
        freeze: Sequence[Frozen] = (),
        places: Places | None = None,
    ):
        super().__init__()
        self.places = places or Places(None)
        self.model, self.unit, self.pools = model, unit, pools
        self._labels, self._limit, self._prefix, self._suffix = labels, limit, prefix, suffix
        self._separator, self._types = tuple(separator), types
        self.precision: Literal["float32", "bf16"] = precision
        self._freeze = tuple(freeze)
        self._attention: str = model.config._attn_implementation

    def forward(self, batch: TokenBatch, *, layers: Sequence[int] = ()) -> Output:
        depth = self.model.config.num_hidden_layers
        wanted = {layer: checked_layer(layer, depth, "the checkpoint") for layer in layers}
        bf16 = self.precision == "bf16" and not self.training
        device = batch.pieces_BP.device.type
        with (
            torch.autocast(device, torch.bfloat16) if bf16 else nullcontext(),
            OwnDropout() if self.training else nullcontext(),
        ):
            read_BTD = (self._of_sentences if self.pools else self._of_labels)(batch, tuple(wanted.values()))
        sizes = [self.model.config.num_labels, *(self.model.config.hidden_size for _ in wanted)]
        logits_BTL, *states = read_BTD.split(sizes, dim=-1)
        lengths_B = batch.lengths_B if self.unit == "word" else torch.ones_like(batch.lengths_B)
        chain = Chain(self.places(self._labels.emissions(logits_BTL.float(), lengths_B)), lengths_B)
        return Output(chain, dict(zip(wanted, states, strict=True)))

    def train(self, mode: bool = True) -> Self:
        # The fused kernels of attention draw their dropout themselves, by the rows that one worker has.
        self.model.set_attn_implementation("eager" if mode else self._attention)
        return super().train(mode)

    def keep_rows(self, kept: Sequence[int]) -> None:
        """Keep these rows alone of the embedding of pieces: ids are then places in `kept`."""
        whole = self.model.get_input_embeddings()
        rows = whole.weight.detach()[torch.tensor(kept, dtype=torch.long)].clone()
        self.model.set_input_embeddings(
            nn.Embedding.from_pretrained(rows, freeze=False, padding_idx=whole.padding_idx)
        )
        self.model.config.vocab_size = len(rows)

    @property
    def piece_limit(self) -> int:
        return self._limit

    def to_onnx(self) -> ModelProto:
        from raykd.layers.traced import traced  # ONNX takes half a second to import

        return traced(self, self._labelled)

    def architecture(self) -> dict[str, Any]:
        # As JSON, since a Transformers configuration holds types and numbers as keys.
        config = json.loads(self.model.config.to_json_string(use_diff=False))
        own = {"config": config, "limit": self._limit, "prefix": self._prefix, "suffix": self._suffix}
        return {**own, "separator": [*self._separator], "types": self._types}

    def embedding_matrix(self) -> Tensor:
        return self.model.get_input_embeddings().weight

    def hidden_size(self, layer: int) -> int:
        checked_layer(layer, self.model.config.num_hidden_layers, "the checkpoint")
        return self.model.config.hidden_size

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

    def _labelled(
        self, pieces_BP: Tensor, piece_lengths_B: Tensor, first_BT: Tensor, lengths_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The best labels [B, T] and their scores [B, T, Y], in float32, of sentences that are read whole."""
        logits_BPL = self._read((), pieces_BP, piece_lengths_B)
        if self.unit == "sentence":
            first_BT, lengths_B = torch.zeros_like(lengths_B)[:, None], torch.ones_like(lengths_B)
        # torch.export takes the sizes in take_along_dim for constants.
        logits_BTL = logits_BPL.gather(1, first_BT[:, :, None].expand(-1, -1, logits_BPL.shape[2]))
        scores_BTY = self.places(self._labels.emissions(logits_BTL, lengths_B))
        inside_BT = torch.arange(first_BT.shape[1]) < lengths_B[:, None]
        return torch.where(inside_BT, scores_BTY.argmax(-1), 0), scores_BTY

    def _of_labels(self, batch: TokenBatch, layers: tuple[int, ...]) -> Tensor:
        """Logits and states [B, T, L + D…] where labels are predicted."""
        # Windows are joined once for all that is read of a piece: logits first, then the states of each layer.
        read_BPD = in_windows(
            partial(self._read, layers), batch.pieces_BP, batch.piece_lengths_B,
            limit=self._limit, prefix=self._prefix, suffix=self._suffix,
        )  # fmt: skip
        return (
            read_BPD.take_along_dim(batch.first_BT[:, :, None], 1) if self.unit == "word" else read_BPD[:, :1]
        )

    def _of_sentences(self, batch: TokenBatch, layers: tuple[int, ...]) -> Tensor:
        """Logits of the sentence, and the states of its first piece: [B, 1, L + D…]."""
        pieces_BP, lengths_B = batch.pieces_BP, batch.piece_lengths_B
        if int(lengths_B.max()) > self._limit:
            pieces_BP, lengths_B = self._cut(pieces_BP, lengths_B)
        return self._read(layers, pieces_BP, lengths_B)

    def _cut(self, pieces_BP: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """What is read of sentences that are too long: the beginning, and of a pair those of both texts, of which the
        longer one loses its end first."""
        second_BP = self._is_second(pieces_BP, lengths_B)
        paired_B = second_BP.any(1)
        between_B = paired_B * len(self._separator)
        ends_B = lengths_B - self._suffix
        other_B = torch.where(paired_B, second_BP.sum(1) - self._suffix, 0)
        one_B = ends_B - other_B - between_B - self._prefix
        room_B = self._limit - self._prefix - self._suffix - between_B
        half_B = torch.where(one_B > other_B, room_B - room_B // 2, room_B // 2)
        kept_B = torch.minimum(one_B, torch.maximum(room_B - other_B, half_B))
        other_kept_B = torch.minimum(other_B, room_B - kept_B)
        lengths_B = self._prefix + kept_B + between_B + other_kept_B + self._suffix
        place_P = torch.arange(self._limit, device=pieces_BP.device)
        # What ends a text ends what is kept of it.
        left_BP = (one_B - kept_B)[:, None] * (place_P >= (self._prefix + kept_B)[:, None])
        left_BP += (other_B - other_kept_B)[:, None] * (place_P >= (lengths_B - self._suffix)[:, None])
        return pieces_BP.take_along_dim((place_P + left_BP).clamp(max=pieces_BP.shape[1] - 1), 1), lengths_B

    def _is_second(self, pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        """Which pieces are of the second text of a pair, or end it; of a single text none."""
        inside_BP = torch.arange(pieces_BP.shape[1], device=lengths_B.device) < lengths_B[:, None]
        if not self._separator:
            return torch.zeros_like(inside_BP)
        # No text has this piece, which also ends the second text.
        ends_BP = (pieces_BP == self._separator[-1]).long()
        return (ends_BP.cumsum(1) - ends_BP >= self._separator.count(self._separator[-1])) & inside_BP

    def _read(self, layers: tuple[int, ...], pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        mask_BP = torch.arange(pieces_BP.shape[1], device=lengths_B.device) < lengths_B[:, None]
        types = {"token_type_ids": self._is_second(pieces_BP, lengths_B).long()} if self._types else {}
        found = self.model(
            input_ids=pieces_BP, attention_mask=mask_BP.long(), output_hidden_states=bool(layers), **types
        )
        states = [found.hidden_states[layer] for layer in layers]
        if self.pools:
            return torch.cat([found.logits[:, None], *(own[:, :1] for own in states)], -1)
        return torch.cat([found.logits, *states], -1) if states else found.logits

    def _embeddings(self) -> nn.Module:
        base = self.model.base_model
        return base.embeddings if hasattr(base, "embeddings") else base.get_input_embeddings()

    def _layer(self, number: int) -> nn.Module:
        """The encoder's layer `number`, from 1."""
        depth = self.model.config.num_hidden_layers
        if not 1 <= number <= depth:
            hint = f"name layers from 1 to {depth}, or embeddings"
            raise StoreError(str(self.model.config.name_or_path), f"has no layer {number} to freeze", hint)
        lists = (part for part in self.model.base_model.modules() if isinstance(part, nn.ModuleList))
        layers = next((part for part in lists if len(part) == depth), None)
        if layers is None:
            problem = "has no list of layers, one of which could be frozen"
            raise StoreError(str(self.model.config.name_or_path), problem, "freeze embeddings alone")
        return layers[number - 1]
