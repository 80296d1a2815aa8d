"""A Transformers encoder with a decoder that generates labels and points to words (Rongali et al. 2020, "Don't Parse,
Generate! A Sequence to Sequence Architecture for Task-Oriented Semantic Parsing").

Shapes: B batch, P pieces, T words, S steps, N rows that are decoded, D size, O labels that are generated, L = O + T
labels in all: behind those that are generated, each word of the sentence is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from raykd.errors import ExportError
from raykd.forms.steps import bracket_changes
from raykd.layers.beam_search import beam_search
from raykd.layers.dropout import OwnDropout
from raykd.layers.heads import full_precision
from raykd.layers.hf_model import Frozen, HFModel
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

STEPS = 256
"""Position vectors of a decoder; steps behind them have the last one."""


class PointerGenerator(HFModel):
    """Given the steps of a batch it gives the distribution of each of them after those before (teacher forcing): a
    chain without transitions whose labels are O that it generates and the words of the sentence. Without steps it
    generates, and gives a chain that allows what it found alone, with the log-probability of that as its score.

    What it generates has 3 T + 8 steps at most. A step reads the states of those before from a cache, so that a tree of
    S steps takes S small passes of the decoder, each over `beam` hypotheses of every sentence that is not finished.

    A label is scored by a linear layer of the decoder's state, a word by the scaled dot product of that with the
    encoder's state of the word's first piece. A decoder's input is the vector of the label before, or that state of the
    word.

    Args:
        encoder: a base model of Transformers, without a pooler.
        decoder: one with attention to an encoder's states of the same size, and O + 1 vectors of labels: the last one
            begins every sequence.
        labels: what is generated, brackets that open and the one that closes them.
        limit: the most pieces that the encoder reads at once, as of every `HFModel`, whose `freeze` is the encoder's.
        beam: hypotheses of a sentence (`layers/beam_search.py`); 1 is greedy.
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
        freeze: Sequence[Frozen] = (),
    ):
        super().__init__(encoder, limit=limit, prefix=prefix, suffix=suffix, freeze=freeze)
        self.decoder: Any = decoder
        self.scores = nn.Linear(encoder.config.hidden_size, len(labels))
        self._changes = bracket_changes(labels)
        self._beam = beam
        self._decoder_attention: str = self.decoder.config._attn_implementation

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
                f"a pointer-generator labels no words: it has no states of layer {layers[0]} for them"
            )
        if batch.steps_BS is None or batch.step_lengths_B is None:
            return Output(self.generate(batch))
        _, states, scores = self.states_of(batch, (*pieces, self.depth), attention)
        sentences = _Sentences.of_batch(batch, states[self.depth])
        with OwnDropout() if self.training else nullcontext():
            inputs_BSD = self._inputs(batch.steps_BS[:, :-1], sentences)
            begin_B1D = self._begin(len(batch))
            states_BSD = self._decoded(torch.cat([begin_B1D.to(inputs_BSD.dtype), inputs_BSD], 1), sentences)
        chain = Chain(self._scored(states_BSD, sentences), batch.step_lengths_B)
        inside = {layer: states[layer] for layer in pieces}
        return Output(chain, {}, inside, scores, batch.piece_lengths_B)

    def generate(self, batch: TokenBatch, *, steps: int | None = None) -> Chain:
        """What is generated for each sentence, as a chain that allows it alone. With `steps`, exactly so many,
        complete or not: to measure time.
        """
        sentences = _Sentences.of_batch(batch, self.read(batch, (self.depth,), ())[0])
        most_B = 3 * batch.lengths_B + 8 if steps is None else torch.full_like(batch.lengths_B, steps)
        words = torch.zeros(batch.first_BT.shape[1], dtype=torch.long)
        change_L = torch.cat([torch.from_numpy(self._changes), words]).to(most_B.device)
        labels_BS, log_p_BS, lengths_B = beam_search(
            _Generation(self, sentences), change_L, most_B, beam=self._beam, exactly=steps is not None
        )
        scores_BSL = torch.full((*labels_BS.shape, len(change_L)), -torch.inf, device=labels_BS.device)
        scores_BSL = scores_BSL.scatter(2, labels_BS[:, :, None], log_p_BS[:, :, None])
        return Chain(scores_BSL[:, : int(lengths_B.max())], lengths_B)

    def train(self, mode: bool = True) -> Self:
        # As of the encoder.
        self.decoder.set_attn_implementation("eager" if mode else self._decoder_attention)
        return super().train(mode)

    def to_onnx(self) -> ModelProto:
        raise ExportError(
            "a pointer-generator writes its trees step by step, and no ONNX graph is made of that; "
            "raykd.load gives the model itself, whose trees() parses text"
        )

    def layer_groups(self) -> Mapping[str, list[nn.Parameter]]:
        return {**super().layer_groups(), "head": [*self.decoder.parameters(), *self.scores.parameters()]}

    def _begin(self, rows: int) -> Float[Tensor, "row 1 size"]:
        """The first input of every sequence."""
        return self.decoder.get_input_embeddings().weight[-1].expand(rows, 1, -1)

    def _inputs(self, labels_NS: Tensor, sentences: _Sentences) -> Float[Tensor, "row step size"]:
        """The vectors of labels: their own, or the states of words."""
        generated = self.scores.out_features
        own_NSD = self.decoder.get_input_embeddings()(labels_NS.clamp(max=generated - 1))
        place_NS = (labels_NS - generated).clamp(min=0)
        words_NSD = sentences.words_NTD.take_along_dim(place_NS[:, :, None], 1)
        return torch.where((labels_NS < generated)[:, :, None], own_NSD, words_NSD)

    def _decoded(
        self, inputs_NSD: Tensor, sentences: _Sentences, cache: Any = None, first: int = 0
    ) -> Float[Tensor, "row step size"]:
        """The decoder's states. A `cache` has what it computed of the `first` steps before."""
        places_1S = torch.arange(first, first + inputs_NSD.shape[1], device=inputs_NSD.device)[None]
        return self.decoder(
            inputs_embeds=inputs_NSD,
            position_ids=places_1S.clamp(max=STEPS - 1),
            encoder_hidden_states=sentences.pieces_NPD,
            encoder_attention_mask=sentences.inside_NP,
            past_key_values=cache,
            use_cache=cache is not None,
        ).last_hidden_state

    def _scored(self, states_NSD: Tensor, sentences: _Sentences) -> Float[Tensor, "row step label"]:
        """The scores of all labels after each step."""
        scale = states_NSD.shape[2] ** -0.5
        pointers_NST = scale * states_NSD @ sentences.words_NTD.transpose(1, 2).to(states_NSD.dtype)
        pointers_NST = full_precision(pointers_NST).masked_fill(~sentences.is_word_NT[:, None], FORBIDDEN)
        return torch.cat([full_precision(self.scores(states_NSD)), pointers_NST], 2)


@dataclass(frozen=True)
class _Sentences:
    """What the decoder reads of N sentences."""

    pieces_NPD: Float[Tensor, "row piece size"]
    inside_NP: Int[Tensor, "row piece"]
    words_NTD: Float[Tensor, "row time size"]
    is_word_NT: Bool[Tensor, "row time"]

    @classmethod
    def of_batch(cls, batch: TokenBatch, pieces_BPD: Tensor) -> _Sentences:
        """Those of a batch, by the encoder's states of their pieces."""
        return cls(
            pieces_BPD,
            length_mask(batch.piece_lengths_B, batch.pieces_BP.shape[1]).long(),
            first_of_pieces(pieces_BPD, batch),
            length_mask(batch.lengths_B, batch.first_BT.shape[1]),
        )

    def of(self, rows_N: Tensor) -> _Sentences:
        """Those at `rows`."""
        return _Sentences(*(getattr(self, each.name)[rows_N] for each in fields(self)))


class _Generation:
    """What hypotheses go on from: the sentence of each, and what the decoder computed of its steps."""

    def __init__(self, model: PointerGenerator, sentences: _Sentences):
        from transformers import DynamicCache, EncoderDecoderCache  # takes seconds to import

        self._model, self._sentences, self._steps = model, sentences, 0
        self._cache = EncoderDecoderCache(DynamicCache(), DynamicCache())

    def __call__(self, parents_N: Tensor, labels_N: Tensor) -> Tensor:
        """See `beam_search.Continue`."""
        model, rows = self._model, len(self._sentences.words_NTD)
        if self._steps and not torch.equal(parents_N, torch.arange(rows, device=parents_N.device)):
            self._sentences = self._sentences.of(parents_N)
            self._cache.batch_select_indices(parents_N)
        before_N1 = labels_N[:, None]
        inputs_N1D = (
            model._inputs(before_N1, self._sentences) if self._steps else model._begin(len(parents_N))
        )
        states_N1D = model._decoded(inputs_N1D, self._sentences, self._cache, self._steps)
        self._steps += 1
        return model._scored(states_N1D, self._sentences)[:, 0].log_softmax(1)
