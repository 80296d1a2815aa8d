"""Match the needs of objectives with the offers of teachers.

Objectives state `needs`, teachers state `offers`. `explain_unmet_needs` compares the two before anything runs.
`signals_to_store` lists the signals that a transfer set must hold, `signals_to_read` the stored ones that a training
step reads, and `live_signals` those that the teacher computes in the training step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from raykd.signals import SIGNALS, Need

CHAIN = ("emissions", "transitions")
ARCS = ("arcs", "relations")
SAMPLES = ("samples",)
LAYER_SIGNALS = ("hidden", "hidden_int8", "piece_states", "attention")
"""Signals of a model's layers, not of its distribution: several models have no mean of them."""
LIVE_SIGNALS = ("piece_states", "attention")
"""Signals too large to store: the teacher reads the batch in the training step. All signals of a masked language model
are live as well, because every epoch masks different pieces."""

# name -> its sources, as alternatives: the first one that a teacher offers is used.
# "marginals" (of tokens), "pairs" (of neighbouring tokens) and "softened" (either, of scores divided by a temperature)
# are computed inside the training step and never stored, so that one transfer set serves every temperature.
# "soft_marginals" are marginals that are softened by a temperature, or whose logarithms are read: those of samples are
# 0 for all labels that no sample has, and stay 0 at any temperature.
# "weighted_paths" are labellings with their probabilities: samples, whatever their number, or the K best.
# "kbest" of a chain is computed once and stored, because decoding is expensive. A parser's arcs are read in the labels
# of the student, and these differ between students: so the K best labels of a parser are found inside the training
# step too, for any K. A parser's words are independent of each other: it has no pairs.
DERIVATIONS: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType(
    {
        "kbest": (CHAIN, ARCS),
        "marginals": (CHAIN, ("token_marginals",), ARCS, SAMPLES),
        "soft_marginals": (CHAIN, ("token_marginals",), ARCS),
        "weighted_paths": (("kbest",), SAMPLES),
        "pairs": (CHAIN, SAMPLES),
        "softened": (CHAIN, ARCS),
    }
)


def explain_unmet_needs(needs: Iterable[Need], offers: Iterable[str]) -> str:
    """Return a sentence on the needs not met by a teacher, directly or by derivation; empty if it meets all.

    Args:
        needs: the signals that objectives read.
        offers: names of the signals that the teacher gives.

    Examples:
        >>> explain_unmet_needs([Need("kbest", k=5)], ["emissions", "transitions"])
        ''
        >>> explain_unmet_needs([Need("kbest", k=5)], ["arcs", "relations"])
        ''
        >>> explain_unmet_needs([Need("emissions")], ["kbest"])
        "'emissions' is needed, and the teacher offers kbest only"
    """
    offered = tuple(dict.fromkeys(offers))
    stored_forms = (_stored_form(need, offered) for need in needs)
    unmet = {need.signal: need for need in stored_forms if _stored_needs(need, offered) is None}
    return "; ".join(_explain(need, offered) for need in unmet.values())


def signals_to_store(needs: Iterable[Need], offers: Iterable[str]) -> tuple[Need, ...]:
    """Return the signals to store for all needs together: each name once, K-best with the largest K, sources first.

    K-best of a chain is computed from the stored (rounded) emissions, so emissions and transitions are stored too.
    K-best of a parser is not stored.

    Args:
        needs: the signals that objectives read.
        offers: names of the signals that the teacher gives.

    Examples:
        >>> [need.name for need in signals_to_store([Need("kbest", k=5)], ["emissions", "transitions"])]
        ['emissions', 'transitions', 'kbest']
        >>> [need.name for need in signals_to_store([Need("kbest", k=5)], ["arcs", "relations"])]
        ['arcs', 'relations']
    """
    offered = tuple(offers)
    return _merge_needs(
        stored for need in needs for stored in _stored_needs(_stored_form(need, offered), offered) or ()
    )


def signals_to_read(needs: Iterable[Need], stored: Iterable[str]) -> tuple[Need, ...]:
    """Return the stored signals read by a training step: a stored K-best comes without its sources.

    Args:
        needs: the signals that the objective reads.
        stored: names of the signals in the transfer set.
    """
    stored = tuple(stored)
    forms = (_stored_form(need, stored) for need in needs)
    choices = ((need, _stored_needs(need, stored) or ()) for need in forms)
    return _merge_needs(
        signal for need, signals in choices for signal in ((need,) if need in signals else signals)
    )


def live_signals(needs: Iterable[Need], *, stores: bool) -> tuple[Need, ...]:
    """Return the signals computed by the teacher in the training step.

    Args:
        needs: the signals that the objective reads.
        stores: false if nothing of the teacher is stored, so that all its signals are live.
    """
    return tuple(dict.fromkeys(need for need in needs if not stores or need.signal in LIVE_SIGNALS))


def is_derived(need: Need, offers: Iterable[str]) -> bool:
    """Return true if a signal is computed from stored ones and the teacher offers the sources.

    Args:
        need: the signal.
        offers: names of the signals that the teacher gives.
    """
    return bool(SIGNALS[need.signal].sources) and set(SIGNALS[need.signal].sources) <= set(offers)


def _merge_needs(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Return each name once, with its largest k, in the order of `SIGNALS`."""
    largest: dict[str, Need] = {}
    for need in needs:
        if need.name not in largest or need.k > largest[need.name].k:
            largest[need.name] = need
    return tuple(need for signal in SIGNALS for need in largest.values() if need.signal == signal)


def _stored_form(need: Need, offered: tuple[str, ...]) -> Need:
    """Return the need in terms of signals: paths are the K best of a model, or an annotator's samples."""
    if need.signal == "weighted_paths" or (need.signal == "kbest" and need.k <= 1):
        best = Need("kbest", k=need.k)
        # The best labelling is the first sample.
        return Need("samples") if "samples" in offered and _stored_needs(best, offered) is None else best
    return need


def _stored_needs(need: Need, offered: tuple[str, ...]) -> tuple[Need, ...] | None:
    """Return the signals to store for one need: its sources, and the signal itself if it is stored too.

    Empty for a live signal; None if the offered signals do not meet the need.
    """
    direct = (need,) if need.signal in SIGNALS else ()
    for sources in DERIVATIONS.get(need.signal, ()):
        if all(source in offered for source in sources):
            stored = direct if direct and sources == SIGNALS[need.signal].sources else ()
            return (*(Need(source) for source in sources), *stored)
    if need.signal in LIVE_SIGNALS:
        return () if need.signal in offered else None
    # K-best that cannot be derived is found by the teacher itself, which gives its best path and no more.
    is_offered = need.signal in offered and (need.signal != "kbest" or need.k <= 1)
    return direct if is_offered else None


def _explain(need: Need, offered: tuple[str, ...]) -> str:
    offered_text = (
        f"the teacher offers {' and '.join(offered)} only" if offered else "the teacher offers nothing"
    )
    if need.signal in offered:
        return f"'kbest' with k = {need.k} is needed, and the teacher finds its best path only"
    if need.signal in DERIVATIONS:
        ways = " or from ".join(" and ".join(sources) for sources in DERIVATIONS[need.signal])
        return f"{need.signal!r} is needed: it derives from {ways}, and {offered_text}"
    if need.signal in SIGNALS or need.signal in LIVE_SIGNALS:
        return f"{need.signal!r} is needed, and {offered_text}"
    return f"{need.signal!r} is an unknown signal ({', '.join([*SIGNALS, *DERIVATIONS, *LIVE_SIGNALS])})"
