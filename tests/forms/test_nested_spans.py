"""Nested spans: the outermost ones are read, against spans that were drawn and written independently."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.forms.nested_spans import is_nested, keep_outermost, nested_scheme
from raykd.forms.tag_schemes import to_bioes, write_spans
from raykd.metrics.bioes import read_spans

LENGTH = 9


@st.composite
def nests(draw):
    """Draw nested spans: any two are apart or nested; those of equal bounds have several types."""
    spans = []
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, LENGTH - 1))
        span = (start, draw(st.integers(start + 1, LENGTH)), draw(st.sampled_from("ABC")))
        crossing = any(s < span[0] < e < span[1] or span[0] < s < span[1] < e for s, e, _ in spans)
        if not crossing and span not in spans:
            spans.append(span)
    return sorted(spans, key=lambda span: (span[0], -span[1]))


def written(spans, letters):
    """Return the labels of spans at their words, the outer spans first."""
    labels = [[] for _ in range(LENGTH)]
    begin, inside, end, single = letters
    for start, stop, kind in spans:
        for place in range(start, stop):
            first, last = place == start, place == stop - 1
            letter = single if first and last else begin if first else end if last else inside
            labels[place].append(f"{letter}-{kind}")
    return ["|".join(word_labels) or "O" for word_labels in labels]


@given(nests(), st.sampled_from([("bioes", "BIES"), ("bilou", "BILU"), ("bmes", "BMES"), ("bmewo", "BMEW")]))
def test_the_outermost_spans_are_those_inside_no_other(spans, scheme):
    name, letters = scheme
    result = keep_outermost(written(spans, letters), name)
    outer = []
    for span in spans:
        if not any(start <= span[0] and span[1] <= end for start, end, _ in outer):
            outer.append(span)
    assert read_spans(to_bioes(result.tags, name)[0]) == outer
    assert result.left_out == len(spans) - len(outer)
    assert to_bioes(result.tags, name)[1] == 0


@given(nests())
def test_iob2_has_the_same_bounds(spans):
    outer = keep_outermost(written(spans, "BIIB"), "iob2")
    bounds = [(start, end) for start, end, _ in read_spans(to_bioes(outer.tags, "iob2")[0])]
    assert bounds == [(s, e) for s, e, _ in read_spans(keep_outermost(written(spans, "BIES"), "bioes").tags)]


def test_tags_without_several_labels_stay_as_they_are():
    for scheme in ("iob1", "iob2", "bioes", "bilou", "bmes", "ioe2"):
        tags = write_spans([(0, 2, "A"), (2, 3, "A"), (4, 7, "B")], 8, scheme)
        assert keep_outermost(tags, scheme) == (tags, 0)


def test_of_two_that_overlap_the_longer_one_is_kept():
    assert keep_outermost(["B-A", "I-A|B-B", "I-B", "I-B"], "iob2") == (["O", "B-B", "I-B", "I-B"], 1)


@pytest.mark.parametrize(
    ("tag", "nested"),
    [
        ("B-A|B-B", True),
        ("I-A|O", True),
        ("O|O", True),
        ("B-A|B", False),
        ("A|B", False),
        ("B-A", False),
        ("|", False),
    ],
)
def test_several_labels_are_tags_each(tag, nested):
    assert is_nested(tag) == nested


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["B-A|B-B", "I-A", "O"], "iob2"),
        (["B-A|S-B", "E-A", "O"], "bioes"),
        (["B-A|U-B", "L-A", "O"], "bilou"),
        (["B-A|S-B", "M-A", "E-A"], "bmes"),
        (["B-A|W-B", "M-A", "E-A"], "bmewo"),
    ],
)
def test_the_scheme_of_several_labels(tags, scheme):
    assert nested_scheme(tags) == scheme
