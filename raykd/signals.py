"""The signals of a teacher: name, columns, and how a signal is taken from an output, written and read.

The transfer store and the training loop walk these entries and name none of them. To add a signal, add an entry to
`_ENTRIES`, and a field to `TeacherBatch` for the tensors that are read back. `needs.py` says which signals serve an
objective.

A chain teacher offers its scores, from which everything else derives. A teacher that is no chain (spans, an average of
several teachers) offers `token_marginals` and its best path. A parser offers the log-probabilities of all arcs and of
their relations. An annotator offers `samples`: labellings with weights, which are all that it says.

Shapes: B batch, T labels of a sentence (one per word, or one), W words, P pieces, Y tags, K best, D size, H heads
(n + 1 for n words, head 0 is the root); N sentences and R rows of a shard, V values of one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from raykd.corpora.batching import length_buckets
from raykd.storage.rounding import INT8_MAX, encode_float16, encode_int8, encode_log_scores

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy.typing import DTypeLike
    from torch import Tensor

    from raykd.layers.model import Output
    from raykd.structures import Chain, LegalTransitions
    from raykd.structures.labelled_arcs import ArcsOnLabels, LabelledArcs

    Derive = Callable[
        [Mapping[str, tuple[np.ndarray, ...]], np.ndarray, "Need", int, LegalTransitions | None],
        tuple[np.ndarray, ...],
    ]
    """Computes a signal's columns from the stored columns of its sources, the lengths of the sentences, the need, the
    largest number of padded tokens of a batch, and the legal transitions."""

Rows = Literal["label", "word", "arc", "sentence", "teacher"]
"""Unit of which a column has one row: a label, a word, an arc, a sentence, or the teacher.

An arc is a word and a head: row t · (n + 1) + h of a sentence of n words is word t under head h. A `teacher` column is
stored once per teacher, not per text."""


@dataclass(frozen=True)
class EncoderOutput:
    """The output of a frozen encoder for a batch, in the place of an `Output`: one vector per word, as layer 0."""

    hidden: Mapping[int, Float[Tensor, "batch word size"]]


@dataclass(frozen=True)
class Need:
    """One signal, as an objective needs it.

    Attributes:
        signal: Name of the signal.
        k: Number of best paths; 0 for signals without paths.
        layer: Layer of the hidden states; None for signals without a layer.
    """

    signal: str
    k: int = 0
    layer: int | None = None

    @property
    def name(self) -> str:
        """The stored signal's name: the signal with its layer. A stored K-best serves every smaller `k`."""
        return self.signal if self.layer is None else f"{self.signal}.{self.layer}"


@dataclass(frozen=True)
class Sizes:
    """Sizes of a model, on which the shapes of signals and losses depend.

    Attributes:
        tags: Number of tags.
        hidden: Layer to components of a state, for the layers that are read.
        projected: Layers that the model projects to another model's width itself.
        samples: Largest number of labellings that an annotator gives for a sentence; 0 for models.
    """

    tags: int
    hidden: Mapping[int, int] = field(default_factory=dict, hash=False)
    projected: frozenset[int] = frozenset()
    samples: int = 0


@dataclass(frozen=True)
class Column:
    """One column of a stored signal, with V values in each row.

    Attributes:
        name: Name of the column in the shard.
        rows: Unit of a row.
        width: Returns V for given sizes.
        encode: Turns float32 values [R, V] into the stored values and returns them with the largest absolute error;
            None stores values as they are.
        dtype: Returns the stored type for given sizes.
    """

    name: str
    rows: Rows
    width: Callable[[Sizes, Need], int]
    encode: Callable[[np.ndarray], tuple[np.ndarray, float]] | None = None
    dtype: Callable[[Sizes], DTypeLike] = lambda sizes: np.float32

    def bytes_per_row(self, sizes: Sizes, need: Need) -> int:
        """Return the bytes of one row, without Arrow's own bookkeeping.

        Args:
            sizes: Sizes of the teacher.
            need: Signal with its `k` or layer.
        """
        return np.dtype(self.dtype(sizes)).itemsize * self.width(sizes, need)

    @property
    def is_list(self) -> bool:
        """True if the number of rows varies with the words of a sentence."""
        return self.rows in ("label", "word", "arc")

    def row_counts(self, words_N: np.ndarray, unit: str) -> np.ndarray:
        """Return the number of rows per sentence [N].

        Args:
            words_N: Words of each sentence.
            unit: Unit of a label: `word` or `sentence`.
        """
        if self.rows == "arc":
            return words_N * (words_N + 1)
        per_word = self.rows == "word" or (self.rows == "label" and unit == "word")
        return words_N if per_word else np.ones_like(words_N)

    def strip_padding(self, padded: np.ndarray, words: int, unit: str) -> np.ndarray:
        """Return the rows [R, V] of one sentence of a batch, without padding.

        Args:
            padded: Values of the sentence: [T, V], for arcs [T, H, V], else [V].
            words: Words of the sentence.
            unit: Unit of a label: `word` or `sentence`.
        """
        if self.rows == "arc":
            padded = padded[:words, : words + 1]
        return padded.reshape(-1, padded.shape[-1])[: int(self.row_counts(np.array(words), unit))]


@dataclass(frozen=True)
class Signal:
    """One kind of teacher knowledge, for example emissions.

    Attributes:
        name: Name of the signal.
        columns: Columns in which it is stored.
        take: Takes one tensor per column from a model's output: [B, rows, V] for label and word columns, [B, T, H, V]
            for arc columns, [B, V] for sentence columns, [V] for teacher columns.
        read: Turns the lengths [B] of the first column's rows and the gathered columns (padded with 0, on the device of
            the batch) into the tensors from which `TeacherBatch.from_signals` makes a batch.
        sources: Signals from whose stored columns `derive` computes this one.
        derive: Computes the columns of a shard from stored columns, if a teacher offers the sources. Stored values are
            rounded, so a later derivation gives the same bytes.
        decoded: Whether values depend on the legal labellings, and the signal's id on the teacher's decoding.
    """

    name: str
    columns: tuple[Column, ...]
    take: Callable[[Output, Need], tuple[Tensor, ...]]
    read: Callable[..., tuple[Tensor, ...]]
    sources: tuple[str, ...] = ()
    derive: Derive | None = None
    decoded: bool = False

    @property
    def once_per_teacher(self) -> bool:
        """True if the signal is stored once per teacher, for any text."""
        return self.columns[0].rows == "teacher"


@dataclass(frozen=True)
class TeacherBatch:
    """Signals of the teachers for the sentences of one batch, in the order of the batch. Unread parts are None.

    Attributes:
        chain: Emissions [B, T, Y], transitions [B, Y, Y] (`transitions[b, from, to]`), start and end scores [B, Y].
            Transitions have a batch dimension because sentences of one batch may have different teachers.
        paths_BKT: The K best paths, best first; int64, 0 on padding.
        scores_BK: Scores of the paths under the chain, or log-weights of samples; −∞ if a sentence has fewer than K
            paths.
        marginals: Token marginals of teachers that are no chains, as a chain without transitions.
        hidden: Hidden states from which labels are predicted, by layer and precision, and their number per sentence.
        features: Vectors of a frozen encoder for each word, in float16.
        arcs: Log-probabilities of a parser for heads and relations, in float32.
        on_labels: The same arcs, as seen through the labels of the student that is trained.
        pieces: Layer to states of all pieces, from a teacher that reads the batch in the training step.
        attention: Layer to attention scores of such a teacher, as in its `Output`.
        sample_lengths_B: Labels of each sentence, where the paths are an annotator's samples: then they are its whole
            distribution. None for the K best paths of a larger one.
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
    sample_lengths_B: Int[Tensor, " batch"] | None = None

    @staticmethod
    def from_signals(values: Mapping[Need, tuple[Tensor, ...]]) -> TeacherBatch:
        """Return the batch with the given signals.

        Args:
            values: Tensors of each need, as its signal's `read` returned them.
        """
        from raykd.structures import Chain
        from raykd.structures.labelled_arcs import LabelledArcs

        parts_by_signal = {need.signal: parts for need, parts in values.items()}
        chain = marginals = arcs = None
        if "emissions" in parts_by_signal:
            chain = Chain(*parts_by_signal["emissions"], *parts_by_signal.get("transitions", ()))
        # Storing rounded the probabilities, so they no longer sum to one.
        if "token_marginals" in parts_by_signal:
            logs_BTY, lengths_B = parts_by_signal["token_marginals"]
            marginals = Chain(logs_BTY.log_softmax(2), lengths_B)
        if {"arcs", "relations"} <= parts_by_signal.keys():
            (arcs_BN1, lengths_B), (relations_BNR, _) = parts_by_signal["arcs"], parts_by_signal["relations"]
            arcs = LabelledArcs.from_rows(arcs_BN1, relations_BNR, lengths_B)
        paths_BKT, scores_BK, *sample_lengths = parts_by_signal.get(
            "samples", parts_by_signal.get("kbest", (None, None))
        )
        return TeacherBatch(
            chain,
            paths_BKT,
            scores_BK,
            marginals=marginals,
            hidden={need: (parts[0], parts[1]) for need, parts in values.items() if need.layer is not None},
            features=parts_by_signal["features"][0] if "features" in parts_by_signal else None,
            arcs=arcs,
            sample_lengths_B=sample_lengths[0] if sample_lengths else None,
        )


def path_dtype(tags: int) -> np.dtype:
    """Return the integer type of stored paths: uint8 for up to 256 tags, else int16.

    Args:
        tags: Number of tags.
    """
    return np.dtype(np.uint8 if tags <= 256 else np.int16)


def _chain_of(output: Output) -> Chain:
    from raykd.structures import Chain

    if not isinstance(output.distribution, Chain):
        raise TypeError(f"a chain teacher gives a Chain, got {type(output.distribution).__name__}")
    return output.distribution


def _take_transitions(output: Output, need: Need) -> tuple[Tensor, ...]:
    return tuple(part[0].flatten() for part in _chain_of(output).filled())


def _take_marginals(output: Output, need: Need) -> tuple[Tensor, ...]:
    from raykd.structures import token_marginals

    return (token_marginals(output.distribution).log(),)


def _take_best_path(output: Output, need: Need) -> tuple[Tensor, ...]:
    from raykd.structures import viterbi

    # The best labelling cannot be computed from token marginals: a teacher that is no chain decodes it here.
    paths_BT, scores_B = viterbi(output.distribution, output.legal)
    return paths_BT[:, :, None], scores_B[:, None]


def _take_samples(output: Output, need: Need) -> tuple[Tensor, ...]:
    from raykd.structures import WeightedPaths

    paths = output.distribution
    if not isinstance(paths, WeightedPaths):
        raise TypeError(f"an annotator gives WeightedPaths, got {type(paths).__name__}")
    return paths.paths_BKT.transpose(1, 2), paths.log_weights_BK


def _take_hidden(output: Output, need: Need) -> tuple[Tensor, ...]:
    return (output.hidden[need.layer or 0],)


def _take_scaled(output: Output, need: Need) -> tuple[Tensor, ...]:
    states_BTD = output.hidden[need.layer or 0].float()
    return states_BTD, states_BTD.abs().amax(-1, keepdim=True) / INT8_MAX


def _arcs_of(output: Output) -> LabelledArcs:
    from raykd.structures.labelled_arcs import LabelledArcs

    return LabelledArcs.from_chain(_chain_of(output))


def _take_arcs(output: Output, need: Need) -> tuple[Tensor, ...]:
    from raykd.structures.labelled_arcs import FORBIDDEN

    arcs_BTH = _arcs_of(output).arcs_BTH
    # Forbidden arcs are set to exactly FORBIDDEN, or their rounding would be the largest error of the signal.
    return (arcs_BTH.masked_fill(arcs_BTH < FORBIDDEN / 2, FORBIDDEN)[..., None],)


def _derive_paths(
    stored: Mapping[str, tuple[np.ndarray, ...]],
    lengths_N: np.ndarray,
    need: Need,
    token_budget: int,
    legal: LegalTransitions | None = None,
) -> tuple[np.ndarray, ...]:
    """Compute the K best (legal) paths from stored emissions [R, Y]; missing paths are 0 with score −∞."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    from raykd.structures import Chain, kbest

    # Decoding only adds and compares, token by token: neither padding nor the other sentences of a batch change a bit.
    square, start_Y, end_Y = (torch.from_numpy(np.array(part[0])) for part in stored["transitions"])
    tags, (scores_RY,) = len(start_Y), stored["emissions"]
    rows_N = torch.from_numpy(scores_RY.astype(np.float32)).split(lengths_N.tolist())
    paths, scores = list[np.ndarray](), list[np.ndarray]()
    for run in length_buckets(lengths_N, token_budget):
        emissions_BTY = pad_sequence(list(rows_N[run]), batch_first=True)
        lengths_B = torch.from_numpy(lengths_N[run].astype(np.int64))
        chain = Chain(emissions_BTY, lengths_B, square.view(tags, tags), start_Y, end_Y)
        paths_BKT, scores_BK = kbest(chain, need.k, legal)
        paths.append(paths_BKT.transpose(1, 2)[chain.mask_BT].numpy().astype(path_dtype(tags)))
        scores.append(scores_BK.numpy())
    return np.concatenate(paths), np.concatenate(scores)


def _read_rows(lengths_B: Tensor, rows_BTV: Tensor) -> tuple[Tensor, ...]:
    return rows_BTV.float(), lengths_B


def _read_transitions(
    lengths_B: Tensor, square: Tensor, start_BY: Tensor, end_BY: Tensor
) -> tuple[Tensor, ...]:
    return square.unflatten(1, (start_BY.shape[1], -1)), start_BY, end_BY


def _read_paths(lengths_B: Tensor, paths_BTK: Tensor, scores_BK: Tensor) -> tuple[Tensor, ...]:
    return paths_BTK.transpose(1, 2).long(), scores_BK


def _read_samples(lengths_B: Tensor, paths_BTK: Tensor, log_weights_BK: Tensor) -> tuple[Tensor, ...]:
    return *_read_paths(lengths_B, paths_BTK, log_weights_BK), lengths_B


def _read_scaled(lengths_B: Tensor, steps_BTD: Tensor, scales_BT1: Tensor) -> tuple[Tensor, ...]:
    return steps_BTD * scales_BT1, lengths_B


def _tags(sizes: Sizes, need: Need) -> int:
    return sizes.tags


def _state_size(sizes: Sizes, need: Need) -> int:
    return sizes.hidden[need.layer or 0]


def _samples(sizes: Sizes, need: Need) -> int:
    return sizes.samples


def _float16(sizes: Sizes) -> DTypeLike:
    return np.float16


def _log_scores(name: str, rows: Rows = "label") -> Column:
    return Column(name, rows, _tags, encode_log_scores, _float16)


def _states(name: str, rows: Rows) -> Column:
    return Column(name, rows, _state_size, encode_float16, _float16)


_ENTRIES = (
    Signal(
        "emissions", (_log_scores("emissions"),),
        lambda output, need: (_chain_of(output).emissions_BTY,), _read_rows,
    ),
    Signal(
        "transitions",
        (
            Column("transitions", "teacher", lambda sizes, need: sizes.tags**2),  # [from, to]
            Column("start", "teacher", _tags),
            Column("end", "teacher", _tags),
        ),
        _take_transitions, _read_transitions,
    ),
    Signal("token_marginals", (_log_scores("token_marginals"),), _take_marginals, _read_rows),
    Signal(
        "kbest",
        (
            Column("paths", "label", lambda sizes, need: need.k, dtype=lambda sizes: path_dtype(sizes.tags)),
            Column("scores", "sentence", lambda sizes, need: need.k),
        ),
        _take_best_path, _read_paths, sources=("emissions", "transitions"), derive=_derive_paths, decoded=True,
    ),
    # All labellings of an annotator with their log-weights, merged and sorted: they are its whole distribution.
    Signal(
        "samples",
        (
            Column("sample_paths", "label", _samples, dtype=lambda sizes: path_dtype(sizes.tags)),
            Column("log_weights", "sentence", _samples),
        ),
        _take_samples, _read_samples,
    ),
    Signal("hidden", (_states("hidden", "label"),), _take_hidden, _read_rows),
    Signal(
        "hidden_int8",
        (
            Column("hidden_int8", "label", _state_size, encode_int8, lambda sizes: np.int8),
            Column("scale", "label", lambda sizes, need: 1),
        ),
        _take_scaled, _read_scaled,
    ),
    Signal(
        "features", (_states("features", "word"),), _take_hidden, lambda lengths_B, words_BTD: (words_BTD,)
    ),
    # log P(head): a row is one number of a word's distribution, so the row's maximum is not subtracted.
    # log P(relation | head) of each word for every head, not for its best one (Wang et al., ACL 2021, Eq. 5).
    Signal(
        "arcs", (Column("arcs", "arc", lambda sizes, need: 1, encode_float16, _float16),),
        _take_arcs, _read_rows,
    ),
    Signal(
        "relations", (_log_scores("relations", "arc"),),
        lambda output, need: (_arcs_of(output).relations_BTHR,), _read_rows,
    ),
)  # fmt: skip
SIGNALS: Mapping[str, Signal] = MappingProxyType({signal.name: signal for signal in _ENTRIES})
