"""A Transformers classifier as a model: of tokens, or of sentences.

Shapes: B batch, P pieces, T labels (one per word, or one), L labels of the checkpoint, Y tags, D size.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import torch
from typing_extensions import override

from raykd.identity import PlainObject
from raykd.layers.heads import TagMask
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
    """A Transformers classifier; the labels of a sentence are a chain without transitions.

    A token classifier labels a word at its first piece, or a sentence at its very first piece. A sequence classifier
    (`pools`) gives one label by its own pooling. It reads only the beginning of a sentence that is too long, or of both
    texts of a pair.

    Args:
        model: a classifier of Transformers.
        labels: the classifier's labels as tags.
        unit: one label for each word, or for each sentence.
        limit: see `HFModel`.
        prefix: see `HFModel`.
        suffix: see `HFModel`.
        separator: pieces between the texts of a pair.
        types: give the pieces of the second text of a pair type 1.
        pools: a sequence classifier.
        precision: precision of its outputs outside training. With bf16 a processor that supports it is two to three
            times faster.
        freeze: see `HFModel`.
        tag_mask: tags that are allowed at each word.
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
        tag_mask: TagMask | None = None,
    ):
        super().__init__(model, limit=limit, prefix=prefix, suffix=suffix, freeze=freeze)
        self.tag_mask = tag_mask or TagMask(None)
        self.unit, self.pools = unit, pools
        self._labels, self._separator, self._types = labels, tuple(separator), types
        self.precision: Literal["float32", "bf16"] = precision

    @override
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
            logits_BPL, states, scores = self.read_states(
                batch, (*layers, *pieces), attention, head=self.model.config.num_labels
            )

        def at_labels(values_BPD: Tensor) -> Tensor:
            return first_of_pieces(values_BPD, batch) if self.unit == "word" else values_BPD[:, :1]

        lengths_B = batch.lengths_B if self.unit == "word" else torch.ones_like(batch.lengths_B)
        emissions_BTY = self._labels.emissions(at_labels(logits_BPL).float(), lengths_B)
        chain = Chain(self.tag_mask(emissions_BTY), lengths_B)
        hidden = {layer: at_labels(states[layer]) for layer in layers}
        inside = {layer: states[layer] for layer in pieces}
        return Output(chain, hidden, inside, scores, batch.piece_lengths_B, self.legal)

    @override
    def to_onnx(self) -> ModelProto:
        from raykd.layers.torch_export import trace_to_onnx  # ONNX takes half a second to import

        return trace_to_onnx(self, self._scores, self.legal)

    @override
    def architecture(self) -> PlainObject:
        return {**super().architecture(), "separator": [*self._separator], "types": self._types}

    def _scores(
        self, pieces_BP: Tensor, piece_lengths_B: Tensor, first_BT: Tensor, lengths_B: Tensor
    ) -> Tensor:
        """Return the scores of labels [B, T, Y] in float32, for sentences within the limit."""
        logits_BPL = self.read_whole((), pieces_BP, piece_lengths_B)
        if self.unit == "sentence":
            first_BT, lengths_B = torch.zeros_like(lengths_B)[:, None], torch.ones_like(lengths_B)
        # Not take_along_dim: torch.export would make its sizes constants.
        logits_BTL = logits_BPL.gather(1, first_BT[:, :, None].expand(-1, -1, logits_BPL.shape[2]))
        return self.tag_mask(self._labels.emissions(logits_BTL, lengths_B))

    def _cut(self, batch: TokenBatch) -> TokenBatch:
        """Cut sentences beyond the limit; of a pair the longer text loses its end first."""
        pieces_BP, lengths_B = batch.pieces_BP, batch.piece_lengths_B
        second_BP = self._is_second(pieces_BP, lengths_B)
        paired_B = second_BP.any(1)
        between_B = paired_B * len(self._separator)
        text_end_B = lengths_B - self._suffix
        second_B = torch.where(paired_B, second_BP.sum(1) - self._suffix, 0)
        first_B = text_end_B - second_B - between_B - self._prefix
        available_B = self._limit - self._prefix - self._suffix - between_B
        first_share_B = torch.where(first_B > second_B, available_B - available_B // 2, available_B // 2)
        first_kept_B = torch.minimum(first_B, torch.maximum(available_B - second_B, first_share_B))
        second_kept_B = torch.minimum(second_B, available_B - first_kept_B)
        lengths_B = self._prefix + first_kept_B + between_B + second_kept_B + self._suffix
        position_P = torch.arange(self._limit, device=pieces_BP.device)
        # The pieces that end a text also end its shortened form.
        skipped_BP = (first_B - first_kept_B)[:, None] * (
            position_P >= (self._prefix + first_kept_B)[:, None]
        )
        skipped_BP += (second_B - second_kept_B)[:, None] * (
            position_P >= (lengths_B - self._suffix)[:, None]
        )
        shortened_BP = pieces_BP.take_along_dim(
            (position_P + skipped_BP).clamp(max=pieces_BP.shape[1] - 1), 1
        )
        return replace(batch, pieces_BP=shortened_BP, piece_lengths_B=lengths_B)

    def _is_second(self, pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        """Return a mask of the second text of a pair, final special pieces included; empty for a single text."""
        inside_BP = length_mask(lengths_B, pieces_BP.shape[1])
        if not self._separator:
            return torch.zeros_like(inside_BP)
        # This piece occurs in no text; it also ends the second text.
        ends_BP = (pieces_BP == self._separator[-1]).long()
        return (ends_BP.cumsum(1) - ends_BP >= self._separator.count(self._separator[-1])) & inside_BP

    @override
    def read_whole(self, layers: tuple[int, ...], pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        mask_BP = length_mask(lengths_B, pieces_BP.shape[1])
        types = {"token_type_ids": self._is_second(pieces_BP, lengths_B).long()} if self._types else {}
        output = self.model(
            input_ids=pieces_BP, attention_mask=mask_BP.long(), output_hidden_states=bool(layers), **types
        )
        logits_BPL = output.logits
        if self.pools:
            logits_BPL = logits_BPL[:, None].expand(-1, pieces_BP.shape[1], -1)
        states = [output.hidden_states[layer] for layer in layers]
        return torch.cat([logits_BPL, *states], -1) if states else logits_BPL
