"""Cascades as they ship: the rule chosen on dev, the folder, and all ways to use it."""

from __future__ import annotations

import json
import pickle
import shutil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import raykd
from raykd.cli.main import app
from raykd.corpora.answers import AskedText, answer_json, text_key
from raykd.corpora.answers.stored_answer import StoredAnswer
from raykd.corpora.stored_sources import find_corpus
from raykd.deploy.annotator_teacher import asked_annotator
from raykd.deploy.cascade import BothAnswers, Rule, Wish, choose_rule, export_cascade, threshold_of
from raykd.errors import ExportError
from raykd.serving.labeller import CONFIDENCES, LabellerError, load
from raykd.storage.store import Storage
from raykd.training.data import cached_corpus
from raykd.training.load import load_tagger
from raykd.transfer.answer_store import describe_annotator, write_answers
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
        both = BothAnswers(label, label.answers, tagger, corpus, part)
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


def test_models_with_other_labels_make_no_cascade_and_nothing_is_written(ready, tmp_path, monkeypatch):
    teacher = SimpleNamespace(labels=("O", "S-GPE"), answers=None)
    monkeypatch.setattr("raykd.deploy.cascade.load", lambda folder: teacher)
    with pytest.raises(ExportError, match=r"student and teacher have different labels \(B-LOC"):
        export_cascade(
            *folders(ready), Storage(str(tmp_path / "out")), store=ready[0].storage, wish=Wish(share=0.5)
        )
    assert not (tmp_path / "out").exists()


def test_the_rule_of_a_card_is_read_back(written):
    exported, folder = written
    card = json.loads((folder / "export.json").read_text())["cascade"]
    assert Rule(card["confidence"], card["threshold"]) == exported.rule


TEACHER = """
import pathlib

def label(texts):
    with pathlib.Path("{log}").open("a") as log:
        log.writelines(text.text + "\\n" for text in texts)
    for text in texts:
        if "unusable" in text.words:
            yield ["NONSENSE"]
        else:
            yield ["B-PER" if word[0].isupper() else "O" for word in text.words]
"""


@pytest.fixture(scope="module")
def annotated(tmp_path_factory):
    """A store in which a Python function has labelled a corpus, the run of a student of it, and the function's log."""
    folder = tmp_path_factory.mktemp("annotator")
    log = folder / "asked.txt"
    (folder / "my_teacher.py").write_text(TEACHER.replace("{log}", str(log)))
    annotator = {"kind": "python", "function": "my_teacher:label", "version": "1", "answers": "labels"}
    run_recipe = recipe(
        corpus={"train": 40, "dev": 30, "test": 30}, teachers=annotator, objective={"kind": "posterior"},
        schedule={"epochs": 2},
    )  # fmt: skip
    storage = Storage(str(folder / "store"))
    corpus, _ = find_corpus(run_recipe.corpus, storage)
    source = run_recipe.teachers.find_source([folder])
    words = [tuple(row) for part in corpus.parts.values() for row in part["tokens"].to_pylist()]
    texts = list({text_key(row): AskedText(row, " ".join(row), "en") for row in words}.values())
    answers = [
        StoredAnswer(text.key, answer_json(value, text, "labels"))
        for text, value in zip(texts, run_recipe.teachers.open(source)(texts), strict=True)
    ]
    answers_id = run_recipe.teachers.pinned().answers_id
    write_answers(storage, answers_id, 0, answers)
    describe_annotator(storage, answers_id, {"source": source.path})
    ready = prepared(storage.uri, run_recipe)
    run = student_of(ready, run_recipe)
    executed(ready, run)
    log.unlink()
    return ready, run, log


def test_an_annotator_is_asked_about_what_the_student_is_not_sure_of(annotated, tmp_path, monkeypatch):
    ready, run, log = annotated
    exported = export_cascade(
        ready.storage.child(*run.folder), ready.storage.child(*ready.teachers[0].run.folder),
        Storage(str(tmp_path / "out")), store=ready.storage, wish=Wish(share=0.5),
    )  # fmt: skip
    assert not log.exists()  # dev and test have stored answers
    assert exported.teacher is None
    assert set(exported.milliseconds) == {"student"}
    assert exported.outcomes["dev"].share == pytest.approx(0.5, abs=0.1)
    assert (tmp_path / "out/teacher/my_teacher.py").is_file()

    monkeypatch.chdir(tmp_path)
    assert {labelled.given_by for labelled in raykd.load(tmp_path / "out")(TEXTS)} <= {"student", "away"}
    assert not log.exists()  # no code of a folder runs unless its user says so
    with pytest.raises(LabellerError, match="whose code is run; if you trust the folder"):
        raykd.load(tmp_path / "out", away="error")
    label: Any = raykd.load(tmp_path / "out", run_code=True)
    sentences = [text.split() for text in TEXTS]
    answers = label.answers(sentences, 32)
    unsure = [words for words, answer in zip(sentences, answers, strict=True) if answer.given_by == "teacher"]
    asked = log.read_text().splitlines() if log.exists() else []
    assert asked == [" ".join(words) for words in unsure]
    everything = label.cascade.ask(sentences, 32)
    for words, answer in zip(sentences, everything, strict=True):
        assert [name != "O" for name in answer.best] == [word[0].isupper() for word in words]
        assert answer.lattice().marginals().max(1) == pytest.approx(1.0)
    assert label.cascade.ask([["unusable", "text"]], 32) == [None]


def test_without_what_opens_it_an_annotator_is_away(annotated, tmp_path, monkeypatch):
    ready, run, _ = annotated
    folders_of_both = (ready.storage.child(*run.folder), ready.storage.child(*ready.teachers[0].run.folder))
    export_cascade(*folders_of_both, Storage(str(tmp_path)), store=ready.storage, wish=Wish(share=1.0))
    monkeypatch.setattr("raykd.serving.labeller.cascade.entry_points", lambda group: [])
    assert {labelled.given_by for labelled in raykd.load(tmp_path, run_code=True)(TEXTS)} == {"away"}
    with pytest.raises(LabellerError, match="its teacher is an annotator, whose code is run; install raykd"):
        raykd.load(tmp_path, away="error", run_code=True)


def test_answers_in_files_cannot_be_asked_about_new_texts(ready, tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"text": "Ada", "labels": ["S-PER"]}) + "\n")
    of_files = SimpleNamespace(
        role="teacher", model={"kind": "annotations", "path": str(file), "answers": "labels"}
    )
    with pytest.raises(ExportError, match="has stored answers and cannot be asked about new texts"):
        asked_annotator(of_files)  # type: ignore[arg-type]
