import doctest

import numpy as np
import pytest

from raykd import signals
from raykd.signals import CHAIN, DERIVED, SIGNALS, Need, missing, path_dtype, to_read, to_store


def test_the_examples_in_the_docstrings_hold():
    result = doctest.testmod(signals)
    assert result.attempted > 0
    assert result.failed == 0


def test_tables_are_immutable_and_agree():
    with pytest.raises(TypeError):
        SIGNALS["emissions"] = SIGNALS["kbest"]  # pyright: ignore[reportIndexIssue]
    assert all(name == signal.name for name, signal in SIGNALS.items())
    assert all(part in SIGNALS for ways in DERIVED.values() for parts in ways for part in parts)


@pytest.mark.parametrize("name", ["kbest", "marginals", "pairs", "softened", "emissions", "transitions"])
def test_a_chain_teacher_meets_every_need(name):
    assert missing([Need(name, k=3)], ["emissions", "transitions"]) == ""


def test_kbest_offered_directly_is_the_best_path_and_no_more():
    assert missing([Need("kbest", k=1)], ["kbest"]) == ""
    assert "k = 3 is needed, and the teacher tells its best path only" in missing(
        [Need("kbest", k=3)], ["kbest"]
    )


TOLD = ("token_marginals", "kbest")


def test_a_teacher_that_is_no_chain_tells_of_tokens_only():
    assert missing([Need("marginals"), Need("kbest", 1)], TOLD) == ""
    for signal in ("pairs", "softened", "emissions", "transitions"):
        told = missing([Need(signal)], TOLD)
        assert f"{signal!r} is needed" in told
        assert "offers token_marginals and kbest only" in told


def test_what_is_stored_is_what_the_teacher_offers():
    needs = [Need("marginals"), Need("kbest", 1)]
    assert to_store(needs, TOLD) == (Need("token_marginals"), Need("kbest", 1))
    assert to_store(needs, CHAIN) == (Need("emissions"), Need("transitions"), Need("kbest", 1))
    assert to_read(needs, TOLD) == to_store(needs, TOLD)
    assert to_read(needs, (*SIGNALS,)) == (Need("emissions"), Need("transitions"), Need("kbest", 1))


def test_all_unmet_needs_are_told_together_and_once():
    told = missing([Need("kbest", 1), Need("kbest", 9), Need("emissions")], [])
    assert told.count("'kbest'") == 1
    assert "'emissions' is needed" in told
    assert "offers nothing" in told


def test_an_unknown_signal_is_named_with_the_known_ones():
    assert "'attention'" in missing([Need("attention")], ["emissions"])
    assert "transitions" in missing([Need("attention")], ["emissions"])


def test_to_store_keeps_the_largest_k_and_never_stores_marginals():
    stored = to_store([Need("kbest", 2), Need("marginals"), Need("kbest", 7)], CHAIN)
    assert stored == (Need("emissions"), Need("transitions"), Need("kbest", 7))
    assert to_store([Need("marginals")], CHAIN) == (Need("emissions"), Need("transitions"))
    assert to_store([], CHAIN) == ()


def test_to_read_takes_kbest_alone_and_marginals_from_their_parts():
    assert to_read([Need("kbest", 2), Need("kbest", 5)], SIGNALS) == (Need("kbest", 5),)
    assert to_read([Need("marginals")], CHAIN) == (Need("emissions"), Need("transitions"))


def test_bytes_are_those_of_the_arrays():
    length, tags, k = 11, 17, 4
    emissions = np.zeros((length, tags), np.float16)
    assert SIGNALS["emissions"].bytes_per_sentence(length, tags) == emissions.nbytes
    assert SIGNALS["token_marginals"].bytes_per_sentence(length, tags) == emissions.nbytes
    kbest = np.zeros((length, k), np.uint8).nbytes + np.zeros(k, np.float32).nbytes
    assert SIGNALS["kbest"].bytes_per_sentence(length, tags, k) == kbest
    transitions = sum(np.zeros(shape, np.float32).nbytes for shape in ((tags, tags), tags, tags))
    assert SIGNALS["transitions"].bytes_per_teacher(tags) == transitions
    assert SIGNALS["transitions"].bytes_per_sentence(length, tags) == 0


@pytest.mark.parametrize("tags", [256, 257])
def test_the_largest_tag_fits_the_path_type(tags):
    assert np.iinfo(path_dtype(tags)).max >= tags - 1
