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
from raykd.layers.hf_model import FrozenPart, HFModel
from raykd.layers.model import Output
from raykd.layers.piece_labels import PieceLabels, Words
from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import ModelProto
    from torch import Tensor
    from transformers import PreTrainedModel

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.layers.piece_labels import WordLabels


class HFTagger(HFModel):
    """A Transformers classifier; the labels of a sentence are a chain, without transitions but for BIOES of pieces.

    A token classifier labels a word at its first piece or at all of them, or a sentence at its very first piece. A
    sequence classifier (`pools`) gives one label by its own pooling. It cannot read windows, so a sentence that is too
    long loses its end; of a pair the longer text loses its end first.

    Args:
        model: a classifier of Transformers.
        labels: map from the classifier's labels to tags, at the first piece of a word or at all of them.
        unit: one label for each word, or for each sentence.
        limit: see `HFModel`.
        prefix: see `HFModel`.
        suffix: see `HFModel`.
        separator: pieces between the texts of a pair.
        spaces: pieces that are a space; read only if every piece has a label.
        types: give the pieces of the second text of a pair the token type 1, not 0.
        pools: True for a sequence classifier.
        precision: precision of computation outside training. bf16 is two to three times faster on a processor that
            supports it.
        freeze: see `HFModel`.
        tag_mask: tags that are allowed at each word.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        labels: WordLabels,
        *,
        unit: Literal["word", "sentence"],
        limit: int,
        prefix: int,
        suffix: int,
        separator: Sequence[int] = (),
        spaces: Sequence[int] = (),
        types: bool = False,
        pools: bool = False,
        precision: Literal["float32", "bf16"] = "float32",
        freeze: Sequence[FrozenPart] = (),
        tag_mask: TagMask | None = None,
    ):
        super().__init__(model, limit=limit, prefix=prefix, suffix=suffix, freeze=freeze)
        self.tag_mask = tag_mask or TagMask(None)
        self.unit, self.pools = unit, pools
        self._labels, self._separator, self._types = labels, tuple(separator), types
        self._spaces = tuple(spaces)
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
            batch = self._truncate(batch)
        bf16 = self.precision == "bf16" and not self.training
        with torch.autocast(batch.pieces_BP.device.type, torch.bfloat16) if bf16 else nullcontext():
            logits_BPL, states, attention_by_layer = self.read_states(
                batch, (*layers, *pieces), attention, head=self.model.config.num_labels
            )
        words = self._words(batch.pieces_BP, batch.piece_lengths_B, batch.first_BT, batch.lengths_B)
        emissions_BTY = self.tag_mask(self._labels.emissions(logits_BPL.float(), words))
        chain = self._labels.chain(emissions_BTY, words.lengths_B)
        hidden = {layer: states[layer].take_along_dim(words.first_BT[..., None], 1) for layer in layers}
        piece_states = {layer: states[layer] for layer in pieces}
        return Output(chain, hidden, piece_states, attention_by_layer, batch.piece_lengths_B, self.legal)

    def left_out(self, batch: TokenBatch) -> Tensor | None:
        """Return the probability [B] of labellings with a span that cuts a word, which labels of words cannot show.

        None where words are labelled at their first pieces, or labels are not in BIOES.

        Args:
            batch: encoded sentences.
        """
        if not isinstance(self._labels, PieceLabels) or self._labels.transitions is None:
            return None
        logits_BPL, _, _ = self.read_states(batch, (), (), head=self.model.config.num_labels)
        words = self._words(batch.pieces_BP, batch.piece_lengths_B, batch.first_BT, batch.lengths_B)
        return self._labels.left_out(logits_BPL, words)

    @override
    def to_onnx(self) -> ModelProto:
        from raykd.layers.torch_export import trace_to_onnx  # ONNX takes half a second to import

        return trace_to_onnx(self, self._scores, self._labels.transitions or self.legal)

    @override
    def architecture(self) -> PlainObject:
        pieces = {"separator": [*self._separator], "spaces": [*self._spaces], "types": self._types}
        return {**super().architecture(), **pieces}

    def _scores(
        self, pieces_BP: Tensor, piece_lengths_B: Tensor, first_BT: Tensor, lengths_B: Tensor
    ) -> Tensor:
        """Return the scores of labels [B, T, Y] in float32, for sentences within the limit."""
        logits_BPL = self.read_whole((), pieces_BP, piece_lengths_B)
        words = self._words(pieces_BP, piece_lengths_B, first_BT, lengths_B)
        return self.tag_mask(self._labels.emissions(logits_BPL, words))

    def _words(
        self, pieces_BP: Tensor, piece_lengths_B: Tensor, first_BT: Tensor, lengths_B: Tensor
    ) -> Words:
        """Return the places of what has one label: each word, or the sentence at its very first piece."""
        if self.unit == "sentence":
            first_BT, lengths_B = torch.zeros_like(lengths_B)[:, None], torch.ones_like(lengths_B)
        spaces_BP = torch.zeros_like(pieces_BP, dtype=torch.bool)
        for piece in self._spaces:
            spaces_BP = spaces_BP | (pieces_BP == piece)
        return Words(first_BT, piece_lengths_B - self._suffix, lengths_B, spaces_BP)

    def _truncate(self, batch: TokenBatch) -> TokenBatch:
        """Shorten sentences beyond the limit; of a pair the longer text loses its end first."""
        pieces_BP, lengths_B = batch.pieces_BP, batch.piece_lengths_B
        is_second_BP = self._is_second(pieces_BP, lengths_B)
        is_pair_B = is_second_BP.any(1)
        # Numbers of pieces of each part of a sentence.
        separator_B = is_pair_B * len(self._separator)
        text2_B = torch.where(is_pair_B, is_second_BP.sum(1) - self._suffix, 0)
        text1_B = lengths_B - self._prefix - separator_B - text2_B - self._suffix
        available_B = self._limit - self._prefix - separator_B - self._suffix
        # Of two texts that are both too long each gets half, the longer one the odd piece.
        half_B = torch.where(text1_B > text2_B, available_B - available_B // 2, available_B // 2)
        text1_kept_B = torch.minimum(text1_B, torch.maximum(available_B - text2_B, half_B))
        text2_kept_B = torch.minimum(text2_B, available_B - text1_kept_B)
        lengths_B = self._prefix + text1_kept_B + separator_B + text2_kept_B + self._suffix
        position_P = torch.arange(self._limit, device=pieces_BP.device)
        # Behind the end of a shortened text come the pieces that stood behind the end of the whole text.
        skipped_BP = (text1_B - text1_kept_B)[:, None] * (
            position_P >= (self._prefix + text1_kept_B)[:, None]
        )
        skipped_BP += (text2_B - text2_kept_B)[:, None] * (position_P >= (lengths_B - self._suffix)[:, None])
        shortened_BP = pieces_BP.take_along_dim(
            (position_P + skipped_BP).clamp(max=pieces_BP.shape[1] - 1), 1
        )
        return replace(batch, pieces_BP=shortened_BP, piece_lengths_B=lengths_B)

    def _is_second(self, pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        """Return a mask [B, P] of the second text of a pair, final special pieces included; False in a single text."""
        inside_BP = length_mask(lengths_B, pieces_BP.shape[1])
        if not self._separator:
            return torch.zeros_like(inside_BP)
        # The last separator piece occurs in no text, but once more at the end of the sentence.
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
