"""The score score_of the most frequent label, against counts made by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from raykd.forms import FLAT, SPANS, UTTERANCES
from raykd.tasks import TASKS
from raykd.tasks.majority import majority_scores


def part(tag_set, **by_language):
    rows = [(name, tag_set.encode(tags)) for name, sentences in by_language.items() for tags in sentences]
    return pa.table({"language": [name for name, _ in rows], "tags": [tags for _, tags in rows]})


def score_of(task, tag_set, **by_language):
    return majority_scores(TASKS[task], part(tag_set, **by_language), tag_set)


def test_each_language_has_its_own_most_frequent_label():
    tags = FLAT.tag_set(["DET", "NOUN", "VERB"])
    scores = score_of("pos", tags, en=[["NOUN", "VERB", "NOUN"], ["DET"]], de=[["DET", "DET", "DET", "NOUN"]])
    assert scores == {"en": 0.5, "de": 0.75}


def test_the_most_frequent_class_of_sentences():
    tags = FLAT.tag_set(["0", "1"])
    assert score_of("classification", tags, en=[["1"], ["0"], ["1"], ["1"]]) == {"en": 0.75}


def test_spans_are_never_found_by_the_label_outside_of_spans():
    tags = SPANS.tag_set(["PER"])
    assert score_of("ner", tags, en=[["O", "S-PER", "O"], ["B-PER", "E-PER", "O"]]) == {"en": 0.0}
    assert score_of("ner", tags, en=[["S-PER", "S-PER", "O"]])["en"] == pytest.approx(0.8), (
        "2 score_of 3 spans right, score_of 2"
    )


def test_an_utterance_has_the_most_frequent_intent_and_no_slots():
    tags = UTTERANCES.tag_set(["city", "intent:fly", "intent:ask"])
    utterances = [
        ["intent:fly", "O", "O"],
        ["intent:fly", "O", "S-city"],
        ["intent:ask", "O", "O"],
        ["intent:fly", "O"],
    ]
    assert score_of("intent_slots", tags, en=utterances) == {"en": 0.5}


def test_trees_have_no_such_label():
    assert score_of("parsing", FLAT.tag_set(["det"]), en=[["det"]]) == {}
