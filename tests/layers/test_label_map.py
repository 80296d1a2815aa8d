"""Labels as tags: against enumeration of every labelling of independent words."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.errors import StoreError
from raykd.forms import FLAT, SPANS
from raykd.layers.label_map import match_labels

NER = SPANS.tag_set(["LOC", "PER"])
IOB2 = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def bioes_reading(path: tuple[str, ...]) -> list[str]:
    """Return BIOES tags of an IOB2 path: a span ends at a word without a following I-."""
    read = []
    for tag, after in itertools.zip_longest(path, path[1:], fillvalue=""):
        ends = tag != "O" and after != f"I-{tag[2:]}"
        read.append({"B": "S-", "I": "E-"}[tag[0]] + tag[2:] if ends else tag)
    return read


def enumerate_marginals(logits_TL, labels) -> torch.Tensor:
    """Return token marginals [T, Y] of the BIOES reading, over all labellings of the words."""
    probabilities = torch.softmax(logits_TL, -1)
    marginals = torch.zeros(len(logits_TL), len(NER), dtype=torch.float64)
    for path in itertools.product(range(len(labels)), repeat=len(logits_TL)):
        weight = torch.stack([probabilities[t, i] for t, i in enumerate(path)]).prod()
        for t, tag in enumerate(bioes_reading(tuple(labels[i] for i in path))):
            marginals[t, NER.index(tag)] += weight
    return marginals


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.permutations(IOB2), st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_iob2_becomes_bioes_exactly(seed, labels, lengths):
    draw = torch.Generator().manual_seed(seed)
    logits_BTL = 3 * torch.randn(len(lengths), max(lengths), 5, generator=draw, dtype=torch.float64)
    emissions_BTY = match_labels(labels, NER, {}, checkpoint="x").emissions(logits_BTL, torch.tensor(lengths))
    for b, n in enumerate(lengths):
        torch.testing.assert_close(emissions_BTY[b, :n].exp(), enumerate_marginals(logits_BTL[b, :n], labels))


def test_certain_labels_keep_their_digits():
    """1 − p is not taken by subtraction: in float32 it would be 0 here, and its logarithm −∞."""
    logits_BTL = torch.tensor([[[0.0, 30.0, 0.0, 0.0, 0.0], [0.0, 0.0, 30.0, 0.0, 0.0]]])
    emissions_BTY = match_labels(IOB2, NER, {}, checkpoint="x").emissions(logits_BTL, torch.tensor([2]))
    single = emissions_BTY[0, 0, NER.index("S-PER")]
    assert single == pytest.approx(torch.log(torch.tensor(4.0)).item() - 30, abs=1e-4)


def test_what_is_impossible_is_minus_infinity_and_nothing_is_nan():
    emissions_BTY = match_labels(IOB2, NER, {}, checkpoint="x").emissions(
        torch.randn(2, 3, 5), torch.tensor([3, 1])
    )
    impossible = [NER.index(tag) for tag in ("B-PER", "I-PER", "B-LOC", "I-LOC")]
    assert (emissions_BTY[0, 2, impossible] == float("-inf")).all()
    assert (emissions_BTY[1, 0, impossible] == float("-inf")).all()
    assert not emissions_BTY.isnan().any()


@pytest.mark.parametrize("tag_set", [NER, FLAT.tag_set(["NOUN", "VERB", "X"])])
def test_labels_that_are_the_tags_are_reordered_only(tag_set):
    labels = list(reversed(tag_set.tags))
    logits_BTL = torch.randn(2, 3, len(labels))
    emissions_BTY = match_labels(labels, tag_set, {}, checkpoint="x").emissions(
        logits_BTL, torch.tensor([3, 2])
    )
    torch.testing.assert_close(emissions_BTY, torch.log_softmax(logits_BTL, -1).flip(-1))


def test_renamed_labels_add_up_and_left_out_ones_are_renormalised():
    tag_set = FLAT.tag_set(["NOUN", "VERB"])
    labels = ("LABEL_0", "PROPN", "VERB", "X")
    label_map = match_labels(labels, tag_set, {"LABEL_0": "NOUN", "PROPN": "NOUN", "X": None}, checkpoint="x")
    probabilities = torch.tensor([[[0.2, 0.1, 0.3, 0.4]]])
    emissions_BTY = label_map.emissions(probabilities.log(), torch.tensor([1]))
    torch.testing.assert_close(emissions_BTY.exp(), torch.tensor([[[0.5, 0.5]]]))


@pytest.mark.parametrize(
    ("labels", "renamed", "message"),
    [
        (("LABEL_0", "LABEL_1"), {}, r"no names \(LABEL_0, LABEL_1\); name their tags in teachers.labels"),
        (("O", "B-PER", "I-PER"), {}, r"has no label for B-LOC, I-LOC;"),
        (
            (*IOB2, "B-MISC", "I-MISC"),
            {},
            r"labels that are not among the tags of the corpus \(B-MISC, I-MISC\); rename",
        ),
        (("O", "B-per", "I-per", "B-LOC", "I-LOC"), {}, r"no label for B-PER, I-PER and has labels .*B-per"),
        (("O", "B-PER", "I-PER", "E-PER", "S-PER"), {}, r"no label for B-LOC, I-LOC, E-LOC, S-LOC"),
        (IOB2, {"B-ORG": "O"}, r"has no label 'B-ORG'; choose from O, B-PER"),
    ],
)
def test_labels_that_do_not_correspond_are_refused_with_a_hint(labels, renamed, message):
    with pytest.raises(StoreError, match=message):
        match_labels(labels, NER, renamed, checkpoint="my/model")
