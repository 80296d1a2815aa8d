"""Which signals serve an objective: `needs` held against `offers`.

Objectives state `needs`, teachers state `offers`. `missing` checks before anything runs whether the two match.
`to_store` gives the signals that a transfer set must hold so that they do, `to_read` those of the stored ones that a
training step reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from raykd.signals import SIGNALS, Need

CHAIN = ("emissions", "transitions")
ARCS = ("arcs", "relations")
LAYER_SIGNALS = ("hidden", "hidden_int8", "piece_states", "attention")
"""What is of a model's layers, not of its distribution: several models have no mean of it."""
LIVE_SIGNALS = ("piece_states", "attention")
"""What is too much to store: the teacher reads the batch in the training step. Of a masked language model that holds
for all that it gives, since every epoch masks other pieces."""

# name -> what it is computed from: the first alternative that a teacher offers. "marginals" (of tokens), "pairs" (of
# neighbouring tokens) and "softened" (either, of scores divided by a temperature) are computed inside the training
# step and never stored, so that one transfer set serves every temperature; "kbest" of a chain is computed once and
# stored, because decoding is expensive. A parser's arcs are read in the labels of the student, which differ from one
# student to the next: so its best labels are found inside the training step too, and of any number. Its words are
# independent of each other: it has no pairs.
DERIVATIONS: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType(
    {
        "kbest": (CHAIN, ARCS),
        "marginals": (CHAIN, ("token_marginals",), ARCS),
        "pairs": (CHAIN,),
        "softened": (CHAIN, ARCS),
    }
)


def explain_unmet_needs(needs: Iterable[Need], offers: Iterable[str]) -> str:
    """Which needs a teacher's offers do not meet, directly or by derivation, in words; empty when all are met.

    Examples:
        >>> missing([Need("kbest", k=5)], ["emissions", "transitions"])
        ''
        >>> missing([Need("kbest", k=5)], ["arcs", "relations"])
        ''
        >>> missing([Need("emissions")], ["kbest"])
        "'emissions' is needed, and the teacher offers kbest only"
    """
    offered = tuple(dict.fromkeys(offers))
    unmet = {need.signal: need for need in needs if _parts(need, offered) is None}
    return "; ".join(_explain(need, offered) for need in unmet.values())


def signals_to_store(needs: Iterable[Need], offers: Iterable[str]) -> tuple[Need, ...]:
    """The stored signals that serve all `needs` together: each name once, K-best with the largest K, sources first.

    K-best of a chain is computed from the stored (rounded) emissions, so it brings emissions and transitions. K-best of
    a parser is not stored.

    Examples:
        >>> [need.name for need in to_store([Need("kbest", k=5)], ["emissions", "transitions"])]
        ['emissions', 'transitions', 'kbest']
        >>> [need.name for need in to_store([Need("kbest", k=5)], ["arcs", "relations"])]
        ['arcs', 'relations']
    """
    offered = tuple(offers)
    return _largest(part for need in needs for part in _parts(need, offered) or ())


def signals_to_read(needs: Iterable[Need], stored: Iterable[str]) -> tuple[Need, ...]:
    """The signals of those `stored` that a training step reads: K-best that is stored comes without what it derives
    from.
    """
    held = tuple(stored)
    parts = ((need, _parts(need, held) or ()) for need in needs)
    return _largest(part for need, own in parts for part in ((need,) if need in own else own))


def live_signals(needs: Iterable[Need], *, stores: bool) -> tuple[Need, ...]:
    """The signals that the teacher gives in the training step: those that are never stored, or all where it `stores`
    nothing.
    """
    return tuple(dict.fromkeys(need for need in needs if not stores or need.signal in LIVE_SIGNALS))


def is_derived(need: Need, offers: Iterable[str]) -> bool:
    """Whether the signal is computed from stored ones, where a teacher offers these."""
    return bool(SIGNALS[need.signal].sources) and set(SIGNALS[need.signal].sources) <= set(offers)


def _largest(needs: Iterable[Need]) -> tuple[Need, ...]:
    largest: dict[str, Need] = {}
    for need in needs:
        if need.name not in largest or need.k > largest[need.name].k:
            largest[need.name] = need
    return tuple(need for signal in SIGNALS for need in largest.values() if need.signal == signal)


def _parts(need: Need, offered: tuple[str, ...]) -> tuple[Need, ...] | None:
    """What of the offered signals must be stored to meet a need; None where they do not meet it."""
    own = (need,) if need.signal in SIGNALS else ()
    for parts in DERIVATIONS.get(need.signal, ()):
        if all(part in offered for part in parts):
            stored = own if own and parts == SIGNALS[need.signal].sources else ()
            return (*(Need(part) for part in parts), *stored)
    if need.signal in LIVE_SIGNALS:
        return () if need.signal in offered else None
    # Best paths that do not derive are those that a teacher finds itself: its best one and no more.
    given = need.signal in offered and (need.signal != "kbest" or need.k <= 1)
    return own if given else None


def _explain(need: Need, offered: tuple[str, ...]) -> str:
    offers = f"the teacher offers {' and '.join(offered)} only" if offered else "the teacher offers nothing"
    if need.signal in offered:
        return f"'kbest' with k = {need.k} is needed, and the teacher finds its best path only"
    if need.signal in DERIVATIONS:
        ways = " or from ".join(" and ".join(parts) for parts in DERIVATIONS[need.signal])
        return f"{need.signal!r} is needed: it derives from {ways}, and {offers}"
    if need.signal in SIGNALS or need.signal in LIVE_SIGNALS:
        return f"{need.signal!r} is needed, and {offers}"
    return f"{need.signal!r} is an unknown signal ({', '.join([*SIGNALS, *DERIVATIONS, *LIVE_SIGNALS])})"
