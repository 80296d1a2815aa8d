import pytest

from raykd.needs import (
    ARCS,
    CHAIN,
    DERIVATIONS,
    LIVE_SIGNALS,
    explain_unmet_needs,
    is_derived,
    live_signals,
    signals_to_read,
    signals_to_store,
)
from raykd.signals import SIGNALS, Need

NON_CHAIN = ("token_marginals", "kbest")


def test_what_derives_is_computed_from_known_signals():
    assert all(part in SIGNALS for ways in DERIVATIONS.values() for parts in ways for part in parts)
    for name, signal in SIGNALS.items():
        assert (signal.derive is None) == (signal.sources == ())
        assert not signal.sources or signal.sources in DERIVATIONS[name]


@pytest.mark.parametrize("name", ["kbest", "marginals", "pairs", "softened", "emissions", "transitions"])
def test_a_chain_teacher_meets_every_need(name):
    assert explain_unmet_needs([Need(name, k=3)], CHAIN) == ""


def test_kbest_offered_directly_is_the_best_path_and_no_more():
    assert explain_unmet_needs([Need("kbest", k=1)], ["kbest"]) == ""
    message = explain_unmet_needs([Need("kbest", k=3)], ["kbest"])
    assert message == "'kbest' with k = 3 is needed, and the teacher finds its best path only"


def test_a_non_chain_teacher_offers_tokens_only():
    assert explain_unmet_needs([Need("marginals"), Need("kbest", 1)], NON_CHAIN) == ""
    for signal in ("pairs", "softened", "emissions", "transitions"):
        message = explain_unmet_needs([Need(signal)], NON_CHAIN)
        assert f"{signal!r} is needed" in message
        assert "offers token_marginals and kbest only" in message


def test_what_is_stored_is_what_the_teacher_offers():
    needs = [Need("marginals"), Need("kbest", 1)]
    assert signals_to_store(needs, NON_CHAIN) == (Need("token_marginals"), Need("kbest", 1))
    assert signals_to_store(needs, CHAIN) == (Need("emissions"), Need("transitions"), Need("kbest", 1))
    assert signals_to_read(needs, NON_CHAIN) == signals_to_store(needs, NON_CHAIN)
    assert signals_to_read(needs, (*SIGNALS,)) == (Need("emissions"), Need("transitions"), Need("kbest", 1))


def test_a_parser_serves_all_but_pairs_from_its_arcs_and_relations():
    needs = [Need("kbest", 7), Need("marginals"), Need("softened")]
    assert explain_unmet_needs(needs, ARCS) == ""
    assert signals_to_store(needs, ARCS) == signals_to_read(needs, ARCS) == (Need("arcs"), Need("relations"))
    for name in ("marginals", "softened"):
        assert (
            signals_to_store([Need(name)], ARCS)
            == signals_to_read([Need(name)], ARCS)
            == (Need("arcs"), Need("relations"))
        )
    message = explain_unmet_needs([Need("pairs")], ARCS)
    assert message == (
        "'pairs' is needed: it derives from emissions and transitions or from samples, and the teacher offers arcs and "
        "relations only"
    )


@pytest.mark.parametrize("k", [1, 5])
def test_best_labels_of_a_parser_are_not_stored(k):
    """K-best is found in the student's labels: nothing that is stored of the teacher has them."""
    assert (
        signals_to_store([Need("kbest", k)], ARCS)
        == signals_to_read([Need("kbest", k)], ARCS)
        == (Need("arcs"), Need("relations"))
    )
    assert not is_derived(Need("kbest", k), ARCS)
    assert "'kbest' is needed" in explain_unmet_needs([Need("kbest", k)], ["arcs"])


def test_best_paths_derive_only_where_a_teacher_offers_scores():
    assert is_derived(Need("kbest", 3), CHAIN)
    assert not is_derived(Need("kbest", 1), NON_CHAIN)
    assert not is_derived(Need("emissions"), CHAIN)


def test_all_unmet_needs_are_listed_together_and_once():
    message = explain_unmet_needs([Need("kbest", 1), Need("kbest", 9), Need("emissions")], [])
    assert message.count("'kbest'") == 1
    assert "'emissions' is needed" in message
    assert "offers nothing" in message


def test_an_unknown_signal_is_named_with_the_known_ones():
    message = explain_unmet_needs([Need("entropy")], ["emissions"])
    assert "'entropy'" in message
    assert all(name in message for name in (*SIGNALS, *DERIVATIONS, *LIVE_SIGNALS))


def test_what_is_never_stored_is_given_in_the_training_step():
    needs = (Need("emissions"), Need("piece_states", layer=2), Need("attention", layer=1))
    offers = (*CHAIN, *LIVE_SIGNALS)
    assert explain_unmet_needs(needs, offers) == ""
    assert "'attention' is needed" in explain_unmet_needs(needs, CHAIN)
    assert signals_to_store(needs, offers) == (Need("emissions"),)
    assert live_signals(needs, stores=True) == needs[1:]
    assert live_signals(needs, stores=False) == needs


def test_to_store_keeps_the_largest_k_and_never_stores_marginals():
    stored = signals_to_store([Need("kbest", 2), Need("marginals"), Need("kbest", 7)], CHAIN)
    assert stored == (Need("emissions"), Need("transitions"), Need("kbest", 7))
    assert signals_to_store([Need("marginals")], CHAIN) == (Need("emissions"), Need("transitions"))
    assert signals_to_store([], CHAIN) == ()


def test_sources_are_stored_before_what_derives_from_them():
    for needs in ([Need("kbest", 2), Need("emissions")], [Need("transitions"), Need("kbest", 2)]):
        stored = signals_to_store(needs, CHAIN)
        for place, need in enumerate(stored):
            assert set(SIGNALS[need.signal].sources) <= {earlier.signal for earlier in stored[:place]}


def test_to_read_takes_kbest_alone_and_marginals_from_their_parts():
    assert signals_to_read([Need("kbest", 2), Need("kbest", 5)], SIGNALS) == (Need("kbest", 5),)
    assert signals_to_read([Need("marginals")], CHAIN) == (Need("emissions"), Need("transitions"))


def test_a_layer_is_a_signal_of_its_own():
    assert Need("emissions").name == "emissions"
    assert Need("hidden", layer=2).name == "hidden.2"
    assert Need("kbest", 3).name == Need("kbest", 5).name
