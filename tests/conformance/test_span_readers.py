"""All readers of BIOES tags find the same spans."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from raykd.forms.tag_schemes import from_bioes, to_bioes
from raykd.metrics import entity_f1
from raykd.metrics.bioes import count_spans, read_spans
from raykd.metrics.confusions import span_confusions
from raykd.serving.labeller import decode_spans

TAGS = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("PER", "LOC-2"))]
sentences = st.lists(st.lists(st.sampled_from(TAGS), min_size=1, max_size=8), min_size=1, max_size=4)


def of_seqeval(tags):
    return sorted((first, last + 1, kind) for kind, first, last in get_entities(list(tags)))


READERS = {
    "metrics": read_spans,
    "labeller": lambda tags: [(first, last + 1, name) for first, last, name in decode_spans(tags)],
    "corpora": lambda tags: read_spans(to_bioes(tags, "bioes")[0]),
    "corpora, through IOB2": lambda tags: read_spans(
        to_bioes(from_bioes(to_bioes(tags, "bioes")[0], "iob2"), "iob2")[0]
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_finds_the_spans_of_seqeval(reader):
    for length in range(1, 5):
        for tags in itertools.product(TAGS, repeat=length):
            assert sorted(READERS[reader](tags)) == of_seqeval(tags), tags


@settings(deadline=None)
@given(sentences, st.data())
def test_counts_scores_and_confusions_are_of_these_spans(gold, data):
    predicted = [
        data.draw(st.lists(st.sampled_from(TAGS), min_size=len(sentence), max_size=len(sentence)))
        for sentence in gold
    ]
    sides = [[set(of_seqeval(tags)) for tags in side] for side in (gold, predicted)]

    def by_type(spans):
        return Counter(kind for sentence in spans for *_, kind in sentence)

    right = by_type(first & second for first, second in zip(*sides, strict=True))
    target, actual = map(by_type, sides)
    expected = {kind: (right[kind], actual[kind], target[kind]) for kind in {*target, *actual}}
    assert {kind: tuple(sentence) for kind, sentence in count_spans(gold, predicted).items()} == expected
    total = [sum(sentence.values()) for sentence in (right, actual, target)]
    assert entity_f1(gold, predicted).f1 == pytest.approx(2 * total[0] / max(1, total[1] + total[2]))
    errors = span_confusions(gold, predicted, examples=1)
    assert sum(error.count for error in errors if error.kind != "spurious") == total[2] - total[0]
