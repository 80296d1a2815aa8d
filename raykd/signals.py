"""The signals a teacher gives: what each is, how it is taken from an output, how it is written, and how it is read.

The transfer store and the training loop loop over these entries and name none of them. To add a signal, add an entry
to `SIGNALS`, and a field to `TeacherBatch` for what is read back. `needs.py` says which signals serve an objective.

A chain teacher offers its scores, from which all else derives. A non-chain teacher (spans, several teachers averaged)
offers `token_marginals` and its best path. A parser offers what it says of every arc and of its relations.

Shapes: B batch, T labels of a sentence (one per word, or one), W words, P pieces, Y tags, K best, D size, H heads (of
n words n + 1, head 0 the root); N sentences and R rows of a shard, V values of one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isqrt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from raykd.corpora.batching import buckets
from raykd.storage.rounding import INT8_MAX, encode_float16, encode_int8, encode_log_scores

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.layers.model import Output
    from raykd.structures import Chain, LegalTransitions
    from raykd.structures.labelled_arcs import ArcsOnLabels, LabelledArcs

    Derive = Callable[
        [Mapping[str, tuple[np.ndarray, ...]], np.ndarray, "Need", int, LegalTransitions | None],
        tuple[np.ndarray, ...],
    ]
    """From the stored columns of a signal's sources, the lengths of the sentences, the need, how many padded tokens may
    be read at once, and which labellings are legal, to the signal's columns."""

Rows = Literal["label", "word", "arc", "sentence", "teacher"]
"""What one row of a column belongs to: `Column` says how many a sentence has, and which. An arc is a word and a head:
row t · (n + 1) + h of a sentence of n words is its word t under head h. A `teacher` column is stored once per teacher,
not per text."""


@dataclass(frozen=True)
class EncoderOutput:
    """What a frozen encoder gives for a batch: the vector of each word."""

    features_BTD: Float[Tensor, "batch word size"]


@dataclass(frozen=True)
class Need:
    """One signal that an objective reads: `k` best paths, the hidden states of `layer`; 0 and None for the others."""

    signal: str
    k: int = 0
    layer: int | None = None

    @property
    def name(self) -> str:
        """The signal with its layer: what is stored under one id. Stored K-best serves every smaller `k`."""
        return self.signal if self.layer is None else f"{self.signal}.{self.layer}"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model that signals and losses depend on: its tags, the components of each layer that is asked for,
    and which of these layers are its own projection to another model's width."""

    tags: int
    hidden: Mapping[int, int] = field(default_factory=dict, hash=False)
    projected: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Column:
    """One column of a stored signal: V values for each of its rows.

    `encode` turns float32 values [R, V] into what is stored, and gives the largest absolute error; None stores values
    as they are.
    """

    name: str
    rows: Rows
    dtype: Callable[[Sizes], DTypeLike]
    width: Callable[[Sizes, Need], int]
    encode: Callable[[np.ndarray], tuple[np.ndarray, float]] | None = None

    def bytes_per_row(self, sizes: Sizes, need: Need) -> int:
        """Bytes of one row; Arrow's own bookkeeping is not counted."""
        return np.dtype(self.dtype(sizes)).itemsize * self.width(sizes, need)

    @property
    def is_list(self) -> bool:
        """Whether the number of a sentence's rows depends on its words."""
        return self.rows in ("label", "word", "arc")

    def rows_of(self, words_N: np.ndarray, unit: str) -> np.ndarray:
        """How many rows sentences of so many words have [N]. `unit` is what gets one label: a word, or a sentence."""
        if self.rows == "arc":
            return words_N * (words_N + 1)
        per_word = self.rows == "word" or (self.rows == "label" and unit == "word")
        return words_N if per_word else np.ones_like(words_N)

    def cut(self, padded: np.ndarray, words: int, unit: str) -> np.ndarray:
        """The rows [R, V] of one sentence of a batch, without padding: [T, V], of arcs [T, H, V], else [V]."""
        if self.rows == "arc":
            padded = padded[:words, : words + 1]
        return padded.reshape(-1, padded.shape[-1])[: int(self.rows_of(np.array(words), unit))]


@dataclass(frozen=True)
class Signal:
    """One kind of thing that a teacher gives.

    `take` gives one tensor per column for an output and its batch: [B, rows, V] for label and word columns,
    [B, T, H, V] for those of arcs, [B, V] for sentence columns, [V] for teacher columns. `derive` computes the columns
    of a shard from the stored columns of `sources` instead, where a teacher offers them: stored values are rounded, so
    a later derivation gives the same bytes. `read` turns gathered columns, padded with 0 and on the device of the
    batch, and the lengths [B] of the first column's rows into what an objective uses. What is `decoded` depends on
    which labellings are legal, and its id on the teacher's decoding.
    """

    name: str
    columns: tuple[Column, ...]
    take: Callable[..., tuple[Tensor, ...]]
    read: Callable[[tuple[Tensor, ...], Tensor, Need], object]
    sources: tuple[str, ...] = ()
    derive: Derive | None = None
    decoded: bool = False

    @property
    def once(self) -> bool:
        """Whether it is stored once per teacher, for any text."""
        return self.columns[0].rows == "teacher"


@dataclass(frozen=True)
class TeacherBatch:
    """What the teachers give for the sentences of one batch, in the order of the batch. Unread parts are None.

    `chain` carries emissions [B, T, Y] and, because sentences of one batch may have different teachers, transitions
    [B, Y, Y] (`transitions[b, from, to]`) with start and end scores [B, Y]. `paths_BKT` (int64, 0 on padding) are the
    K best paths, best first, with their scores under the chain, −∞ where a sentence has fewer than K paths.
    `marginals` is what non-chain teachers give: independent tags with their token marginals, as a chain without
    transitions. `hidden` holds, by layer and precision, the states that labels are predicted from, and how many each
    sentence has. `features` are what a frozen encoder gives for each word, in float16. `arcs` is what a parser says of
    each word, heads and relations, in float32, and `on_labels` the same in the labels of the student that is trained.
    `pieces` and `attention` are what a teacher that reads the batch itself gives of its layers, as in its `Output`.
    """

    chain: Chain | None = None
    paths_BKT: Int[Tensor, "batch best time"] | None = None
    scores_BK: Float[Tensor, "batch best"] | None = None
    marginals: Chain | None = None
    hidden: Mapping[Need, tuple[Float[Tensor, "batch label size"], Int[Tensor, " batch"]]] = field(
        default_factory=dict
    )
    features: Float[Tensor, "batch word size"] | None = None
    arcs: LabelledArcs | None = None
    on_labels: ArcsOnLabels | None = None
    pieces: Mapping[int, Float[Tensor, "batch piece size"]] = field(default_factory=dict)
    attention: Mapping[int, Float[Tensor, "batch head piece piece"]] = field(default_factory=dict)

    @staticmethod
    def of(values: Mapping[Need, object]) -> TeacherBatch:
        """The batch of these values, each as its signal's `read` gave it."""
        by_need: dict[Need, Any] = dict(values)
        by_signal = {need.signal: value for need, value in by_need.items()}
        chain = None
        if "emissions" in by_signal:
            from raykd.structures import Chain

            chain = Chain(*by_signal["emissions"], *by_signal.get("transitions", (None, None, None)))
        return TeacherBatch(
            chain,
            *by_signal.get("kbest", (None, None)),
            marginals=by_signal.get("token_marginals"),
            hidden={need: value for need, value in by_need.items() if need.layer is not None},
            features=by_signal.get("features"),
            arcs=_labelled_arcs(by_signal),
        )


def _labelled_arcs(by_signal: Mapping[str, Any]) -> LabelledArcs | None:
    if not {"arcs", "relations"} <= by_signal.keys():
        return None
    from raykd.structures.labelled_arcs import LabelledArcs

    arcs_BTH, words_B = by_signal["arcs"]
    return LabelledArcs(arcs_BTH, by_signal["relations"], words_B)


def path_dtype(tags: int) -> np.dtype:
    """The integer type of stored paths: uint8 while the tags fit, else int16."""
    return np.dtype(np.uint8 if tags <= 256 else np.int16)


def _chain_of(output: Output) -> Chain:
    from raykd.structures import Chain

    if not isinstance(output.distribution, Chain):
        raise TypeError(f"a chain teacher gives a Chain, got {type(output.distribution).__name__}")
    return output.distribution


def _take_emissions(output: Output, batch: TokenBatch, need: Need) -> tuple[Tensor, ...]:
    return (_chain_of(output).emissions_BTY,)


def _take_transitions(output: Output, batch: TokenBatch, need: Need) -> tuple[Tensor, ...]:
    return tuple(part[0].flatten() for part in _chain_of(output).filled())


def _take_marginals(output: Output, batch: TokenBatch, need: Need) -> tuple[Tensor, ...]:
    from raykd.structures import token_marginals

    return (token_marginals(output.distribution).log(),)


def _take_best_path(output: Output, batch: TokenBatch, need: Need) -> tuple[Tensor, ...]:
    from raykd.structures import viterbi

    # The best labelling is no function of token marginals: a non-chain teacher has to find it itself.
    paths_BT, scores_B = viterbi(output.distribution, output.legal)
    return paths_BT[:, :, None], scores_B[:, None]


def _take_hidden(output: Output, batch: TokenBatch, need: Need) -> tuple[Tensor, ...]:
    return (output.hidden[need.layer or 0],)


def _take_scaled(output: Output, batch: TokenBatch, need: Need) -> tuple[Tensor, ...]:
    states_BTD = output.hidden[need.layer or 0].float()
    return states_BTD, states_BTD.abs().amax(-1, keepdim=True) / INT8_MAX


def _take_features(output: EncoderOutput, batch: TokenBatch, need: Need) -> tuple[Tensor, ...]:
    return (output.features_BTD,)


def _take_arcs(output: Output, batch: TokenBatch, need: Need) -> tuple[Tensor, ...]:
    from raykd.structures.labelled_arcs import NEVER, LabelledArcs

    arcs_BTH = LabelledArcs.of(_chain_of(output)).arcs_BTH
    # What may not be is exactly NEVER, or its rounding would be the largest error of the signal.
    return (arcs_BTH.masked_fill(arcs_BTH < NEVER / 2, NEVER)[..., None],)


def _take_relations(output: Output, batch: TokenBatch, need: Need) -> tuple[Tensor, ...]:
    from raykd.structures.labelled_arcs import LabelledArcs

    return (LabelledArcs.of(_chain_of(output)).relations_BTHR,)


def _derive_paths(
    stored: Mapping[str, tuple[np.ndarray, ...]],
    lengths_N: np.ndarray,
    need: Need,
    token_budget: int,
    legal: LegalTransitions | None = None,
) -> tuple[np.ndarray, ...]:
    """K best (legal) paths of a chain, from its stored emissions [R, Y]. Decoding only adds and compares, token by
    token, so neither padding nor the other sentences of a batch change a bit of it. Missing paths are 0 with score −∞.
    """
    import torch

    from raykd.structures import Chain, kbest

    (scores_RY,), (transitions, start_Y, end_Y) = (
        stored["emissions"],
        (part[0] for part in stored["transitions"]),
    )
    tags, ends = len(start_Y), np.cumsum(lengths_N)
    parts = [torch.from_numpy(np.array(part)) for part in (transitions.reshape(tags, tags), start_Y, end_Y)]
    paths_RK = np.empty((len(scores_RY), need.k), path_dtype(tags))
    scores_NK = np.empty((len(lengths_N), need.k), np.float32)
    for run in buckets(lengths_N, token_budget):
        lengths_B = lengths_N[run]
        tokens = slice(int(ends[run.start] - lengths_B[0]), int(ends[run.stop - 1]))
        inside_BT = np.arange(lengths_B.max()) < lengths_B[:, None]
        emissions_BTY = np.zeros((*inside_BT.shape, tags), np.float32)
        emissions_BTY[inside_BT] = scores_RY[tokens]
        chain = Chain(torch.from_numpy(emissions_BTY), torch.from_numpy(lengths_B.astype(np.int64)), *parts)
        paths_BKT, scores_BK = kbest(chain, need.k, legal)
        paths_RK[tokens], scores_NK[run] = paths_BKT.transpose(1, 2).numpy()[inside_BT], scores_BK.numpy()
    return paths_RK, scores_NK


def _read_transitions(columns: tuple[Tensor, ...], lengths_B: Tensor, need: Need) -> tuple[Tensor, ...]:
    transitions, start_BY, end_BY = columns
    tags = start_BY.shape[1]
    return transitions.reshape(-1, tags, tags), start_BY, end_BY


def _read_marginals(columns: tuple[Tensor, ...], lengths_B: Tensor, need: Need) -> Chain:
    from raykd.structures import Chain

    # Rounded, so renormalised where they are read.
    return Chain(columns[0].float().log_softmax(2), lengths_B)


def _read_paths(columns: tuple[Tensor, ...], lengths_B: Tensor, need: Need) -> tuple[Tensor, Tensor]:
    paths_BTK, scores_BK = columns
    return paths_BTK.transpose(1, 2).long(), scores_BK


def _read_features(columns: tuple[Tensor, ...], lengths_B: Tensor, need: Need) -> Tensor:
    return columns[0]


def _read_rows(columns: tuple[Tensor, ...], lengths_B: Tensor, need: Need) -> tuple[Tensor, Tensor]:
    return columns[0].float(), lengths_B


def _read_scaled(columns: tuple[Tensor, ...], lengths_B: Tensor, need: Need) -> tuple[Tensor, Tensor]:
    steps_BTD, scales_BT1 = columns
    return steps_BTD * scales_BT1, lengths_B


def _read_arcs(columns: tuple[Tensor, ...], lengths_B: Tensor, need: Need) -> tuple[Tensor, Tensor]:
    from raykd.structures.labelled_arcs import NEVER

    # Rounded, so renormalised where they are read.
    rows_BTH1, inside_BTH, words_B = _spread(columns[0], lengths_B)
    arcs_BTH = rows_BTH1[..., 0].float().masked_fill(~inside_BTH, NEVER).log_softmax(2)
    return arcs_BTH.masked_fill(~inside_BTH, NEVER), words_B


def _read_relations(columns: tuple[Tensor, ...], lengths_B: Tensor, need: Need) -> Tensor:
    rows_BTHR, inside_BTH, _ = _spread(columns[0], lengths_B)
    return rows_BTHR.float().log_softmax(3).masked_fill(~inside_BTH[..., None], 0)


def _spread(rows_BRV: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The rows of arcs, n(n + 1) for a sentence of n words, by word and head: [B, T, H, V] with T the words of the
    longest; which of them are inside their sentence; and the words of each sentence."""
    import torch

    # n² < n(n + 1) < (n + 1)²
    words_B, time = lengths_B.double().sqrt().long(), isqrt(rows_BRV.shape[1])
    heads_H = torch.arange(time + 1, device=rows_BRV.device)
    words_T = heads_H[:-1, None]
    last_B11 = words_B[:, None, None]
    inside_BTH = (words_T < last_B11) & (heads_H <= last_B11)
    row_BTH = torch.where(inside_BTH, words_T * (last_B11 + 1) + heads_H, 0)
    sentence_B = torch.arange(len(rows_BRV), device=rows_BRV.device)
    return rows_BRV[sentence_B[:, None, None], row_BTH], inside_BTH, words_B


def _float16(sizes: Sizes) -> DTypeLike:
    return np.float16


def _float32(sizes: Sizes) -> DTypeLike:
    return np.float32


def _log_scores(name: str, rows: Rows = "label") -> Column:
    return Column(name, rows, _float16, lambda sizes, need: sizes.tags, encode_log_scores)


def _state_size(sizes: Sizes, need: Need) -> int:
    return sizes.hidden[need.layer or 0]


def _states(name: str, rows: Rows) -> Column:
    return Column(name, rows, _float16, _state_size, encode_float16)


SIGNALS: Mapping[str, Signal] = MappingProxyType(
    {
        signal.name: signal
        for signal in (
            Signal("emissions", (_log_scores("emissions"),), _take_emissions, _read_rows),
            Signal(
                "transitions",
                (
                    Column(
                        "transitions", "teacher", _float32, lambda sizes, need: sizes.tags**2
                    ),  # [from, to]
                    Column("start", "teacher", _float32, lambda sizes, need: sizes.tags),
                    Column("end", "teacher", _float32, lambda sizes, need: sizes.tags),
                ),
                _take_transitions,
                _read_transitions,
            ),
            Signal("token_marginals", (_log_scores("token_marginals"),), _take_marginals, _read_marginals),
            Signal(
                "kbest",
                (
                    Column(
                        "paths", "label", lambda sizes: path_dtype(sizes.tags), lambda sizes, need: need.k
                    ),
                    Column("scores", "sentence", _float32, lambda sizes, need: need.k),
                ),
                _take_best_path,
                _read_paths,
                sources=("emissions", "transitions"),
                derive=_derive_paths,
                decoded=True,
            ),
            Signal("hidden", (_states("hidden", "label"),), _take_hidden, _read_rows),
            Signal(
                "hidden_int8",
                (
                    Column("hidden_int8", "label", lambda sizes: np.int8, _state_size, encode_int8),
                    Column("scale", "label", _float32, lambda sizes, need: 1),
                ),
                _take_scaled,
                _read_scaled,
            ),
            Signal("features", (_states("features", "word"),), _take_features, _read_features),
            # log P(head): a row is one number of a word's distribution, so its best is not taken off. And
            # log P(relation | head) of each word at every head, not at its best one (Wang et al., ACL 2021, Eq. 5).
            Signal(
                "arcs",
                (Column("arcs", "arc", _float16, lambda sizes, need: 1, encode_float16),),
                _take_arcs,
                _read_arcs,
            ),
            Signal("relations", (_log_scores("relations", "arc"),), _take_relations, _read_relations),
        )
    }
)
