"""Figures by label against the task's own metric, and confusions against what seqeval does not find."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import classification_report

from raykd.metrics import accuracy, entity_f1
from raykd.metrics.attachment import attachment
from raykd.metrics.by_label import LabelScores, arcs_by_relation, entities_by_label, words_by_label
from raykd.metrics.confusions import Example, Place, arc_confusions, label_confusions, span_confusions

TAGS = ["O", *(f"{letter}-{kind}" for kind in ("PER", "LOC") for letter in "BIES")]
LENGTHS = st.lists(st.integers(1, 7), min_size=1, max_size=4)


def corpus(draw, tags):
    lengths = draw(LENGTHS)
    return tuple([[draw(st.sampled_from(tags)) for _ in range(n)] for n in lengths] for _ in range(2))


@given(st.data())
def test_entities_by_label_are_those_of_seqeval_and_their_micro_average_the_f1_of_the_task(data):
    gold, predicted = corpus(data.draw, TAGS)
    scores = entities_by_label(gold, predicted)
    if scores.labels:
        report = classification_report(gold, predicted, output_dict=True, zero_division=0)
        figures = ("precision", "recall", "f1-score", "support")
        for name, row in {**scores.labels, "micro avg": scores.micro, "macro avg": scores.macro}.items():
            assert row == pytest.approx(tuple(float(report[name][figure]) for figure in figures))
    assert scores.micro[:3] == entity_f1(gold, predicted)
    assert scores.micro.support == sum(row.support for row in scores.labels.values())


@given(st.data())
def test_errors_of_spans_are_those_that_were_not_found_and_those_beside_no_gold_span(data):
    gold, predicted = corpus(data.draw, TAGS)
    figures, errors = entities_by_label(gold, predicted), span_confusions(gold, predicted, examples=9)
    by_label, predicted_counts = Counter(), Counter()
    for confusion in errors:
        assert len(confusion.examples) == min(confusion.count, 9)
        by_label[confusion.gold] += confusion.count
        predicted_counts[confusion.predicted] += confusion.count if confusion.kind == "spurious" else 0
    for label, row in figures.labels.items():
        assert by_label[label] == row.support - round(row.recall * row.support)
        right = round(row.recall * row.support)
        assert predicted_counts[label] <= (round(right / row.precision) if row.precision else 99) - right


@given(st.data())
def test_words_by_label_have_the_accuracy_and_their_errors_the_rest(data):
    gold, predicted = corpus(data.draw, ["N", "V", "O"])
    figures, errors = words_by_label(gold, predicted), label_confusions(gold, predicted, examples=1)
    words = sum(map(len, gold))
    assert figures.micro == LabelScores(*[accuracy(gold, predicted)] * 3, words)
    assert sum(confusion.count for confusion in errors) == words - round(figures.micro.recall * words)


@given(st.data())
def test_arcs_by_relation_have_the_attachment_score_and_their_errors_the_rest(data):
    lengths = data.draw(LENGTHS)
    arcs = st.tuples(st.integers(0, 2), st.sampled_from(["obj", "root", "det"]))
    gold, predicted = ([[data.draw(arcs) for _ in range(n)] for n in lengths] for _ in range(2))
    scored = [[data.draw(st.booleans()) for _ in range(n)] for n in lengths]
    figures = arcs_by_relation(gold, predicted, scored)
    errors = arc_confusions(gold, predicted, scored, examples=99)
    columns = [
        [tuple(np.array(column) for column in zip(*sentence, strict=True)) for sentence in side]
        for side in (gold, predicted)
    ]
    expected = attachment(*columns, [np.array(sentence) for sentence in scored])
    assert figures.micro == LabelScores(*[expected.las] * 3, expected.words)
    assert sum(confusion.count for confusion in errors) == expected.words - expected.labelled
    wrong_heads = sum(confusion.count for confusion in errors if confusion.kind in ("head", "arc"))
    assert wrong_heads == expected.words - expected.heads
    for confusion in errors:
        assert (confusion.gold == confusion.predicted) == (confusion.kind == "head")
        for example in confusion.examples:
            place = example.gold.start
            gold_arcs, predicted_arcs = gold[example.sentence][place], predicted[example.sentence][place]
            assert scored[example.sentence][place]
            assert (gold_arcs, predicted_arcs) == (
                (example.heads[0], confusion.gold),
                (example.heads[1], confusion.predicted),
            )
    for relation, row in figures.labels.items():
        right = sum(
            gold_arcs == predicted_arcs and gold_arcs[1] == relation and counts
            for sides in zip(gold, predicted, scored, strict=True)
            for gold_arcs, predicted_arcs, counts in zip(*sides, strict=True)
        )
        predicted_count = sum(
            predicted_arcs[1] == relation and counts
            for sides in zip(predicted, scored, strict=True)
            for predicted_arcs, counts in zip(*sides, strict=True)
        )
        assert row.precision == (right / predicted_count if predicted_count else 0)
        assert round(row.recall * row.support) == right


def test_figures_of_one_example():
    gold = [["S-PER", "O", "B-LOC", "E-LOC"], ["O", "S-LOC"]]
    predicted = [["S-PER", "O", "S-LOC", "O"], ["S-PER", "S-LOC"]]
    scores = entities_by_label(gold, predicted)
    assert scores.labels == {"LOC": LabelScores(0.5, 0.5, 0.5, 2), "PER": LabelScores(0.5, 1.0, 2 / 3, 1)}
    assert scores.macro == LabelScores(0.5, 0.75, (0.5 + 2 / 3) / 2, 3)
    assert words_by_label([["a", "b"]], [["a", "c"]]).labels == {
        "a": LabelScores(1.0, 1.0, 1.0, 1), "b": LabelScores(0.0, 0.0, 0.0, 1), "c": LabelScores(0.0, 0.0, 0.0, 0)
    }  # fmt: skip


def test_each_kind_of_error():
    gold = [["B-PER", "E-PER", "O", "S-LOC", "O", "B-ORG", "I-ORG", "E-ORG", "O", "S-PER", "O"]]
    predicted = [["B-LOC", "E-LOC", "O", "O", "S-PER", "B-ORG", "E-ORG", "O", "S-ORG", "O", "O"]]
    errors = {
        (confusion.gold, confusion.predicted, confusion.kind): confusion.examples
        for confusion in span_confusions(gold, predicted, examples=1)
    }
    assert errors == {
        ("PER", "LOC", "type"): (Example(0, Place(0, 2), Place(0, 2)),),
        ("LOC", "O", "missed"): (Example(0, Place(3, 4), None),),
        ("O", "PER", "spurious"): (Example(0, None, Place(4, 5)),),
        ("ORG", "ORG", "boundary"): (Example(0, Place(5, 8), Place(5, 7)),),
        ("PER", "O", "missed"): (Example(0, Place(9, 10), None),),
        ("O", "ORG", "spurious"): (Example(0, None, Place(8, 9)),),
    }
    both = span_confusions([["B-PER", "E-PER", "O"]], [["O", "B-LOC", "E-LOC"]], examples=1)
    assert [(confusion.kind, confusion.gold, confusion.predicted) for confusion in both] == [
        ("both", "PER", "LOC")
    ]
