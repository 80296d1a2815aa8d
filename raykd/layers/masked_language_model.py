"""A Transformers encoder with the head of a masked language model: BERT, RoBERTa and their descendants.

Shapes: B batch, P pieces, M masked pieces of a sentence, N masked pieces scored at once, D size, V pieces of the
vocabulary, X any axes.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch
from torch import nn
from typing_extensions import override

from raykd.errors import ExportError, StoreError
from raykd.identity import PlainObject
from raykd.layers.heads import full_precision
from raykd.layers.hf_model import FrozenPart, HFModel
from raykd.layers.model import Output
from raykd.layers.piece_vectors import first_of_pieces
from raykd.structures import UnscoredChain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import ModelProto
    from torch import Tensor
    from transformers import PreTrainedModel

    from raykd.corpora.encoded_text import TokenBatch

HEADS = (
    ("cls",),
    ("lm_head",),
    ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),
    ("head", "decoder"),
)
"""Names of the modules from states to scores, in order: of BERT, RoBERTa, DistilBERT and ModernBERT."""


class MaskedLanguageModel(HFModel):
    """A masked language model: it predicts the masked pieces of a sentence independently of each other.

    The masked pieces stand at `first_BT` of a batch, and `lengths_B` are their numbers. The output is a chain without
    transitions over the vocabulary, with scores that are computed when they are first read. The last layer of the head
    shares the weights of the embedding.

    Args:
        model: a masked language model of Transformers.
        limit: see `HFModel`.
        prefix: see `HFModel`.
        suffix: see `HFModel`.
        freeze: see `HFModel`.
        pieces: number of pieces in the vocabulary if the embedding has more rows; None: as many as rows.

    Raises:
        StoreError: the head of `model` is none of `HEADS`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        limit: int,
        prefix: int,
        suffix: int,
        freeze: Sequence[FrozenPart] = (),
        pieces: int | None = None,
    ):
        super().__init__(model, limit=limit, prefix=prefix, suffix=suffix, freeze=freeze)
        self._pieces = pieces
        head = next((names for names in HEADS if all(hasattr(model, name) for name in names)), None)
        if head is None:
            problem = f"has an unknown kind of head ({type(model).__name__})"
            raise StoreError(str(model.config.name_or_path), problem, "use BERT, RoBERTa or DistilBERT")
        self._head = head

    @override
    def forward(
        self,
        batch: TokenBatch,
        *,
        layers: Sequence[int] = (),
        pieces: Sequence[int] = (),
        attention: Sequence[int] = (),
    ) -> Output:
        _, states, attention_by_layer = self.read_states(batch, (*layers, *pieces, self.depth), attention)
        chain = self._chain(first_of_pieces(states[self.depth], batch), batch.lengths_B)
        hidden = {layer: first_of_pieces(states[layer], batch) for layer in layers}
        piece_states = {layer: states[layer] for layer in pieces}
        return Output(chain, hidden, piece_states, attention_by_layer, batch.piece_lengths_B)

    @override
    def prune_embedding(self, kept_pieces: Sequence[int]) -> None:
        old_layer = self.model.get_output_embeddings()
        if old_layer.weight is not self.model.get_input_embeddings().weight:
            problem = "cannot be pruned, because its last layer is not its transposed embedding"
            raise StoreError(str(self.model.config.name_or_path), problem, "set vocabulary: whole")
        super().prune_embedding(kept_pieces)
        rows = torch.tensor(kept_pieces, dtype=torch.long)
        new_layer = nn.Linear(old_layer.in_features, len(rows))
        new_layer.weight, self._pieces = self.embedding_matrix(), None
        new_layer.bias = nn.Parameter(old_layer.bias.detach()[rows].clone())
        for part in self.model.modules():
            # BERT and RoBERTa hold the bias of their last layer a second time.
            if getattr(part, "bias", None) is old_layer.bias:
                part.bias = new_layer.bias
        self.model.set_output_embeddings(new_layer)

    def scores(self, states_XD: Tensor) -> Tensor:
        """Return the scores [..., V] of all pieces of the vocabulary, in float32 at least.

        Args:
            states_XD: states [..., D] of masked pieces.
        """
        for name in self._head:
            states_XD = getattr(self.model, name)(states_XD)
        return full_precision(states_XD[..., : self._pieces])

    def _chain(self, states_BMD: Tensor, lengths_B: Tensor) -> UnscoredChain:
        # Scores are computed later, but under the gradient and autocast modes of now.
        device = states_BMD.device.type
        precision = {"dtype": torch.get_autocast_dtype(device), "enabled": torch.is_autocast_enabled(device)}
        gradient_mode = nullcontext if torch.is_grad_enabled() else torch.no_grad
        if torch.is_inference_mode_enabled():
            gradient_mode = torch.inference_mode

        def score(states_ND: Tensor) -> Tensor:
            with gradient_mode(), torch.autocast(device, **precision):
                return self.scores(states_ND)

        rows = len(self.model.get_output_embeddings().weight)
        head = nn.ModuleList([getattr(self.model, name) for name in self._head])
        return UnscoredChain(
            states_BMD, lengths_B, score, tags=self._pieces or rows, parameters=[*head.parameters()]
        )

    @override
    def architecture(self) -> PlainObject:
        pieces = {} if self._pieces is None else {"pieces": self._pieces}
        return {**super().architecture(), **pieces}

    @override
    def to_onnx(self) -> ModelProto:
        raise ExportError(
            "it is a masked language model, which has no ONNX form; raykd export writes it as a checkpoint"
        )
