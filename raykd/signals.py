"""The shared vocabulary of what a teacher can tell: signals, their bytes, and what derives from what.

Objectives state `needs`, teachers state `offers`; `missing` says before anything runs whether the two
meet, and `to_store` says which signals a transfer set must hold so that they do. How they are stored is
not known here.

A teacher that is a chain offers its scores, from which all else derives. Any other teacher (spans, several
teachers averaged) offers what tokens can be told of it, `token_marginals`, and its best path.

Shapes: B batch, T time (tokens), Y tags, K best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.structures import Chain


@dataclass(frozen=True)
class Need:
    """One signal that an objective reads; `k` is the number of best paths asked for (0 for other signals)."""

    signal: str
    k: int = 0


@dataclass(frozen=True)
class TeacherBatch:
    """What the teachers say about the sentences of one batch, in the order of the batch.

    `chain` carries emissions [B, T, Y] and, because sentences of one batch may have different teachers,
    transitions [B, Y, Y] (`transitions[b, from, to]`) with start and end scores [B, Y]. `paths_BKT` (int64,
    0 on padding) are the K best paths, best first, with their scores under the chain; where a sentence has
    fewer than K paths the score is -inf. `marginals` is what teachers that are no chains tell: independent
    tags with their token marginals, as a chain without transitions. A part that nobody needs is None.
    """

    chain: Chain | None = None
    paths_BKT: Int[Tensor, "batch best time"] | None = None
    scores_BK: Float[Tensor, "batch best"] | None = None
    marginals: Chain | None = None


@dataclass(frozen=True)
class Signal:
    """One kind of thing that a teacher tells, as it is stored.

    `size` gives the bytes of one item from its length (tokens), the number of tags and K: one sentence where
    `per` is "token" or "sentence", the whole signal where `per` is "teacher". Containers add a little.
    """

    name: str
    dtype: str
    shape: str
    per: Literal["token", "sentence", "teacher"]
    size: Callable[[int, int, int], int]

    def bytes_per_sentence(self, length: int, tags: int, k: int = 0) -> int:
        """Bytes that one sentence of `length` tokens takes; 0 for a signal stored once per teacher."""
        return 0 if self.per == "teacher" else self.size(length, tags, k)

    def bytes_per_teacher(self, tags: int) -> int:
        """Bytes stored once per teacher; 0 for a signal stored per token or sentence."""
        return self.size(0, tags, 0) if self.per == "teacher" else 0


def path_dtype(tags: int) -> np.dtype:
    """The integer type that stored paths have: uint8 while the tags fit, else int16."""
    return np.dtype(np.uint8 if tags <= 256 else np.int16)


def _emission_bytes(length: int, tags: int, k: int) -> int:
    return 2 * length * tags


def _transition_bytes(length: int, tags: int, k: int) -> int:
    return 4 * (tags * tags + 2 * tags)


def _kbest_bytes(length: int, tags: int, k: int) -> int:
    return k * (length * path_dtype(tags).itemsize + 4)


SIGNALS: Mapping[str, Signal] = MappingProxyType(
    {
        signal.name: signal
        for signal in (
            # Each row's maximum is subtracted before rounding: a chain's distribution does not change by it,
            # and float16 is finest near 0, where the likely tags then stand.
            Signal("emissions", "float16", "[T, Y], each row's maximum subtracted", "token", _emission_bytes),
            Signal(
                "transitions", "float32", "[Y, Y] from, to; start [Y]; end [Y]", "teacher", _transition_bytes
            ),
            # Log-probabilities of each token's tags, so rounded alike; renormalised where they are read.
            Signal(
                "token_marginals",
                "float16",
                "[T, Y] log, each row's maximum subtracted",
                "token",
                _emission_bytes,
            ),
            Signal("kbest", "uint8|int16, float32", "paths [T, K], scores [K]", "sentence", _kbest_bytes),
        )
    }
)

CHAIN = ("emissions", "transitions")

# name -> what it is computed from, the first alternative that a teacher offers. "marginals" (of tokens), "pairs" (of
# neighbouring tokens) and "softened" (either, of scores divided by a temperature) are computed inside the training
# step and never stored, so that one transfer set serves every temperature; "kbest" is computed once and stored:
# decoding is dear.
DERIVED: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType(
    {"kbest": (CHAIN,), "marginals": (CHAIN, ("token_marginals",)), "pairs": (CHAIN,), "softened": (CHAIN,)}
)


def missing(needs: Iterable[Need], offers: Iterable[str]) -> str:
    """Say which needs a teacher's offers do not meet, directly or by derivation; empty when all are met.

    Examples:
        >>> missing([Need("kbest", k=5)], ["emissions", "transitions"])
        ''
        >>> missing([Need("emissions")], ["kbest"])
        "'emissions' is needed, and the teacher offers kbest only"
    """
    offered = tuple(dict.fromkeys(offers))
    unmet = {need.signal: need for need in needs if _parts(need, offered) is None}
    return "; ".join(_explain(need, offered) for need in unmet.values())


def to_store(needs: Iterable[Need], offers: Iterable[str]) -> tuple[Need, ...]:
    """The stored signals that serve all `needs` together: each name once, K-best with the largest K asked.

    K-best of a chain is computed from the stored (rounded) emissions, so it brings emissions and transitions.
    """
    offered = tuple(offers)
    return _largest(part for need in needs for part in _parts(need, offered) or ())


def to_read(needs: Iterable[Need], stored: Iterable[str]) -> tuple[Need, ...]:
    """The signals of those `stored` that a training step reads: K-best comes without what it derives from."""
    held = tuple(stored)
    direct = ((need,) if need.signal in SIGNALS else _parts(need, held) or () for need in needs)
    return _largest(part for parts in direct for part in parts)


def _largest(needs: Iterable[Need]) -> tuple[Need, ...]:
    largest: dict[str, int] = {}
    for need in needs:
        largest[need.signal] = max(need.k, largest.get(need.signal, 0))
    return tuple(Need(signal, largest[signal]) for signal in SIGNALS if signal in largest)


def _parts(need: Need, offered: tuple[str, ...]) -> tuple[Need, ...] | None:
    """What of the offered signals must be stored to meet a need; None where they do not meet it."""
    own = (need,) if need.signal in SIGNALS else ()
    for parts in DERIVED.get(need.signal, ()):
        if all(part in offered for part in parts):
            return (*(Need(part) for part in parts), *own)
    # Best paths that do not derive are those that a teacher finds itself: its best one and no more.
    told = need.signal in offered and (need.signal != "kbest" or need.k <= 1)
    return own if told else None


def _explain(need: Need, offered: tuple[str, ...]) -> str:
    offers = f"the teacher offers {' and '.join(offered)} only" if offered else "the teacher offers nothing"
    if need.signal in offered:
        return f"'kbest' with k = {need.k} is needed, and the teacher tells its best path only"
    if need.signal in DERIVED:
        ways = " or from ".join(" and ".join(parts) for parts in DERIVED[need.signal])
        return f"{need.signal!r} is needed: it derives from {ways}, and {offers}"
    if need.signal in SIGNALS:
        return f"{need.signal!r} is needed, and {offers}"
    return f"{need.signal!r} is no signal that raykd knows ({', '.join({**SIGNALS, **DERIVED})})"
