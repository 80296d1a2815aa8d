"""Spellings of tags: each is read as `B-PER` and `O`, what is sure to be no span is left as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.forms.tag_schemes import SPAN_LETTERS, fitting_scheme
from raykd.forms.tag_spellings import find_spelling, letters_read_as_types

TYPES = ("PER", "PER_SON", "B-cell", "Geo Location", "a/b")
READ = {"B-PER": 3, "I-PER": 2, "O": 20, "B-PER_SON": 1, "B-B-cell": 1, "I-Geo Location": 1, "B-a/b": 1}
SPELLED = {
    "B_PER": lambda letter, kind: f"{letter}_{kind}",
    "B/PER": lambda letter, kind: f"{letter}/{kind}",
    "B:PER": lambda letter, kind: f"{letter}:{kind}",
    "B.PER": lambda letter, kind: f"{letter}.{kind}",
    "B PER": lambda letter, kind: f"{letter} {kind}",
    "PER-B": lambda letter, kind: f"{kind}-{letter}",
    "PER_B": lambda letter, kind: f"{kind}_{letter}",
    "b-per": lambda letter, kind: f"{letter.lower()}-{kind}",
    "b_per": lambda letter, kind: f"{letter.lower()}_{kind}",
}


def spelled(write, outside="O"):
    """Return the tags of READ in a spelling, with their words."""
    return {tag if tag == "O" else write(tag[0], tag[2:]): count for tag, count in READ.items()} | (
        {} if outside == "O" else {outside: READ["O"]}
    )


@pytest.mark.parametrize("outside", ["O", "o", "0", "_", "-"])
@pytest.mark.parametrize("example", SPELLED)
def test_each_spelling_is_found_and_read(example, outside):
    counts = spelled(SPELLED[example], outside)
    if outside != "O":
        del counts["O"]
    spelling_found = find_spelling(counts, "auto")
    assert spelling_found.example == example
    assert [spelling_found.read(tag) for tag in counts if tag != outside] == [
        tag for tag in READ if tag != "O"
    ]
    assert spelling_found.read(outside) == "O"
    description = spelling_found.describe()
    assert description.startswith(f"tags as {example} are read as B-")
    assert (f"{outside} is read as O" in description) == (outside != "O")


@given(
    st.dictionaries(
        st.sampled_from([f"{letter}-{kind}" for letter in "BIES" for kind in TYPES]), st.integers(1, 9)
    )
)
def test_tags_of_the_usual_spelling_stay_as_they_are(spans):
    spelling = find_spelling({"O": 50} | spans, "auto")
    assert all(spelling.read(tag) == tag for tag in (*spans, "O"))
    assert spelling.describe() == ""


@pytest.mark.parametrize(
    "tags",
    [
        "NN VB . O",
        "N V O B I P",  # one letter for each part of speech
        "NN-B NN-I",
        "LC_NUM S_NN O",
        "PER LOC O",
        "B-PER PER-B O",
        "B-PER b-PER O",
        "B-PER O 0",
        "S O",
        "0 1 2",
        "_ -",
    ],
)
def test_tags_of_which_nobody_can_be_sure_stay_as_they_are(tags):
    spelling = find_spelling(dict.fromkeys(tags.split(), 5), "auto")
    assert [spelling.read(tag) for tag in tags.split()] == tags.split()
    assert spelling.describe() == ""


@pytest.mark.parametrize(
    ("tags", "read"),
    [
        ("B I O", "B-SPAN I-SPAN O"),
        ("b i o", "B-SPAN I-SPAN O"),
        ("B- I- O", "B-SPAN I-SPAN O"),
        ("B I", "B-SPAN I-SPAN"),
        ("B M E S", "B-SPAN M-SPAN E-SPAN S-SPAN"),  # Chinese words: nothing is outside
        ("B M E S O", "B-SPAN M-SPAN E-SPAN S-SPAN O"),
    ],
)
def test_letters_alone_are_spans_of_one_type(tags, read):
    spelling = find_spelling(dict.fromkeys(tags.split(), 5), "auto")
    assert [spelling.read(tag) for tag in tags.split()] == read.split()


def test_a_spelling_fits_almost_all_and_names_none_of_the_others():
    counts = {"B_PER": 150, "I_PER": 48, "O": 900}
    for odd in ("B-PER", "PER", "b_PER"):
        spelling = find_spelling(counts | {odd: 2}, "auto")
        assert (spelling.example, spelling.read(odd), spelling.read("B_LOC")) == ("B_PER", None, "B-LOC")
        assert find_spelling(counts | {odd: 50}, "auto").example == "B-PER"


def test_files_that_say_their_scheme_are_spelled_in_its_letters():
    assert find_spelling({"S_PER": 3, "E_PER": 1, "B_PER": 1}, "bioes").read("S_PER") == "S-PER"
    assert find_spelling({"S_NN": 3, "E_X": 1}, "auto").read("S_NN") == "S_NN"
    assert find_spelling({"S_PER": 3, "E_PER": 1}, "iob2").read("S_PER") == "S_PER"
    for scheme in ("flat", "utterance", "parse"):
        assert find_spelling({"B_X": 3, "I_X": 1, "0": 3}, scheme).describe() == ""
    assert find_spelling({"B_X": 3, "PER": 1, "0": 3}, "io").describe() == "0 is read as O"


@pytest.mark.parametrize("scheme", ["auto", "flat", "iob2", "io"])
def test_white_space_around_tags_is_left_out_and_said(scheme):
    spelling = find_spelling({"B-PER ": 1, "I-PER": 2, " O": 3}, scheme)
    assert [spelling.read(tag) for tag in ("B-PER ", "I-PER", " O")] == ["B-PER", "I-PER", "O"]
    assert spelling.describe() == "white space around tags is left out"


def test_several_labels_of_a_word_are_read_one_by_one():
    spelling = find_spelling({"B_ORG|B_LOC": 1, "I_ORG|O": 1, "B_a|b": 1, "O": 3}, "auto")
    assert [spelling.read(tag) for tag in ("B_ORG|B_LOC", "I_ORG|O", "B_a|b")] == [
        "B-ORG|B-LOC",
        "I-ORG|O",
        "B-a|b",
    ]


def test_letters_that_a_scheme_without_letters_would_take_for_types():
    assert letters_read_as_types({"B_PER": 1, "I_PER": 1, "O": 3}) == "B_PER"
    assert letters_read_as_types({"B": 1, "I": 1, "O": 3}) == "B"
    for tags in (["T-POS", "T-NEG", "O"], ["PER", "LOC", "O"], ["B-PER", "O"]):
        assert letters_read_as_types(dict.fromkeys(tags, 2)) is None


def test_the_scheme_that_has_all_tags():
    assert fitting_scheme(["O", "B-X", "M-X"]) == "bmes"
    assert fitting_scheme(["B-X", "W-X"]) == "bmewo"
    assert fitting_scheme(["B-X", "PER"]) is None
    assert fitting_scheme(["O"]) is None
    assert set(SPAN_LETTERS) == set("BIESLUMW")
