import pytest

from raykd.needs import ARCS, CHAIN, DERIVED, LIVE, derives, missing, read_live, to_read, to_store
from raykd.signals import SIGNALS, Need

NON_CHAIN = ("token_marginals", "kbest")


def test_what_derives_is_computed_from_known_signals():
    assert all(part in SIGNALS for ways in DERIVED.values() for parts in ways for part in parts)
    for name, signal in SIGNALS.items():
        assert (signal.derive is None) == (signal.sources == ())
        assert not signal.sources or signal.sources in DERIVED[name]


@pytest.mark.parametrize("name", ["kbest", "marginals", "pairs", "softened", "emissions", "transitions"])
def test_a_chain_teacher_meets_every_need(name):
    assert missing([Need(name, k=3)], CHAIN) == ""


def test_kbest_offered_directly_is_the_best_path_and_no_more():
    assert missing([Need("kbest", k=1)], ["kbest"]) == ""
    message = missing([Need("kbest", k=3)], ["kbest"])
    assert message == "'kbest' with k = 3 is needed, and the teacher finds its best path only"


def test_a_non_chain_teacher_offers_tokens_only():
    assert missing([Need("marginals"), Need("kbest", 1)], NON_CHAIN) == ""
    for signal in ("pairs", "softened", "emissions", "transitions"):
        message = missing([Need(signal)], NON_CHAIN)
        assert f"{signal!r} is needed" in message
        assert "offers token_marginals and kbest only" in message


def test_what_is_stored_is_what_the_teacher_offers():
    wanted = [Need("marginals"), Need("kbest", 1)]
    assert to_store(wanted, NON_CHAIN) == (Need("token_marginals"), Need("kbest", 1))
    assert to_store(wanted, CHAIN) == (Need("emissions"), Need("transitions"), Need("kbest", 1))
    assert to_read(wanted, NON_CHAIN) == to_store(wanted, NON_CHAIN)
    assert to_read(wanted, (*SIGNALS,)) == (Need("emissions"), Need("transitions"), Need("kbest", 1))


def test_a_parser_serves_all_but_pairs_from_its_arcs_and_relations():
    wanted = [Need("kbest", 7), Need("marginals"), Need("softened")]
    assert missing(wanted, ARCS) == ""
    assert to_store(wanted, ARCS) == to_read(wanted, ARCS) == (Need("arcs"), Need("relations"))
    for name in ("marginals", "softened"):
        assert (
            to_store([Need(name)], ARCS) == to_read([Need(name)], ARCS) == (Need("arcs"), Need("relations"))
        )
    message = missing([Need("pairs")], ARCS)
    assert message == (
        "'pairs' is needed: it derives from emissions and transitions, and the teacher offers arcs and relations only"
    )


@pytest.mark.parametrize("k", [1, 5])
def test_best_labels_of_a_parser_are_not_stored(k):
    """They are found in the student's labels: nothing that is stored of the teacher has them."""
    assert (
        to_store([Need("kbest", k)], ARCS)
        == to_read([Need("kbest", k)], ARCS)
        == (Need("arcs"), Need("relations"))
    )
    assert not derives(Need("kbest", k), ARCS)
    assert "'kbest' is needed" in missing([Need("kbest", k)], ["arcs"])


def test_best_paths_derive_only_where_a_teacher_offers_scores():
    assert derives(Need("kbest", 3), CHAIN)
    assert not derives(Need("kbest", 1), NON_CHAIN)
    assert not derives(Need("emissions"), CHAIN)


def test_all_unmet_needs_are_listed_together_and_once():
    message = missing([Need("kbest", 1), Need("kbest", 9), Need("emissions")], [])
    assert message.count("'kbest'") == 1
    assert "'emissions' is needed" in message
    assert "offers nothing" in message


def test_an_unknown_signal_is_named_with_the_known_ones():
    message = missing([Need("entropy")], ["emissions"])
    assert "'entropy'" in message
    assert all(name in message for name in (*SIGNALS, *DERIVED, *LIVE))


def test_what_is_never_stored_is_given_in_the_training_step():
    needs = (Need("emissions"), Need("piece_states", layer=2), Need("attention", layer=1))
    offers = (*CHAIN, *LIVE)
    assert missing(needs, offers) == ""
    assert "'attention' is needed" in missing(needs, CHAIN)
    assert to_store(needs, offers) == (Need("emissions"),)
    assert read_live(needs, stores=True) == needs[1:]
    assert read_live(needs, stores=False) == needs


def test_to_store_keeps_the_largest_k_and_never_stores_marginals():
    stored = to_store([Need("kbest", 2), Need("marginals"), Need("kbest", 7)], CHAIN)
    assert stored == (Need("emissions"), Need("transitions"), Need("kbest", 7))
    assert to_store([Need("marginals")], CHAIN) == (Need("emissions"), Need("transitions"))
    assert to_store([], CHAIN) == ()


def test_sources_are_stored_before_what_derives_from_them():
    for wanted in ([Need("kbest", 2), Need("emissions")], [Need("transitions"), Need("kbest", 2)]):
        stored = to_store(wanted, CHAIN)
        for place, need in enumerate(stored):
            assert set(SIGNALS[need.signal].sources) <= {each.signal for each in stored[:place]}


def test_to_read_takes_kbest_alone_and_marginals_from_their_parts():
    assert to_read([Need("kbest", 2), Need("kbest", 5)], SIGNALS) == (Need("kbest", 5),)
    assert to_read([Need("marginals")], CHAIN) == (Need("emissions"), Need("transitions"))


def test_a_layer_is_a_signal_of_its_own():
    assert Need("emissions").name == "emissions"
    assert Need("hidden", layer=2).name == "hidden.2"
    assert Need("kbest", 3).name == Need("kbest", 5).name
