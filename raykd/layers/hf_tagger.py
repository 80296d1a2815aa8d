"""A Transformers classifier as a model: of tokens, or of sentences.

Shapes: B batch, P pieces, T labels (one per word, or one), L labels of the checkpoint, Y tags, D size.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import torch

from raykd.identity import PlainObject
from raykd.layers.heads import Places
from raykd.layers.hf_model import Frozen, HFModel
from raykd.layers.model import Output
from raykd.layers.piece_vectors import first_of_pieces
from raykd.structures import Chain
from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import ModelProto
    from torch import Tensor
    from transformers import PreTrainedModel

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.layers.label_map import LabelMap


class HFTagger(HFModel):
    """A classifier whose chain has no transitions. One of tokens labels a word at its first piece, or a sentence at the
    first piece of all; one of sentences (`pools`) gives one label by its own pooling, and reads what fits of a longer
    sentence, or of both texts of a pair, which `separator` is between. With `types` the second text's pieces are of
    type 1.

    `precision` is that of its outputs where it is not trained: in bf16 a processor that has it is two to three times
    faster. `places` says which tags a word may have by its place.
    """

    def __init__(
        self,
        model: PreTrainedModel,
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
        super().__init__(model, limit=limit, prefix=prefix, suffix=suffix, freeze=freeze)
        self.places = places or Places(None)
        self.unit, self.pools = unit, pools
        self._labels, self._separator, self._types = labels, tuple(separator), types
        self.precision: Literal["float32", "bf16"] = precision

    def forward(
        self,
        batch: TokenBatch,
        *,
        layers: Sequence[int] = (),
        pieces: Sequence[int] = (),
        attention: Sequence[int] = (),
    ) -> Output:
        if self.pools and int(batch.piece_lengths_B.max()) > self._limit:
            batch = self._cut(batch)
        bf16 = self.precision == "bf16" and not self.training
        with torch.autocast(batch.pieces_BP.device.type, torch.bfloat16) if bf16 else nullcontext():
            logits_BPL, states, scores = self.states_of(
                batch, (*layers, *pieces), attention, head=self.model.config.num_labels
            )

        def at_labels(values_BPD: Tensor) -> Tensor:
            return first_of_pieces(values_BPD, batch) if self.unit == "word" else values_BPD[:, :1]

        lengths_B = batch.lengths_B if self.unit == "word" else torch.ones_like(batch.lengths_B)
        emissions_BTY = self._labels.emissions(at_labels(logits_BPL).float(), lengths_B)
        chain = Chain(self.places(emissions_BTY), lengths_B)
        hidden = {layer: at_labels(states[layer]) for layer in layers}
        inside = {layer: states[layer] for layer in pieces}
        return Output(chain, hidden, inside, scores, batch.piece_lengths_B, self.legal)

    def to_onnx(self) -> ModelProto:
        from raykd.layers.traced import traced  # ONNX takes half a second to import

        return traced(self, self._scores, self.legal)

    def architecture(self) -> PlainObject:
        return {**super().architecture(), "separator": [*self._separator], "types": self._types}

    def _scores(
        self, pieces_BP: Tensor, piece_lengths_B: Tensor, first_BT: Tensor, lengths_B: Tensor
    ) -> Tensor:
        """The scores of labels [B, T, Y], in float32, of sentences that are read whole."""
        logits_BPL = self.read_whole((), pieces_BP, piece_lengths_B)
        if self.unit == "sentence":
            first_BT, lengths_B = torch.zeros_like(lengths_B)[:, None], torch.ones_like(lengths_B)
        # torch.export takes the sizes in take_along_dim for constants.
        logits_BTL = logits_BPL.gather(1, first_BT[:, :, None].expand(-1, -1, logits_BPL.shape[2]))
        return self.places(self._labels.emissions(logits_BTL, lengths_B))

    def _cut(self, batch: TokenBatch) -> TokenBatch:
        """What is read of sentences that are too long: the beginning, and of a pair those of both texts, of which the
        longer one loses its end first.
        """
        pieces_BP, lengths_B = batch.pieces_BP, batch.piece_lengths_B
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
        kept_BP = pieces_BP.take_along_dim((place_P + left_BP).clamp(max=pieces_BP.shape[1] - 1), 1)
        return replace(batch, pieces_BP=kept_BP, piece_lengths_B=lengths_B)

    def _is_second(self, pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        """Which pieces are of the second text of a pair, or end it; of a single text none."""
        inside_BP = length_mask(lengths_B, pieces_BP.shape[1])
        if not self._separator:
            return torch.zeros_like(inside_BP)
        # No text has this piece, which also ends the second text.
        ends_BP = (pieces_BP == self._separator[-1]).long()
        return (ends_BP.cumsum(1) - ends_BP >= self._separator.count(self._separator[-1])) & inside_BP

    def read_whole(self, layers: tuple[int, ...], pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        mask_BP = length_mask(lengths_B, pieces_BP.shape[1])
        types = {"token_type_ids": self._is_second(pieces_BP, lengths_B).long()} if self._types else {}
        found = self.model(
            input_ids=pieces_BP, attention_mask=mask_BP.long(), output_hidden_states=bool(layers), **types
        )
        logits_BPL = found.logits
        if self.pools:
            logits_BPL = logits_BPL[:, None].expand(-1, pieces_BP.shape[1], -1)
        states = [found.hidden_states[layer] for layer in layers]
        return torch.cat([logits_BPL, *states], -1) if states else logits_BPL
