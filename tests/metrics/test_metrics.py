"""Metrics against counts made by hand and by an independent reading of BIOES."""

import pickle
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

from raykd.figures.results import Score
from raykd.metrics import accuracy, entity_f1, score_languages

untimed = settings(deadline=None)  # a busy machine is no failure


TAGS = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("PER", "LOC"))]
sentences = st.lists(st.lists(st.sampled_from(TAGS), max_size=8), max_size=5)


def spans(tags):
    """Find spans, malformed ones too, by a regular expression over one character per tag.

    A span is a run inside (I), with or without a first word (B) and a last one (E), or a single word (S).
    """
    spans_found = set()
    for kind in ("PER", "LOC"):
        text = "".join(tag[0] if tag.endswith(kind) else "-" for tag in tags)
        spans_found |= {(m.start(), m.end(), kind) for m in re.finditer("S|BI*E?|I+E?|E", text)}
    return spans_found


@untimed
@given(sentences, st.data())
def test_entity_f1_counts_exact_spans(gold, data):
    predicted = [
        data.draw(st.lists(st.sampled_from(TAGS), min_size=len(tags), max_size=len(tags))) for tags in gold
    ]
    right = sum(len(spans(g) & spans(p)) for g, p in zip(gold, predicted, strict=True))
    predicted_count, gold_count = sum(map(len, map(spans, predicted))), sum(map(len, map(spans, gold)))
    score = entity_f1(gold, predicted)
    assert score.precision == pytest.approx(right / predicted_count if predicted_count else 0)
    assert score.recall == pytest.approx(right / gold_count if gold_count else 0)
    assert score.f1 == pytest.approx(2 * right / (predicted_count + gold_count) if right else 0)
    assert entity_f1([], []) == entity_f1([[]], [[]]) == (0, 0, 0)


@untimed
@given(sentences, st.data())
def test_entity_f1_is_that_of_seqeval(gold, data):
    gold = [tags for tags in gold if tags] or [["O"]]
    predicted = [
        data.draw(st.lists(st.sampled_from(TAGS), min_size=len(tags), max_size=len(tags))) for tags in gold
    ]
    expected = precision_recall_fscore_support(gold, predicted, average="micro", zero_division=0)
    assert entity_f1(gold, predicted) == pytest.approx(tuple(map(float, expected[:3])))


def test_an_entity_counts_only_whole_and_of_its_type():
    gold = [["B-PER", "E-PER", "O", "S-LOC"]]
    assert entity_f1(gold, gold) == (1.0, 1.0, 1.0)
    assert entity_f1(gold, [["S-PER", "O", "O", "S-LOC"]]) == (0.5, 0.5, 0.5)
    assert entity_f1(gold, [["B-PER", "E-PER", "O", "S-PER"]]).f1 == 0.5
    assert entity_f1(gold, [["B-PER", "I-PER", "O", "S-LOC"]]).f1 == 1.0, "the same words and type, malformed"
    assert entity_f1(gold, [["B-PER", "E-PER", "I-LOC", "S-LOC"]]).precision == 2 / 3, (
        "a malformed span is wrong"
    )


@pytest.mark.parametrize("tag", ["NOUN", "L-PER", "", "U-LOC"])
def test_other_tags_than_bioes_are_refused(tag):
    with pytest.raises(ValueError, match="is neither O nor B-"):
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


def f1(gold, predicted):
    return entity_f1(gold, predicted).f1


def test_languages_count_the_same_whatever_their_size():
    gold = [["S-PER"], ["S-LOC"], ["S-PER"], ["S-PER"]]
    predicted = [["S-PER"], ["S-LOC"], ["S-PER"], ["S-LOC"]]
    result = score_languages(f1, gold, predicted, ["nl", "nl", "nl", "de"])
    assert result == {"source": Score(0.5, 0.5, {"de": 0.0, "nl": 1.0}, (0.5,))}
    assert list(result["source"].by_language) == ["de", "nl"], "in the order of names"
    assert pickle.loads(pickle.dumps(result)) == result, "results cross processes"


def test_target_languages_are_a_group_of_their_own():
    gold = [["S-PER"]] * 4
    predicted = [["S-PER"], ["O"], ["S-PER"], ["S-PER"]]
    result = score_languages(f1, gold, predicted, ["en", "nl", "sv", "de"], ("nl", "sv"))
    assert result == {
        "source": Score(1.0, 0.0, {"de": 1.0, "en": 1.0}, (1.0,)),
        "target": Score(0.5, 0.5, {"nl": 0.0, "sv": 1.0}, (0.5,)),
    }
    assert set(score_languages(f1, gold, predicted, ["en", "nl", "sv", "de"])) == {"source"}
    with pytest.raises(ValueError, match="no sentences"):
        score_languages(f1, gold[:1], predicted[:1], ["nl"], ("nl",))


def test_any_metric_of_gold_and_predicted_will_do():
    result = score_languages(accuracy, [["NOUN", "VERB"], ["NOUN"]], [["NOUN", "X"], ["NOUN"]], ["en", "de"])
    assert result["source"].by_language == {"de": 1.0, "en": 0.5}

    def share(gold, predicted):
        return sum(map(str.__eq__, gold, predicted)) / len(gold)

    labels = score_languages(share, ["good", "bad", "bad"], ["good", "bad", "good"], ["en"] * 3)
    assert labels["source"].mean == pytest.approx(2 / 3)


def test_empty_parts_and_unequal_numbers_are_refused():
    with pytest.raises(ValueError, match="no sentences"):
        score_languages(accuracy, [], [], [])
    with pytest.raises(ValueError, match="argument"):
        score_languages(accuracy, [["A"]], [["A"]], ["en", "de"])
