"""Cascades as they ship: the rule chosen on dev, the folder, and all ways to use it."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import raykd
from raykd.cli.main import app
from raykd.deploy.cascade import BothAnswers, Rule, Wish, choose_rule, export_cascade, threshold_of
from raykd.errors import ExportError
from raykd.serving.labeller import CONFIDENCES, LabellerError, load
from raykd.storage.store import Storage
from raykd.training.data import cached_corpus
from raykd.training.load import load_tagger
from tests.training.small import executed, prepared, recipe, student_of

TEXTS = ["Ada Lovelace lives in London.", "Berlin", "Kein Wort davon ist wahr, sagte Peter Meier aus Wien."]


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A store with a teacher of all languages and a student of it, and the student's run."""
    run_recipe = recipe(
        corpus={"train": 60, "dev": 40, "test": 40},
        teachers={"scope": "all", "epochs": 4, "embedding_dim": 16, "hidden_dim": 16},
        objective={"kind": "posterior"}, schedule={"epochs": 3},
    )  # fmt: skip
    ready = prepared(str(tmp_path_factory.mktemp("cascade") / "store"), run_recipe)
    run = student_of(ready, run_recipe)
    executed(ready, run)
    return ready, run


def folders(ready):
    preparation, run = ready
    return preparation.storage.child(*run.folder), preparation.storage.child(
        *preparation.teachers[0].run.folder
    )


@pytest.fixture(scope="module")
def written(ready, tmp_path_factory):
    """A cascade that passes on half of the sentences, and its folder."""
    folder = tmp_path_factory.mktemp("cascade") / "out"
    student, teacher = folders(ready)
    return export_cascade(
        student, teacher, Storage(str(folder)), store=ready[0].storage, wish=Wish(share=0.5)
    ), folder  # fmt: skip


@given(st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.9, 1.0]), min_size=1, max_size=12), st.floats(0, 1))
def test_a_threshold_passes_on_the_share_up_to_equal_confidences(confidences, share):
    confidence_N = np.array(confidences)
    passed = int((confidence_N < threshold_of(confidence_N, share)).sum())
    wanted = round(share * len(confidences))
    assert passed <= wanted
    if wanted == len(confidences):
        assert passed == wanted
    elif passed < wanted:  # the next ones are all as sure as each other
        assert len(set(np.sort(confidence_N)[passed : wanted + 1])) == 1


class Answers(BothAnswers):
    """Answers whose score is the share of sentences that are right: of the teacher all, of the student some."""

    def __init__(self, confidence_by_kind: dict[str, list[float]], right: list[bool]):
        self.sentences = [["a"] for _ in right]
        self.__dict__["confidences"] = {kind: np.array(values) for kind, values in confidence_by_kind.items()}
        self._right_N = np.array(right)

    def score(self, passed_N, rows_N=None):
        right_N = self._right_N | passed_N
        return float((right_N if rows_N is None else right_N[rows_N]).mean())


RIGHT = [True, True, False, True, False, True, True, True, True, True]
GOOD = [0.9, 0.8, 0.1, 0.7, 0.2, 0.9, 0.9, 0.9, 0.9, 0.95]
BAD = [0.1, 0.2, 0.9, 0.3, 0.8, 0.4, 0.5, 0.6, 0.7, 0.75]


def test_the_measure_that_passes_on_fewer_sentences_is_chosen():
    answers = Answers({"word": BAD, "labelling": GOOD}, RIGHT)
    rule = choose_rule(answers, Wish(kept=1.0))
    assert rule.confidence == "labelling"
    outcome = answers.outcome(rule)
    assert (outcome.share, outcome.score, outcome.kept) == (0.2, 1.0, 1.0)
    assert outcome.student == 0.8
    assert choose_rule(answers, Wish(kept=0.8)).threshold == pytest.approx(0.1)
    assert answers.outcome(choose_rule(answers, Wish(kept=0.8))).share == 0


def test_at_a_given_share_the_measure_with_the_better_score_is_chosen():
    answers = Answers({"word": BAD, "labelling": GOOD}, RIGHT)
    rule = choose_rule(answers, Wish(share=0.2))
    assert rule.confidence == "labelling"
    outcome = answers.outcome(rule)
    assert outcome.share == 0.2
    assert outcome.share_from < 0.2 < outcome.share_to
    everything = choose_rule(answers, Wish(share=1.0))
    assert answers.outcome(everything).share == 1.0


def test_what_is_scored_is_what_is_delivered(ready, written):
    """The share and the score of dev and test are those of the folder, sentence by sentence."""
    (exported, folder), (preparation, run) = written, ready
    label: Any = raykd.load(folder)
    assert label.cascade.kind in CONFIDENCES
    tagger, corpus = load_tagger(folders(ready)[0].uri), cached_corpus(preparation.storage.uri, run.corpus_id)
    for part, outcome in exported.outcomes.items():
        both = BothAnswers(label, label, tagger, corpus, part)
        everything = np.ones(len(both.sentences), bool)
        assert both.score(everything) == pytest.approx(outcome.score)
        passed = [answer.given_by == "teacher" for answer in label.answers(both.sentences, 7)]
        assert np.mean(passed) == pytest.approx(outcome.share)
    assert exported.outcomes["dev"].share == pytest.approx(0.5, abs=0.1)
    card = json.loads((folder / "export.json").read_text())["cascade"]
    assert card["threshold"] == exported.rule.threshold
    assert set(card["mean_ms"]) == {"student", "teacher", "cascade"}


def test_each_answer_says_who_gave_it_alone_and_in_batches(written):
    _, folder = written
    label, student, teacher = raykd.load(folder), raykd.load(folder), load(folder / "teacher")
    student.cascade = None
    together = list(label(TEXTS, batch=3))
    assert [label(text).given_by for text in TEXTS] == [labelled.given_by for labelled in together]
    for text, labelled in zip(TEXTS, together, strict=True):
        source = teacher if labelled.given_by == "teacher" else student
        assert [word.label for word in labelled.words] == [word.label for word in source(text).words]
        assert student(text).given_by is None
    copied = pickle.loads(pickle.dumps(label))
    assert [labelled.given_by for labelled in copied(TEXTS)] == [labelled.given_by for labelled in together]
    entries = raykd.pipeline("ner", folder)(TEXTS)
    assert all(
        entry["given_by"] == one.given_by for one, row in zip(together, entries, strict=True) for entry in row
    )


def test_without_its_teacher_the_student_answers_marked_or_an_error_is_raised(written, tmp_path):
    _, folder = written
    alone = tmp_path / "alone"
    shutil.copytree(folder, alone, ignore=shutil.ignore_patterns("teacher"))
    whole = [labelled.given_by for labelled in raykd.load(folder)(TEXTS)]
    givers = [labelled.given_by for labelled in raykd.load(alone)(TEXTS)]
    assert givers == ["away" if giver == "teacher" else giver for giver in whole]
    with pytest.raises(LabellerError, match=r"teacher/export\.json: there is no such file"):
        raykd.load(alone, away="error")
    (alone / "teacher").mkdir()
    shutil.copy(folder / "teacher/export.json", alone / "teacher")
    with pytest.raises(LabellerError, match=r"teacher/labels.json: there is no such file"):  # a damaged copy
        raykd.load(alone)


def called(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_commands(ready, tmp_path):
    preparation, run = ready
    out = tmp_path / "out"
    source = preparation.storage.child(*run.folder).uri
    exported = called("export", source, out, "--cascade", 0.9)
    assert exported.exit_code == 0, exported.output
    assert "the teacher labels sentences with a confidence below" in " ".join(exported.output.split())
    assert "times the speed of the teacher" in " ".join(exported.output.split())
    (tmp_path / "in.txt").write_text("\n".join(TEXTS) + "\n")
    predicted = called("predict", out, tmp_path / "in.txt", "--out", tmp_path / "answers.jsonl")
    assert predicted.exit_code == 0, predicted.output
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [line["given_by"] for line in lines] == [labelled.given_by for labelled in raykd.load(out)(TEXTS)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cascade", 0.9, "--cascade-share", 0.1), "cannot be given together with --cascade-share"),
        (("--cascade", 0.9, "--checkpoint"), "cannot be given together with --cascade"),
        (("--teacher", "teacher-1"), "is for a cascade; give --cascade or --cascade-share too"),
    ],
)
def test_options_that_contradict_each_other_are_refused(ready, tmp_path, options, message):
    preparation, run = ready
    result = called("export", preparation.storage.child(*run.folder).uri, tmp_path, *options)
    assert result.exit_code != 0
    assert message in str(result.exception) + result.output


def test_a_student_without_a_teacher_names_one(tmp_path):
    alone = recipe(objective={"kind": "gold"}, teachers={"kind": "none"}, schedule={"epochs": 1})
    ready = prepared(str(tmp_path / "store"), alone)
    run = student_of(ready, alone)
    executed(ready, run)
    result = called("export", ready.storage.child(*run.folder).uri, tmp_path / "out", "--cascade", 0.9)
    assert result.exit_code != 0
    assert "learnt from no teachers, and a cascade has one" in str(result.exception) + result.output


@pytest.mark.parametrize(
    ("trees", "labels", "message"),
    [
        (None, ("O", "S-LOC", "S-GPE"), r"student and teacher have different labels \(S-GPE, S-PER\)"),
        ("some", ("O", "S-LOC", "S-PER"), "a parser has no cascade"),
    ],
)
def test_models_that_make_no_cascade_are_refused_and_nothing_is_written(
    ready, tmp_path, monkeypatch, trees, labels, message
):
    models = {"teacher": SimpleNamespace(labels=labels)}
    student = SimpleNamespace(labels=("O", "S-LOC", "S-PER"), trees=trees)
    monkeypatch.setattr("raykd.deploy.cascade.load", lambda folder: models.get(Path(folder).name, student))
    with pytest.raises(ExportError, match=message):
        export_cascade(
            *folders(ready), Storage(str(tmp_path / "out")), store=ready[0].storage, wish=Wish(share=0.5)
        )
    assert not (tmp_path / "out").exists()


def test_the_rule_of_a_card_is_read_back(written):
    exported, folder = written
    card = json.loads((folder / "export.json").read_text())["cascade"]
    assert Rule(card["confidence"], card["threshold"]) == exported.rule
