"""Sweeps whose teacher is an annotator: asked once, with gold labels or without, in the test's process."""

from __future__ import annotations

import json
import random
import re

import mlflow
import pytest

from raykd.errors import RunError, SpecError, StoreError
from raykd.precompute.asking import Asker
from raykd.storage.store import Storage
from raykd.sweep.phases import questions
from raykd.sweep.records import SweepRecords
from tests.sweep.in_process import call, code_of, without_ray

NAMES = ("Ada", "Bob", "Eva", "Ida")
PLACES = ("Oslo", "Rome", "Bonn", "Lima")
VERBS = ("left", "saw", "likes", "lost")
COMMON = """\
task: ner
student: {kind: bilstm, embedding_dim: 8, hidden_dim: 8, decoder: crf, vocabulary: {kind: wordpiece, size: 200}}
objective: {kind: top_wk}
schedule: {epochs: 2}
training: {learning_rate: 2e-2, batch_tokens: 200}
search: {trials: 1}
store: store
tracking: {uri: 'sqlite:///mlflow.db'}
"""


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A folder with a file of texts, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    drawn = random.Random(0)
    lines = sorted({" ".join(map(drawn.choice, (NAMES, VERBS, PLACES))) for _ in range(200)})
    drawn.shuffle(lines)
    (tmp_path / "texts.txt").write_text("\n".join(lines) + "\n")
    return lines


def mentions(text):
    return [
        {"text": word, "label": "person" if word in NAMES else "place"}
        for word in text.split()
        if word in (*NAMES, *PLACES)
    ]


@pytest.mark.slow
def test_a_sweep_without_gold_labels_says_agreement_everywhere(texts, tmp_path, capsys):
    drawn = random.Random(1)
    with (tmp_path / "answers.jsonl").open("w") as file:
        for text in texts:
            samples = [{"mentions": [m for m in mentions(text) if drawn.random() < 0.9]} for _ in range(3)]
            file.write(json.dumps({"text": text, "samples": samples}) + "\n")
    (tmp_path / "s.yaml").write_text(
        "name: free\ncorpus: {source: text, languages: [en], train: texts.txt, labels: [PER, LOC], "
        "split: {train: 3, dev: 1, test: 1}}\nteachers: {kind: annotations, path: answers.jsonl, answers: samples, "
        "labels: {person: PER, place: LOC}}\n" + COMMON
    )
    with without_ray():
        call("check", "s.yaml")
        call("plan", "s.yaml")
        assert code_of("sweep", "s.yaml") == 0
        call("front", "s.yaml", "--where", "agreement >= 0.01 * teacher")
    printed = capsys.readouterr().out
    assert "dev agreement" in printed
    assert "F1" not in printed
    assert "agreement is with the teacher's own labels" in printed
    page = (tmp_path / "store/sweeps/free/front.html").read_text()
    assert "dev agreement" in page
    assert "dev F1" not in page
    client = mlflow.MlflowClient("sqlite:///mlflow.db")
    (experiment,) = [found for found in client.search_experiments() if found.name == "free"]
    names = {name for run in client.search_runs([experiment.experiment_id]) for name in run.data.metrics}
    assert "dev_agreement" in names
    assert not [name for name in names if "f1" in name]
    (run,) = (tmp_path / "store/runs").iterdir()
    call("export", str(run), "out")
    card = (tmp_path / "out/README.md").read_text()
    assert "test agreement" in card
    assert "There are no gold labels" in card
    assert "F1" not in card


@pytest.mark.slow
def test_where_some_gold_exists_both_scores_are_shown_and_gold_decides(texts, tmp_path, capsys):
    """The annotator knows no places, so a student that agrees with it has few of the gold labels."""
    with (tmp_path / "answers.jsonl").open("w") as file:
        for text in texts[:-5]:  # and it has no answer about five sentences of test
            names = [mention for mention in mentions(text) if mention["text"] in NAMES]
            file.write(json.dumps({"text": text, "mentions": names}) + "\n")
    for part, lines in (("train", texts[:30]), ("dev", texts[30:40]), ("test", texts[40:])):
        tags = {**dict.fromkeys(NAMES, "B-PER"), **dict.fromkeys(PLACES, "B-LOC")}
        rows = ["".join(f"{word}\t{tags.get(word, 'O')}\n" for word in text.split()) for text in lines]
        (tmp_path / f"{part}.conll").write_text("\n".join(rows))
    (tmp_path / "s.yaml").write_text(
        "name: both\ncorpus: {source: conll, root: ., languages: [en], train: train.conll, dev: dev.conll, "
        "test: test.conll}\nteachers: {kind: annotations, path: answers.jsonl, answers: mentions, "
        "labels: {person: PER}}\n"
        + COMMON.replace("epochs: 2", "epochs: 12")
        .replace("top_wk", "posterior")
        .replace(
            "sqlite:///mlflow.db", database := f"sqlite:///{tmp_path}/mlflow.db"
        )  # MLflow keeps open ones
    )
    with without_ray():
        assert code_of("sweep", "s.yaml") == 0
        call("front", "s.yaml", "--where", "agreement >= 0.5 * teacher", "--best", "latency_ms")
    printed = capsys.readouterr().out
    assert "dev F1" in printed
    (trial,) = SweepRecords(Storage("store"), "both").trials()
    dev, agreement = trial.scores.mean("dev"), trial.scores.mean("dev", beside="agreement")
    assert agreement > dev > 0
    assert trial.scores.get("test", beside="agreement").by_language.keys() == {"en"}
    assert "dev agreement" in (tmp_path / "store/sweeps/both/front.html").read_text()
    assert "dev_agreement" in (tmp_path / "store/sweeps/both/front.csv").read_text().splitlines()[0]
    client = mlflow.MlflowClient(database)
    (experiment,) = [found for found in client.search_experiments() if found.name == "both"]
    logged = client.search_runs([experiment.experiment_id], "tags.role = 'search'")[0].data.metrics
    assert logged["dev_agreement"] == pytest.approx(agreement, abs=1e-4)
    (view,) = [value for tag, value in experiment.tags.items() if "raykd-front" in tag]
    assert "dev_agreement" in view


class _AskingHere:
    """Asks in the test's process, a batch after the other."""

    def __init__(self, annotator, source, *, keys, actors, on_answers):
        self._annotator, self._on_answers = annotator, on_answers
        self._asker = Asker(annotator, source, keys)

    def ask(self, texts):
        for first in range(0, len(texts), self._annotator.batch_size):
            answers, failure = self._asker.ask(texts[first : first + self._annotator.batch_size])
            self._on_answers(answers)
            if failure is not None:
                raise RunError(failure.problem)


CODE = """
import os
from pathlib import Path

def label(texts, mood="kind"):
    log = Path("asked.log")
    for text in texts:
        with log.open("a") as file:
            file.write(text.text + "\\n")
        if log.read_text().count("\\n") == {fails_at}:
            raise ConnectionError(f"refused the key {{os.environ['SERVICE_KEY']}}")
        yield {answer}
"""
NAMED = f"[[word, 'PER' if word in {NAMES} else 'LOC'] for word in text.words if word[0].isupper()]"


@pytest.fixture
def asked_texts(texts, tmp_path, monkeypatch):
    """A sweep file whose teacher is a Python function; the texts about which the function was asked."""
    monkeypatch.setattr(questions, "Asking", _AskingHere)
    monkeypatch.setenv("SERVICE_KEY", "k3y-canary")
    write_code(tmp_path)
    (tmp_path / "s.yaml").write_text(
        "name: asked\ncorpus: {source: text, languages: [en], train: texts.txt, labels: [PER, LOC], "
        "split: {train: 3, dev: 1, test: 1}}\nteachers: {kind: python, function: 'my_teacher:label', version: '1', "
        "answers: mentions, keys: [SERVICE_KEY], texts: 10, batch_size: 3, cost_per_1000_texts: 50, "
        "texts_per_minute: 60}\n" + COMMON
    )
    log = tmp_path / "asked.log"
    return lambda: log.read_text().splitlines() if log.exists() else []


def write_code(folder, *, fails_at=0, answer=NAMED):
    (folder / "my_teacher.py").write_text(CODE.format(fails_at=fails_at, answer=answer))


def test_check_and_plan_say_what_would_be_asked_and_import_nothing(texts, asked_texts, tmp_path, capsys):
    (tmp_path / "my_teacher.py").write_text("raise SystemExit('imported')")
    held_out = 2 * round(len(texts) / 5)
    with without_ray():
        call("check", "s.yaml")
        call("plan", "s.yaml")
    printed = capsys.readouterr().out
    count = int(re.search(r"answers: (\d+) texts to ask python my_teacher:label about", printed)[1])
    assert abs(count - 10 - held_out) <= 1
    assert f"for {count * 50 / 1000:.2f} at 50 for 1,000" in printed
    assert f"in at least {count} s" in printed
    assert asked_texts() == []
    (tmp_path / "my_teacher.py").unlink()
    call("check", "s.yaml")
    assert "my_teacher:label" in (warning := capsys.readouterr().err)
    assert "no file my_teacher.py in" in warning


@pytest.mark.slow
def test_no_text_is_asked_about_twice(texts, asked_texts, tmp_path, capsys, monkeypatch):
    write_code(tmp_path, fails_at=8)
    with without_ray():
        assert code_of("precompute", "s.yaml") == RunError.exit_code
        printed = capsys.readouterr()
        assert "refused the key $SERVICE_KEY" in printed.err
        first = asked_texts()
        write_code(tmp_path)
        call("precompute", "s.yaml")
        printed_again = capsys.readouterr()
        assert (
            "has changed since python my_teacher:label was first asked"
            in printed_again.out + printed_again.err
        )
        second = asked_texts()
        assert second[: len(first)] == first
        assert len(second) - 1 == len(set(second))  # the one that failed was asked about again
        # More texts contain the fewer, and dev and test are answered already.
        call("precompute", "s.yaml", "--set", "teachers.texts=15")
        assert len(asked_texts()) - len(second) == 5
        call("precompute", "s.yaml", "--set", "teachers.texts=12", "--set", "teachers.labels={LOC: O}")
        assert len(asked_texts()) - len(second) == 5
        call("precompute", "s.yaml", "--set", "teachers.version='2'")
        assert len(asked_texts()) == 2 * len(set(second)) + 5 + 1
        (tmp_path / "my_teacher.py").unlink()
        call("precompute", "s.yaml")  # all is answered: the code is not needed
        write_code(tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if b"k3y-canary" in path.read_bytes()] == []
    monkeypatch.delenv("SERVICE_KEY")
    with without_ray():
        assert code_of("precompute", "s.yaml", "--set", "teachers.version='3'") == RunError.exit_code
    assert "SERVICE_KEY is not set" in capsys.readouterr().err


def test_clean_removes_answers_only_by_name(texts, asked_texts, tmp_path, capsys):
    with without_ray():
        call("precompute", "s.yaml")
        (folder,) = (tmp_path / "store/answers").iterdir()
        call("clean", "store", "--yes")
        assert list(folder.glob("batch-*"))
        assert (
            code_of("clean", "store", "--answers", "answers-0000000000000000", "--yes")
            == StoreError.exit_code
        )
        assert f"there are {folder.name}" in capsys.readouterr().err
        assert code_of("clean", "store", "--answers", folder.name, "--sweep", "asked") == SpecError.exit_code
        call("clean", "store", "--answers", folder.name, "--yes")
    assert not folder.exists()


def test_too_many_unusable_answers_end_the_asking_early(texts, asked_texts, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(questions, "FEWEST_JUDGED", 10)
    write_code(tmp_path, answer="None")
    with without_ray():
        assert code_of("precompute", "s.yaml") == RunError.exit_code
    assert "3 of 3 answers cannot be used" in (error := capsys.readouterr().err)
    assert "nothing was returned for it" in error
    assert len(asked_texts()) == 3


def test_probabilities_over_the_tags_of_bioes_are_not_taken_for_unusable(
    texts, asked_texts, tmp_path, monkeypatch
):
    monkeypatch.setattr(questions, "FEWEST_JUDGED", 1)
    write_code(tmp_path, answer="[{'S-PER': 0.9, 'O': 0.1}] * len(text.words)")
    options = {
        "teachers.answers": "probabilities",
        "student.decoder": "maxent",
        "objective": "{kind: posterior}",
    }
    with without_ray():
        call(
            "precompute", "s.yaml", *(word for pair in options.items() for word in ("--set", "=".join(pair)))
        )
    assert len(asked_texts()) > 10


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (["corpus.labels=[]"], "source 'text' has no labels, which task 'ner' needs"),
        (["objective={kind: gold}"], "the corpus has no gold labels, which 'gold' reads"),
        (["teachers={kind: bilstm_crf}"], "without gold labels the teacher must be an annotator"),
        (["task=parsing"], "task 'parsing' has no annotators"),
        (["search.objectives={f1: max}"], "for the task's score write agreement"),
        (["teachers.function=my_teacher"], "teachers.function"),
        (["teachers.answers=trees"], "task 'ner' predicts no trees; set task: parsing"),
    ],
)
def test_settings_that_need_gold_labels_are_refused(asked_texts, settings, fault, capsys):
    assert (
        code_of("check", "s.yaml", *(word for pair in settings for word in ("--set", pair)))
        == SpecError.exit_code
    )
    assert fault in capsys.readouterr().err
