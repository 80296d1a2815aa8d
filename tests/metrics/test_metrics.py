"""Metrics against counts made by hand and by an independent reading of BIOES."""

import pickle
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.metrics import accuracy, entity_f1, evaluate_tags

untimed = settings(deadline=None)  # a busy machine is no failure


TAGS = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("PER", "LOC"))]
sentences = st.lists(st.lists(st.sampled_from(TAGS), max_size=8), max_size=5)


def spans(tags):
    """Well-formed BIOES spans, found by a regular expression over one character per tag."""
    found = set()
    for kind in ("PER", "LOC"):
        text = "".join(tag[0] if tag.endswith(kind) else "-" for tag in tags)
        found |= {(m.start(), m.end(), kind) for m in re.finditer("S|BI*E", text)}
    return found


@untimed
@given(sentences, st.data())
def test_entity_f1_counts_exact_well_formed_spans(gold, data):
    predicted = [
        data.draw(st.lists(st.sampled_from(TAGS), min_size=len(tags), max_size=len(tags))) for tags in gold
    ]
    right = sum(len(spans(g) & spans(p)) for g, p in zip(gold, predicted, strict=True))
    found, wanted = sum(map(len, map(spans, predicted))), sum(map(len, map(spans, gold)))
    score = entity_f1(gold, predicted)
    assert score.precision == pytest.approx(right / found if found else 0)
    assert score.recall == pytest.approx(right / wanted if wanted else 0)
    assert score.f1 == pytest.approx(2 * right / (found + wanted) if right else 0)


def test_an_entity_counts_only_whole_and_of_its_type():
    gold = [["B-PER", "E-PER", "O", "S-LOC"]]
    assert entity_f1(gold, gold) == (1.0, 1.0, 1.0)
    assert entity_f1(gold, [["S-PER", "O", "O", "S-LOC"]]) == (0.5, 0.5, 0.5)
    assert entity_f1(gold, [["B-PER", "E-PER", "O", "S-PER"]]).f1 == 0.5
    assert entity_f1(gold, [["B-PER", "I-PER", "O", "S-LOC"]]).precision == 1.0, "a span without end is none"


@pytest.mark.parametrize("tag", ["NOUN", "L-PER", "", "U-LOC"])
def test_other_tags_than_bioes_are_refused(tag):
    with pytest.raises(ValueError, match="BIOES"):
        entity_f1([["O"]], [[tag]])


@pytest.mark.parametrize("metric", [entity_f1, accuracy])
def test_sentences_must_agree_in_number_and_length(metric):
    with pytest.raises(ValueError, match="2 gold sentences but 1"):
        metric([["O"], ["O"]], [["O"]])
    with pytest.raises(ValueError, match=r"sentence 1 .* 2 gold but 1"):
        metric([["O"], ["O", "O"]], [["O"], ["O"]])


def test_accuracy_is_over_words_not_sentences():
    assert accuracy([["A", "B", "C"], ["A"]], [["A", "X", "C"], ["X"]]) == 0.5
    assert accuracy([], []) == 0.0


def test_languages_count_the_same_whatever_their_size():
    gold = [["S-PER"], ["S-LOC"], ["S-PER"], ["S-PER"]]
    predicted = [["S-PER"], ["S-LOC"], ["S-PER"], ["S-LOC"]]
    result = evaluate_tags("f1", gold, predicted, ["nl", "nl", "nl", "de"])
    assert result.by_language == {"de": 0.0, "nl": 1.0}
    assert (result.mean, result.standard_deviation) == (0.5, 0.5)
    assert pickle.loads(pickle.dumps(result)) == result, "results cross processes"


def test_target_languages_stand_apart():
    gold = [["S-PER"]] * 4
    predicted = [["S-PER"], ["O"], ["S-PER"], ["S-PER"]]
    result = evaluate_tags("f1", gold, predicted, ["en", "nl", "sv", "de"], targets=("nl", "sv"))
    assert (result.mean, result.standard_deviation) == (1.0, 0.0)
    assert (result.targets, result.target_mean, result.target_standard_deviation) == (("nl", "sv"), 0.5, 0.5)
    assert result.by_language == {"de": 1.0, "en": 1.0, "nl": 0.0, "sv": 1.0}
    without = evaluate_tags("f1", gold, predicted, ["en", "nl", "sv", "de"])
    assert (without.targets, without.target_mean, without.target_standard_deviation) == ((), None, None)
    with pytest.raises(ValueError, match="no sentences"):
        evaluate_tags("f1", gold[:1], predicted[:1], ["nl"], targets=("nl",))


def test_flat_tags_are_evaluated_by_accuracy():
    result = evaluate_tags("accuracy", [["NOUN", "VERB"], ["NOUN"]], [["NOUN", "X"], ["NOUN"]], ["en", "de"])
    assert result.by_language == {"de": 1.0, "en": 0.5}


def test_unknown_metrics_and_empty_parts_are_told():
    with pytest.raises(ValueError, match=r"'F1'; allowed: f1, accuracy"):
        evaluate_tags("F1", [["O"]], [["O"]], ["en"])
    with pytest.raises(ValueError, match="no sentences"):
        evaluate_tags("f1", [], [], [])
