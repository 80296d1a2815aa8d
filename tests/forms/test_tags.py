"""Tag schemes: lossless both ways, repairs counted, and BIOES constraints against enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.forms import FLAT, SPANS, UTTERANCES, TagSet
from raykd.forms.tag_schemes import MixedTagsError, from_bioes, guess_scheme, to_bioes
from raykd.metrics.bioes import read_spans

SCHEMES = ("iob1", "iob2", "ioe1", "ioe2", "bioes", "bilou", "bmes", "bmewo")
KINDS = ("PER", "LOC", "B-O")  # a type may itself look like a tag


@st.composite
def segmentations(draw):
    """Ordered spans over a sentence, as an independent description of what the tags must be."""
    spans, position = [], 0
    for gap, width, kind in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(KINDS)), max_size=6)
    ):
        spans.append((position + gap, position + gap + width, kind))
        position += gap + width
    return spans, position + draw(st.integers(0 if position else 1, 2))


def written(spans, length, scheme):
    """Write tags by the definition of a scheme, token by token: an oracle sharing no code with the package."""
    tags = []
    for token in range(length):
        inside = [(s, e, k) for s, e, k in spans if s <= token < e]
        if not inside:
            tags.append("O")
            continue
        start, end, kind = inside[0]
        touches = any(e == start and k == kind for _, e, k in spans)
        touched = any(s == end and k == kind for s, _, k in spans)
        first, last = token == start, token == end - 1
        letter = {
            "iob2": "B" if first else "I",
            "iob1": "B" if first and touches else "I",
            "bioes": "S" if first and last else "B" if first else "E" if last else "I",
            "ioe2": "E" if last else "I",
            "ioe1": "E" if last and touched else "I",
            "bilou": "U" if first and last else "B" if first else "L" if last else "I",
            "bmes": "S" if first and last else "B" if first else "E" if last else "M",
            "bmewo": "W" if first and last else "B" if first else "E" if last else "M",
        }[scheme]
        tags.append(f"{letter}-{kind}")
    return tags


@given(segmentations(), st.sampled_from(SCHEMES))
def test_conversion_is_lossless_both_ways(segmentation, scheme):
    spans, length = segmentation
    tags, bioes = written(spans, length, scheme), written(spans, length, "bioes")
    assert to_bioes(tags, scheme) == (bioes, 0)
    assert from_bioes(bioes, scheme) == tags


io_tags = st.lists(st.sampled_from(["O", "T-POS", "T-NEG"]), max_size=9)


@given(io_tags)
def test_one_tag_per_token_is_lossless_there_and_back(tags):
    bioes, repairs = to_bioes(tags, "io")
    assert repairs == 0
    assert from_bioes(bioes, "io") == tags
    spans = read_spans(bioes)
    # Each token in a span has its tag, and spans are as long as they can be.
    assert {(t, kind) for start, end, kind in spans for t in range(start, end)} == {
        (t, tag) for t, tag in enumerate(tags) if tag != "O"
    }
    assert not any(end == start and a == b for _, end, a in spans for start, _, b in spans)


@given(segmentations())
def test_only_touching_spans_of_one_type_are_lost_where_tags_have_no_beginnings(segmentation):
    spans, length = segmentation
    touching = any(e == s and a == b for _, e, a in spans for s, _, b in spans)
    bioes = written(spans, length, "bioes")
    assert (to_bioes(from_bioes(bioes, "io"), "io")[0] == bioes) == (not touching)


@given(segmentations())
def test_spans_are_what_was_written(segmentation):
    spans, length = segmentation
    assert read_spans(written(spans, length, "bioes")) == spans


BIOES = SPANS.tag_set(["LOC", "PER"])
any_tags = st.lists(st.sampled_from(BIOES.tags), max_size=8)


def is_valid(tags):
    """Check a sequence against BIOES, by the tag set's constraints."""
    numbers = BIOES.encode(tags)
    if not len(numbers):
        return True
    transitions, start, end = SPANS.allowed_transitions(BIOES.tags)
    steps = transitions[numbers[:-1], numbers[1:]]
    return bool(start[numbers[0]] and end[numbers[-1]] and steps.all())


@given(any_tags)
def test_repair_gives_a_valid_sequence_and_counts_what_it_changed(tags):
    corrected, repairs = to_bioes(tags, "bioes")
    assert is_valid(corrected)
    assert repairs == sum(a != b for a, b in zip(tags, corrected, strict=True))
    assert (repairs == 0) == is_valid(tags)
    assert [tag[2:] for tag in corrected] == [tag[2:] for tag in tags]


@given(st.lists(st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]), max_size=8))
def test_invalid_iob_is_read_as_conlleval_reads_it(tags):
    expected = []
    for place, tag in enumerate(tags):
        before = tags[place - 1] if place else "O"
        if tag != "O" and (tag[0] == "B" or before == "O" or before[2:] != tag[2:]):
            expected.append([place, place, tag[2:]])
        if tag != "O":
            expected[-1][1] = place + 1
    for scheme in ("iob1", "iob2"):
        bioes, repairs = to_bioes(tags, scheme)
        assert read_spans(bioes) == [tuple(span) for span in expected]
        assert repairs == sum(a != b for a, b in zip(tags, from_bioes(bioes, scheme), strict=True))


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_the_constraints_admit_exactly_the_sequences_that_spans_can_write(length):
    small = SPANS.tag_set(["A", "B"])
    writable = {
        tags for tags in itertools.product(small.tags, repeat=length) if to_bioes(tags, "bioes")[1] == 0
    }
    transitions, start, end = small.form.allowed_transitions(small.tags)
    admitted = set()
    for tags in itertools.product(small.tags, repeat=length):
        numbers = [small.index(tag) for tag in tags]
        steps = all(transitions[a, b] for a, b in itertools.pairwise(numbers))
        if start[numbers[0]] and end[numbers[-1]] and steps:
            admitted.add(tags)
    assert admitted == writable


@pytest.mark.parametrize("length", [1, 2, 3])
def test_utterances_are_an_intent_and_then_what_spans_can_write(length):
    small = UTTERANCES.tag_set(["A", "intent:x", "intent:y"])
    transitions, start, end = small.form.allowed_transitions(small.tags)
    first_Y, later_Y = small.allowed_places()
    admitted = set()
    for tags in itertools.product(small.tags, repeat=length):
        numbers = [small.index(tag) for tag in tags]
        steps = all(transitions[a, b] for a, b in itertools.pairwise(numbers))
        if start[numbers[0]] and end[numbers[-1]] and steps:
            admitted.add(tags)
            assert first_Y[numbers[0]]
            assert later_Y[numbers[1:]].all()
            assert small.form.read(small.form.write(tags, "utterance"), "utterance") == ([*tags], 0)
    slots = SPANS.tag_set(["A"]).tags
    spans = [
        span_tags
        for span_tags in itertools.product(slots, repeat=length - 1)
        if to_bioes(span_tags, "bioes")[1] == 0
    ]
    assert admitted == {(intent, *span_tags) for intent in ("intent:x", "intent:y") for span_tags in spans}


def test_a_tag_set_of_utterances():
    tags = UTTERANCES.tag_set(["city", "airline", "intent:fare"])
    assert tags.tags[:2] == ("O", "B-airline")
    assert tags.labels == ("airline", "city", "intent:fare")
    assert TagSet(tags.tags, UTTERANCES) == tags
    assert SPANS.tag_set(["A"]).allowed_places() is None
    with pytest.raises(ValueError, match="has intents"):
        TagSet(SPANS.tag_set(["A"]).tags, UTTERANCES)
    with pytest.raises(ValueError, match="a BIOES tag set"):
        TagSet(tags.tags, SPANS)


def test_repairs_of_each_scheme():
    assert to_bioes(["O", "I-PER", "I-PER"], "iob2") == (["O", "B-PER", "E-PER"], 1)
    assert to_bioes(["O", "B-PER", "I-PER"], "iob1") == (["O", "B-PER", "E-PER"], 1)
    assert to_bioes(["B-PER", "B-PER", "E-LOC"], "bioes") == (["S-PER", "S-PER", "S-LOC"], 3)
    assert to_bioes(["B-PER", "B-PER", "L-LOC"], "bilou") == (["S-PER", "S-PER", "S-LOC"], 3)


@given(any_tags)
def test_bilou_is_bioes_with_other_letters_also_where_it_is_broken(tags):
    renamed = [tag.replace("E-", "L-", 1).replace("S-", "U-", 1) if tag[0] in "ES" else tag for tag in tags]
    assert to_bioes(renamed, "bilou") == to_bioes(tags, "bioes")


@pytest.mark.parametrize(
    ("tag", "scheme"), [("PER", "iob2"), ("S-PER", "iob1"), ("B-", "iob2"), ("", "bioes"), ("E-PER", "bilou")]
)
def test_a_tag_outside_the_scheme_is_named(tag, scheme):
    with pytest.raises(ValueError, match=f"tag '{tag}' is not of scheme {scheme}"):
        to_bioes(["O", tag], scheme)


@pytest.mark.parametrize(
    ("sequences", "scheme"),
    [
        ([["I-PER", "I-PER", "B-PER", "O"]], "iob1"),
        ([["B-PER", "I-PER", "O"], ["B-LOC"]], "iob2"),
        ([["B-PER", "O"], ["I-LOC"]], "iob2"),  # B where IOB1 writes I: IOB2 with a fault
        ([["B-PER", "E-PER"]], "bioes"),
        ([["S-PER"]], "bioes"),
        ([["B-PER", "I-PER", "L-PER", "O"]], "bilou"),
        ([["U-PER", "O"]], "bilou"),
        ([["B-PER", "M-PER", "E-PER", "O"], ["S-LOC"]], "bmes"),
        ([["B-PER", "E-PER", "O"], ["W-LOC"]], "bmewo"),
        ([["I-PER", "E-PER", "O", "E-LOC"]], "ioe2"),
        ([["E-LOC", "O"]], "ioe2"),
        ([["I-PER", "E-PER", "I-PER", "O", "I-LOC"]], "ioe1"),
        ([["E-PER", "O"], ["I-LOC"]], "ioe2"),  # E where IOE1 writes I: IOE2 with a fault
        ([["M-POS", "O"], ["W-NEG"]], "flat"),
        ([["L-POS", "O"], ["L-NEG"]], "io"),  # what never begins is not BILOU
        ([["T-POS", "O"], ["T-NEG"]], "io"),
        ([["T-POS", "O"], ["NOUN"]], "flat"),
        ([["T-POS", "O"], ["X-NEG"]], "flat"),
        ([["t-POS", "O"]], "flat"),
        ([["T-POS", "T-NEG"]], "flat"),  # nothing is outside: every word has its tag
        ([["NOUN", "VERB"]], "flat"),
        ([["O", "O"]], "flat"),
    ],
)
def test_the_scheme_is_found_from_the_tags(sequences, scheme):
    assert guess_scheme(sequences) == scheme


@given(st.lists(segmentations(), min_size=1, max_size=5), st.sampled_from(SCHEMES))
def test_a_guessed_scheme_needs_no_repair(segmentations_, scheme):
    sequences = [written(spans, length, scheme) for spans, length in segmentations_]
    guess = guess_scheme(sequences)
    if guess == "flat":
        assert all(tag == "O" for tags in sequences for tag in tags)
        return
    for tags in sequences:
        assert to_bioes(tags, guess)[1] == 0


def test_mixed_forms_are_refused_with_the_other_tags():
    with pytest.raises(ValueError, match="others are not \\(MISC\\)"):
        guess_scheme([["B-PER", "I-PER"], ["MISC"]])
    with pytest.raises(
        MixedTagsError, match=r"most tags are of BIOES .* and others are not \(U-PER\)"
    ) as mixed:
        guess_scheme([["B-PER", "E-PER"], ["U-PER"]])
    assert mixed.value.odd == {"U-PER"}
    with pytest.raises(MixedTagsError, match=r"most tags are of BMES .* and others are not \(I-PER\)"):
        guess_scheme([["B-PER", "M-PER", "E-PER", "O"], ["B-PER", "I-PER", "M-PER"]])


def test_tag_numbers():
    tag_set = SPANS.tag_set(["PER", "LOC"])
    assert tag_set.tags == ("O", "B-LOC", "I-LOC", "E-LOC", "S-LOC", "B-PER", "I-PER", "E-PER", "S-PER")
    assert tag_set.labels == ("LOC", "PER")
    numbers = tag_set.encode(["O", "S-PER"])
    assert numbers.dtype == np.int16
    assert numbers.tolist() == [0, 8]
    assert tag_set.decode(numbers) == ["O", "S-PER"]
    assert FLAT.tag_set(["VERB", "O", "ADJ"]).tags == ("O", "ADJ", "VERB")
    assert FLAT.allowed_transitions(("A", "B"))[0].all()
    with pytest.raises(ValueError, match="unknown tag 'S-ORG' \\(O, B-LOC"):
        tag_set.encode(["S-ORG"])
    with pytest.raises(ValueError, match="unknown tag 'X'"):
        tag_set.index("X")


@pytest.mark.parametrize(
    ("tags", "form"), [(("A", "A"), FLAT), (("O", "B-A", "I-A"), SPANS), (("A",), SPANS)]
)
def test_a_tag_set_that_cannot_be_is_refused(tags, form):
    with pytest.raises(ValueError, match="tag"):
        TagSet(tags, form)
