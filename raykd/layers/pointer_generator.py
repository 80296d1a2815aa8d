"""Pointer-generators: a Transformers encoder, and a decoder of labels and pointers to words.

Rongali et al. 2020, "Don't Parse, Generate! A Sequence to Sequence Architecture for Task-Oriented Semantic Parsing".

Shapes: B batch, P pieces, T words, S steps, N rows in the decoder, D size, O labels that can be generated, L = O + T
labels in all: the generated ones, then one for each word of the sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from typing_extensions import override

from raykd.errors import ExportError
from raykd.forms.steps import bracket_changes
from raykd.layers.beam_search import beam_search
from raykd.layers.dropout import ReproducibleDropout
from raykd.layers.heads import full_precision
from raykd.layers.hf_model import FrozenPart, HFModel
from raykd.layers.model import Output
from raykd.layers.piece_vectors import first_of_pieces
from raykd.structures import Chain
from raykd.structures.labelled_arcs import FORBIDDEN
from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from onnx import ModelProto
    from transformers import PreTrainedModel

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.forms import TagSet

DECODER_POSITIONS = 256
"""Number of position vectors of a decoder; later steps have the last one."""


class PointerGenerator(HFModel):
    """A pointer-generator network: each step of a tree is one of O generated labels or a word of the sentence.

    With the steps of a batch the output is the distribution of each step given those before (teacher forcing), a chain
    without transitions over the O labels and the words of the sentence. Without steps the model generates a tree, and
    the output is a chain that allows this tree only, with its log-probability as the score.

    A generated tree has at most 3 T + 8 steps. A step reads the states of earlier steps from a cache, so that a tree of
    S steps takes S small passes of the decoder, each over `beam` hypotheses of every unfinished sentence.

    A linear layer scores labels from the decoder's state. A word is scored by the scaled dot product of this state and
    the encoder's state of the word's first piece. The decoder's input is the vector of the previous label, or the
    encoder's state of the previous word.

    Args:
        encoder: a base model of Transformers, without a pooler.
        decoder: a model of Transformers with attention to encoder states of the same size, and O + 1 vectors of labels;
            the last one begins every sequence.
        labels: labels that are generated: opening brackets, and the one that closes them.
        limit: see `HFModel`.
        prefix: see `HFModel`.
        suffix: see `HFModel`.
        beam: hypotheses kept for a sentence (`layers/beam_search.py`); 1 is greedy search.
        freeze: see `HFModel`.
    """

    def __init__(
        self,
        encoder: PreTrainedModel,
        decoder: PreTrainedModel,
        labels: TagSet,
        *,
        limit: int,
        prefix: int,
        suffix: int,
        beam: int = 1,
        freeze: Sequence[FrozenPart] = (),
    ):
        super().__init__(encoder, limit=limit, prefix=prefix, suffix=suffix, freeze=freeze)
        self.decoder: Any = decoder
        self.scores = nn.Linear(encoder.config.hidden_size, len(labels))
        self._changes = bracket_changes(labels)
        self._beam = beam
        self._decoder_attention: str = self.decoder.config._attn_implementation

    @override
    def forward(
        self,
        batch: TokenBatch,
        *,
        layers: Sequence[int] = (),
        pieces: Sequence[int] = (),
        attention: Sequence[int] = (),
    ) -> Output:
        if layers:
            raise ValueError(
                f"a pointer-generator does not label words, so it has no word states of layer {layers[0]}"
            )
        if batch.steps_BS is None or batch.step_lengths_B is None:
            return Output(self.generate(batch))
        _, states, attention_by_layer = self.read_states(batch, (*pieces, self.depth), attention)
        sentences = _Sentences.of_batch(batch, states[self.depth])
        with ReproducibleDropout() if self.training else nullcontext():
            inputs_BSD = self._inputs(batch.steps_BS[:, :-1], sentences)
            begin_B1D = self._first_inputs(len(batch))
            states_BSD = self._decode(torch.cat([begin_B1D.to(inputs_BSD.dtype), inputs_BSD], 1), sentences)
        chain = Chain(self._label_scores(states_BSD, sentences), batch.step_lengths_B)
        piece_states = {layer: states[layer] for layer in pieces}
        return Output(chain, {}, piece_states, attention_by_layer, batch.piece_lengths_B)

    def generate(self, batch: TokenBatch, *, steps: int | None = None) -> Chain:
        """Generate trees and return a chain that allows these trees only.

        Args:
            batch: encoded sentences.
            steps: number of steps, even if a tree is complete earlier: to measure time. None: until it is complete.
        """
        sentences = _Sentences.of_batch(batch, self.read_batch(batch, (self.depth,), ())[0])
        max_steps_B = 3 * batch.lengths_B + 8 if steps is None else torch.full_like(batch.lengths_B, steps)
        word_changes_T = torch.zeros(batch.first_BT.shape[1], dtype=torch.long)
        change_L = torch.cat([torch.from_numpy(self._changes), word_changes_T]).to(max_steps_B.device)
        labels_BS, log_p_BS, lengths_B = beam_search(
            _Generation(self, sentences), change_L, max_steps_B, beam=self._beam, exactly=steps is not None
        )
        scores_BSL = torch.full((*labels_BS.shape, len(change_L)), -torch.inf, device=labels_BS.device)
        scores_BSL = scores_BSL.scatter(2, labels_BS[:, :, None], log_p_BS[:, :, None])
        return Chain(scores_BSL[:, : int(lengths_B.max())], lengths_B)

    @override
    def train(self, mode: bool = True) -> Self:
        # Its attention has dropout too, see `HFModel.train`.
        self.decoder.set_attn_implementation("eager" if mode else self._decoder_attention)
        return super().train(mode)

    @override
    def to_onnx(self) -> ModelProto:
        raise ExportError(
            "it writes trees step by step, which has no ONNX form; "
            "load the model with raykd.load and parse text with its trees()"
        )

    @override
    def layer_groups(self) -> Mapping[str, list[nn.Parameter]]:
        return {**super().layer_groups(), "head": [*self.decoder.parameters(), *self.scores.parameters()]}

    def _first_inputs(self, rows: int) -> Float[Tensor, "row 1 size"]:
        return self.decoder.get_input_embeddings().weight[-1].expand(rows, 1, -1)

    def _inputs(self, labels_NS: Tensor, sentences: _Sentences) -> Float[Tensor, "row step size"]:
        """Return the input vectors of labels: trained ones, or the states of words."""
        generated = self.scores.out_features
        label_NSD = self.decoder.get_input_embeddings()(labels_NS.clamp(max=generated - 1))
        place_NS = (labels_NS - generated).clamp(min=0)
        words_NSD = sentences.words_NTD.take_along_dim(place_NS[:, :, None], 1)
        return torch.where((labels_NS < generated)[:, :, None], label_NSD, words_NSD)

    def _decode(
        self, inputs_NSD: Tensor, sentences: _Sentences, cache: Any = None, first: int = 0
    ) -> Float[Tensor, "row step size"]:
        """Return the decoder's states; a `cache` holds keys and values of the `first` steps before."""
        places_1S = torch.arange(first, first + inputs_NSD.shape[1], device=inputs_NSD.device)[None]
        return self.decoder(
            inputs_embeds=inputs_NSD,
            position_ids=places_1S.clamp(max=DECODER_POSITIONS - 1),
            encoder_hidden_states=sentences.pieces_NPD,
            encoder_attention_mask=sentences.inside_NP,
            past_key_values=cache,
            use_cache=cache is not None,
        ).last_hidden_state

    def _label_scores(self, states_NSD: Tensor, sentences: _Sentences) -> Float[Tensor, "row step label"]:
        """Return the scores of all labels after a step."""
        scale = states_NSD.shape[2] ** -0.5
        pointers_NST = scale * states_NSD @ sentences.words_NTD.transpose(1, 2).to(states_NSD.dtype)
        pointers_NST = full_precision(pointers_NST).masked_fill(~sentences.is_word_NT[:, None], FORBIDDEN)
        return torch.cat([full_precision(self.scores(states_NSD)), pointers_NST], 2)


@dataclass(frozen=True)
class _Sentences:
    """The encoder's output for N sentences, as the decoder reads it."""

    pieces_NPD: Float[Tensor, "row piece size"]
    inside_NP: Int[Tensor, "row piece"]
    words_NTD: Float[Tensor, "row time size"]
    is_word_NT: Bool[Tensor, "row time"]

    @classmethod
    def of_batch(cls, batch: TokenBatch, pieces_BPD: Tensor) -> _Sentences:
        """Return the sentences of a batch from the encoder's states."""
        return cls(
            pieces_BPD,
            length_mask(batch.piece_lengths_B, batch.pieces_BP.shape[1]).long(),
            first_of_pieces(pieces_BPD, batch),
            length_mask(batch.lengths_B, batch.first_BT.shape[1]),
        )

    def select(self, rows_N: Tensor) -> _Sentences:
        """Return the sentences at `rows_N`."""
        return _Sentences(*(getattr(self, column.name)[rows_N] for column in fields(self)))


class _Generation:
    """State of the generation: the sentence of each hypothesis, and the decoder's cache of its steps."""

    def __init__(self, model: PointerGenerator, sentences: _Sentences):
        from transformers import DynamicCache, EncoderDecoderCache  # takes seconds to import

        self._model, self._sentences, self._steps = model, sentences, 0
        self._cache = EncoderDecoderCache(DynamicCache(), DynamicCache())

    def __call__(self, parents_N: Tensor, labels_N: Tensor) -> Tensor:
        """Extend the hypotheses, see `beam_search.Continue`."""
        model, rows = self._model, len(self._sentences.words_NTD)
        if self._steps and not torch.equal(parents_N, torch.arange(rows, device=parents_N.device)):
            self._sentences = self._sentences.select(parents_N)
            self._cache.batch_select_indices(parents_N)
        if self._steps:
            inputs_N1D = model._inputs(labels_N[:, None], self._sentences)
        else:
            inputs_N1D = model._first_inputs(len(parents_N))
        states_N1D = model._decode(inputs_N1D, self._sentences, self._cache, self._steps)
        self._steps += 1
        return model._label_scores(states_N1D, self._sentences)[:, 0].log_softmax(1)
