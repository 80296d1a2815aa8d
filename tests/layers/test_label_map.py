"""Labels as tags: against enumeration of every labelling of independent words."""

import itertools
import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from raykd.errors import StoreError
from raykd.forms import FLAT, SPANS, UTTERANCES
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


def enumerate_marginals(logits_TL, labels, name_of=str) -> torch.Tensor:
    """Return token marginals [T, Y] of the BIOES reading, over all labellings without a label whose name is None."""
    probabilities = torch.softmax(logits_TL, -1).tolist()
    marginals = torch.zeros(len(logits_TL), len(NER), dtype=torch.float64)
    names = [name_of(label) for label in labels]
    is_iob2 = {label[0] for label in labels} <= set("OBI")
    for path in itertools.product(range(len(labels)), repeat=len(logits_TL)):
        tags = [names[i] for i in path]
        if None in tags:
            continue
        weight = math.prod(probabilities[t][i] for t, i in enumerate(path))
        for t, tag in enumerate(bioes_reading(tuple(tags)) if is_iob2 else tags):
            marginals[t, NER.index(tag)] += weight
    return marginals / marginals.sum(-1, keepdim=True)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.permutations(IOB2), st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_iob2_becomes_bioes_exactly(seed, labels, lengths):
    draw = torch.Generator().manual_seed(seed)
    logits_BTL = 3 * torch.randn(len(lengths), max(lengths), 5, generator=draw, dtype=torch.float64)
    emissions_BTY = match_labels(labels, NER, {}, checkpoint="x").emissions(logits_BTL, torch.tensor(lengths))
    for b, n in enumerate(lengths):
        torch.testing.assert_close(emissions_BTY[b, :n].exp(), enumerate_marginals(logits_BTL[b, :n], labels))


SCHEMES = {"iob2": "BI", "bioes": "BIES", "bilou": "BILU", "bmes": "BMES", "bmewo": "BMEW"}
BIOES_LETTERS = {"L": "E", "U": "S", "M": "I", "W": "S"}


def plain_name(label, renamed):
    """Return the name of a label, by the rules of `teachers.labels` one after the other."""
    if label in renamed or label == "O":
        return renamed.get(label, label)
    letter, kind = label.split("-")
    name = renamed[kind] if kind in renamed else kind if kind in NER.labels else renamed["*"]
    return name if name in (None, "O") else f"{BIOES_LETTERS.get(letter, letter)}-{name}"


@st.composite
def renamed_types(draw):
    """Labels of a checkpoint with the types PER, person and city, and names for its types and some single labels."""
    letters = SCHEMES[draw(st.sampled_from(sorted(SCHEMES)))]
    labels = draw(
        st.permutations(["O", *(f"{x}-{kind}" for x in letters for kind in ("PER", "person", "city"))])
    )
    names = st.sampled_from(["PER", "LOC", "O", None])
    renamed = {"city": "LOC", **draw(st.dictionaries(st.sampled_from(["PER", "person"]), names))}
    renamed["*"] = draw(names)
    if draw(st.booleans()):
        renamed["O"] = draw(st.sampled_from(["O", None]))
    for label in draw(st.sets(st.sampled_from([x for x in labels if "person" in x]))):
        letter = BIOES_LETTERS.get(label[0], label[0])
        renamed[label] = draw(st.sampled_from([f"{letter}-PER", f"{letter}-LOC", "O", None]))
    return labels, renamed


@settings(max_examples=100, deadline=None)
@given(renamed_types(), st.integers(0, 2**31), st.integers(1, 3))
def test_types_with_other_names_are_those_of_every_labelling(names, seed, words):
    labels, renamed = names
    read = [plain_name(label, renamed) for label in labels]
    assume({"O", *(f"B-{kind}" for kind in NER.labels)} <= set(read))
    # Names of single labels may leave a type without one of its letters.
    letters = "BI" if len(labels) == 7 else "BIES"
    assume(all(f"{letter}-{kind}" in read for letter in letters for kind in NER.labels))
    draw = torch.Generator().manual_seed(seed)
    words = words if len(labels) == 7 else min(words, 2)
    logits_BTL = 3 * torch.randn(1, words, len(labels), generator=draw, dtype=torch.float64)
    emissions_BTY = match_labels(labels, NER, renamed, checkpoint="x").emissions(
        logits_BTL, torch.tensor([words])
    )
    expected_TY = enumerate_marginals(logits_BTL[0], labels, lambda label: plain_name(label, renamed))
    torch.testing.assert_close(emissions_BTY[0].exp(), expected_TY)


def test_a_type_without_a_name_in_the_corpus_adds_to_o():
    """The labels of a filter for private data: 33 labels, one of whose eight types is a name."""
    kinds = ("person", "email", "phone", "address", "url", "date", "account", "secret")
    labels = ("O", *(f"{letter}-private_{kind}" for kind in kinds for letter in "BIES"))
    tag_set = SPANS.tag_set(["PER"])
    label_map = match_labels(labels, tag_set, {"private_person": "PER", "*": "O"}, checkpoint="x")
    logits_BTL = 5 * torch.randn(2, 3, 33, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    emissions_BTY = label_map.emissions(logits_BTL, torch.tensor([3, 3]))
    probabilities_BTL = logits_BTL.softmax(-1)
    torch.testing.assert_close(emissions_BTY[..., 1:].exp(), probabilities_BTL[..., 1:5])
    outside_BT = probabilities_BTL[..., 0] + probabilities_BTL[..., 5:].sum(-1)
    torch.testing.assert_close(emissions_BTY[..., 0].exp(), outside_BT)


def test_a_small_probability_of_o_keeps_its_digits():
    """In float32 its complement is 1: it is added up in logarithms."""
    labels = ("O", "B-person", "I-person", "B-date", "I-date")
    label_map = match_labels(labels, SPANS.tag_set(["PER"]), {"person": "PER", "date": "O"}, checkpoint="x")
    emissions_BTY = label_map.emissions(torch.tensor([[[0.0, 60.0, 0.0, 0.0, 0.0]]]), torch.tensor([1]))
    assert emissions_BTY[0, 0, 0].item() == pytest.approx(math.log(3) - 60, abs=1e-4)


def test_slots_of_utterances_and_classes_have_other_names_too():
    tags = UTTERANCES.tag_set(["city", "intent:fare"])
    labels = ("intent:price", "O", "U-town", "B-town", "I-town", "L-town", "U-day", "B-day", "I-day", "L-day")
    label_map = match_labels(
        labels, tags, {"intent:price": "intent:fare", "town": "city", "*": "O"}, checkpoint="x"
    )
    logits_BTL = torch.randn(1, 2, 10, dtype=torch.float64)
    emissions_BTY, p_BTL = label_map.emissions(logits_BTL, torch.tensor([2])), logits_BTL.softmax(-1)
    for tag, places in (("intent:fare", [0]), ("O", [1, 6, 7, 8, 9]), ("S-city", [2]), ("E-city", [5])):
        torch.testing.assert_close(emissions_BTY[..., tags.index(tag)].exp(), p_BTL[..., places].sum(-1))
    classes = match_labels(
        ("good", "bad", "LABEL_2"), FLAT.tag_set(["bad", "good"]), {"*": "bad"}, checkpoint="x"
    )
    assert classes.groups == ((1, 2), (0,))


def test_spans_of_a_type_o_are_no_words_outside():
    tag_set = SPANS.tag_set(["A", "O"])
    assert match_labels(tag_set.tags, tag_set, {}, checkpoint="x").groups == tuple(
        (i,) for i in range(len(tag_set))
    )


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
        (("O", "B-PER", "I-PER"), {}, r"has no label for LOC; name its types in teachers.labels"),
        (
            (*IOB2, "B-MISC", "I-MISC"),
            {},
            r'has types that are none of the corpus \(MISC\); name them in teachers.labels, e.g. {"\*": O}',
        ),
        (
            ("O", *(f"{x}-{kind}" for kind in ("person", "email", "url") for x in "BIES")),
            {"url": "O"},
            r"has no label for LOC, PER and has types that are none of the corpus \(person, email\); name them in "
            r'teachers.labels, e.g. {person: LOC, "\*": O}, where \* names all others, or set fine_tune: true; the '
            r"corpus has LOC, PER",
        ),
        (
            ("O", "B-per", "I-per", "B-LOC", "I-LOC"),
            {},
            r"no label for PER and has types .*\(per\).*{per: PER, ",
        ),
        (("O", "B-PER", "I-PER", "E-PER", "S-PER"), {}, r"has no label for LOC;"),
        (
            IOB2,
            {"B-PER": "O"},
            r"has no label for B-PER; name its types in teachers.labels \(it has PER, LOC;",
        ),
        (
            IOB2,
            {"B-PER": "B-PERSON"},
            r"has no label for B-PER and has labels that are not among .*\(B-PERSON\)",
        ),
        (IOB2, {"PER": "PERSON"}, r"teachers.labels: 'PERSON' is no label of the corpus \(LOC, PER\)"),
        (IOB2, {"*": "MISC"}, r"teachers.labels: 'MISC' is no label of the corpus"),
        (IOB2, {"B-ORG": "O"}, r"has no label 'B-ORG'; choose from PER, LOC in teachers.labels, or \"\*\""),
        (IOB2, {"ORG": "O"}, r"has no label 'ORG'; choose from PER, LOC"),
    ],
)
def test_labels_that_do_not_correspond_are_refused_with_a_hint(labels, renamed, message):
    with pytest.raises(StoreError, match=message):
        match_labels(labels, NER, renamed, checkpoint="my/model")
