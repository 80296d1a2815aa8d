"""Labels of a teacher in place of gold ones: one answer against the others, and what becomes of a corpus."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.corpora.corpus import make_corpus
from raykd.corpora.sentence import Sentence
from raykd.corpora.text import TextSource
from raykd.layers.answered_text import EncodedAnswer
from raykd.storage.store import Storage
from raykd.tasks import TASKS, find_task
from raykd.teachers import AnnotationsTeacher
from raykd.training.answer_reader import AnswerReader
from raykd.training.answer_survey import store_given_answers, survey_answers
from raykd.training.teacher_labels import (
    fresh_answer_scores,
    fresh_answers,
    labelled_by_teacher,
    labels_of_config,
)

LABELS = ("LOC", "PER")
LABELLINGS = st.lists(
    st.lists(st.tuples(*[st.integers(0, 1)] * 2), min_size=1, max_size=7), min_size=1, max_size=4
)


def merged(samples):
    """Samples as an answer stores them: equal ones once, the commonest first."""
    counts = Counter(samples).most_common()
    return EncodedAnswer(
        [np.array(path) for path, _ in counts], [float(np.log(count)) for _, count in counts]
    )


@given(LABELLINGS)
def test_each_answer_is_compared_with_the_commonest_of_the_others(sentences):
    fresh = list(fresh_answers((merged(samples), len(samples)) for samples in sentences))
    for row, samples in enumerate(sentences):
        pairs = [(tuple(a.answer), tuple(a.reference)) for a in fresh if a.row == row]
        if len(samples) == 1:
            assert pairs == []  # nothing to compare with
            continue
        assert Counter(answer for answer, _ in pairs) == Counter(samples)
        for answer, reference in pairs:
            others = Counter(samples)
            others[answer] -= 1
            assert others[reference] == max(others.values())


def text_corpus(folder, texts, records, **settings):
    """A corpus of text without labels, its store, and an annotator with answers about some of it."""
    config = TextSource(source="text", languages=("en",), labels=LABELS, train="a", dev="b", test="c")
    parts = {
        part: [Sentence(text.split(), None, "en") for text in sentences] for part, sentences in texts.items()
    }
    corpus = labels_of_config(make_corpus(parts, config), LABELS, TASKS["ner"])
    file = folder / "answers.jsonl"
    file.write_text("".join(json.dumps({"text": text, **answer}) + "\n" for text, answer in records.items()))
    teacher = AnnotationsTeacher(path=str(file), **settings).pinned()
    storage = Storage(str(folder / "store"))
    store_given_answers(storage, teacher)
    survey = survey_answers(storage, teacher, corpus)
    reader = AnswerReader(storage, teacher, corpus.tag_set, corpus.unit)
    return labelled_by_teacher(corpus, survey.usable, reader), reader


TEXTS = {
    "train": ["Ada slept", "It rained", "Bob left"],
    "dev": ["Ada left Oslo", "Eva slept"],
    "test": ["Bob slept"],
}


def tags(corpus, part):
    return [corpus.tag_set.decode(row) for row in corpus.parts[part]["tags"].to_pylist()]


def test_dev_and_test_have_the_best_labels_and_all_training_text_is_unlabelled(tmp_path):
    ada = {"samples": [{"mentions": [["Ada", "PER"]]}] * 2 + [{"mentions": []}]}
    answers = {
        "Ada slept": ada,
        "It rained": {"samples": [{"mentions": []}]},
        "Ada left Oslo": ada,
        "Bob slept": ada,
    }
    corpus, reader = text_corpus(tmp_path, TEXTS, answers, answers="samples")
    assert {part: table.num_rows for part, table in corpus.parts.items()} == {
        "train": 0, "unlabelled": 2, "dev": 1, "test": 1
    }  # fmt: skip
    assert corpus.parts["unlabelled"]["tags"].null_count == 2
    assert tags(corpus, "dev") == [["S-PER", "O", "O"]]
    # Two of three answers have the reference of the others: one right, one missing one name; the third: one wrong.
    scores = fresh_answer_scores(reader, corpus, find_task("ner_agreement"), "dev")
    assert scores["source"].mean == pytest.approx(2 * 2 / (2 * 2 + 1))
    assert fresh_answer_scores(reader, corpus, find_task("ner_agreement"), "test")["source"].mean == 0.0


def test_the_best_labels_of_probabilities_are_legal(tmp_path):
    row = {"B-PER": 0.4, "I-PER": 0.35, "O": 0.25}
    answers = {
        text: {"probabilities": [row, {"I-LOC": 0.6, "O": 0.4}]}
        for text in ("Ada slept", "Bob slept", "Eva slept")
    }
    corpus, reader = text_corpus(tmp_path, TEXTS, answers, answers="probabilities")
    (best,) = tags(corpus, "dev")
    assert best == ["S-PER", "O"]
    assert fresh_answer_scores(reader, corpus, find_task("ner_agreement"), "dev") is None


def test_a_task_without_gold_labels_has_agreement_in_place_of_its_score():
    task = find_task("aspect_agreement")
    assert (task.score_name, task.score_label, task.with_gold, task.has_gold) == (
        "agreement", "agreement", "aspect", False
    )  # fmt: skip
    assert task.form == TASKS["aspect"].form
    assert find_task("aspect") is TASKS["aspect"]
    assert TASKS["aspect"].has_gold
    assert task.without_gold == task
    with pytest.raises(KeyError):
        find_task("unknown_agreement")
