"""`raykd plan`: the command that it ends with is one that is not refused."""

from __future__ import annotations

import re
import shlex
from types import SimpleNamespace

import pytest
import ray

from raykd.cli import cluster, plan
from raykd.corpora.report import CorpusReport
from raykd.precompute.model_cost import find_cost
from raykd.report.readable_numbers import FORMS
from raykd.spec import load
from raykd.sweep.sweep import Sweep
from tests.sweep.in_process import call, code_of, without_ray
from tests.teachers.checkpoints import make_checkpoint

TEXT = """\
name: own
corpus: {source: builtin, languages: [en], train: 16, dev: 6, test: 6}
teachers: {kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {kind: wordpiece, size: 200}}
objective: {choice: [{kind: structural}, {kind: posterior}]}
schedule: {epochs: 1, anneal_horizon: 1}
search: {sampler: grid}
tracking: {models: none}
"""


@pytest.fixture
def planned(tmp_path, monkeypatch, capsys):
    """Run `plan` where the sweep `own` has ended; return its lines, and the words of the suggested command."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(TEXT)
    with without_ray():
        call("sweep", "own.yaml")

        def run(*options: str) -> tuple[str, list[str]]:
            capsys.readouterr()
            call("plan", "own.yaml", *options)
            out = capsys.readouterr().out
            return out, shlex.split(re.findall(r"Next: raykd (.*)", out)[-1])

        yield run


def test_the_trials_of_another_corpus_are_not_done_and_the_sweep_gets_a_name(planned):
    out, words = planned("--set", "corpus.train=20")
    assert "plan: 2 trials (0 done)" in out
    assert (
        "The store has a different sweep 'own' (corpus, teachers or space); give this one another name" in out
    )
    assert words == ["sweep", "own.yaml", "--set", "corpus.train=20", "--set", "name=own-2"]
    assert "trials 0 s" not in out
    call(*words)
    assert planned("--set", "corpus.train=20")[1][-1] == "name=own-3"


def test_ray_is_started_only_where_something_is_to_be_measured(planned, monkeypatch):
    monkeypatch.setenv("RAYKD_CPUS", "2")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster, "connected", lambda *_, **__: pytest.fail("Ray is started"))
    assert "2 at once" in planned()[0]
    for override in ("student.hidden_dim=7", "resources.gpus_per_worker=1"):
        with pytest.raises(pytest.fail.Exception, match="Ray is started"):
            planned("--set", override)
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    with pytest.raises(pytest.fail.Exception, match="Ray is started"):
        planned()


def test_a_treebank_says_where_its_parts_of_speech_are_from(planned, monkeypatch):
    assert "parts of speech" not in planned()[0]
    monkeypatch.setattr(CorpusReport, "pos_messages", lambda report: ["parts of speech: gold"])
    assert "\nparts of speech: gold\n" in planned()[0]


def test_a_text_that_gives_fewer_pieces_than_asked_for_is_named(planned):
    out, _ = planned("--set", "student.vocabulary.size=20000")
    assert re.search(r"vocabulary: [\d,]+ pieces instead of 20,000, as the text has no more", out)
    assert "asked for" not in planned()[0]


def test_a_student_that_starts_as_a_checkpoint_has_the_pieces_of_that(planned, tmp_path):
    path = make_checkpoint(tmp_path / "encoder", head=False, longest=64)
    teachers = "{kind: none}"
    student = f"{{kind: pretrained, path: {path}}}"
    out, _ = planned(
        "--set", f"teachers={teachers}", "--set", f"student={student}", "--set", "objective={kind: gold}"
    )
    assert "plan: 1 trial" in out
    assert "asked for" not in out


def test_what_would_be_taken_over_is_done(planned):
    out, words = planned()
    assert "plan: 2 trials (2 done)" in out
    assert words == ["sweep", "own.yaml", "--resume"]
    call(*words)


def test_a_sweep_that_has_no_trial_yet_is_resumed(planned, tmp_path):
    for record in (tmp_path / ".raykd/sweeps/own/trials").iterdir():
        record.unlink()
    out, words = planned()
    assert "(0 done)" in out
    assert words[-1] == "--resume"
    assert code_of(*words[:-1]) == 4


def test_workers_that_a_student_is_too_small_for_are_named_with_the_batch_that_they_would_need(planned):
    # 1,024 tokens a second, and 5 ms of each step whatever its batch: 4 tokens take 8.9 ms, 2 take 6.95; the workers
    # talk for 0.11 ms. 8.9 / (2 × 7.06) = 63 %.
    def workers(count: int, tokens: int) -> list[str]:
        keys = (
            f"resources.workers={count}",
            "resources.cpus_per_worker=0.1",
            f"training.batch_tokens={tokens}",
        )
        return re.findall(
            "^workers: .*", planned(*(word for key in keys for word in ("--set", key)))[0], re.M
        )

    (line,) = workers(2, 4)
    assert "2 workers would train E6 H6 crf in batches of 4 tokens at 63 % efficiency at most" in line
    (enough,) = re.findall(r"85 % need training.batch_tokens: (\d+) or more", line)
    assert workers(2, int(enough)) == workers(1, 4) == []


def test_nothing_is_said_of_the_speed_of_students_on_gpus(planned, monkeypatch):
    gpus = ("resources.workers=2", "resources.students.gpus_per_worker=1", "training.batch_tokens=4")
    monkeypatch.setattr(plan, "preflight", lambda *_: SimpleNamespace(students=1))
    assert "workers:" not in planned(*(word for key in gpus for word in ("--set", key)))[0]


STRATEGIES = """\
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {kind: wordpiece, size: 200}}
strategy: {choice: [D0, shared]}
strategies:
  D0: {scope: language, stages: [{objective: {kind: gold}}]}
  shared: {stages: [{objective: {kind: gold}}]}
"""


def test_a_student_of_one_model_for_each_language_is_a_row_with_the_parameters_of_all(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    lines = [line for line in TEXT.splitlines() if not line.startswith(("student", "objective"))]
    text = "\n".join(lines).replace("languages: [en]", "languages: [en, de]") + "\n" + STRATEGIES
    (tmp_path / "own.yaml").write_text(text)
    with without_ray():
        call("plan", "own.yaml")
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("E6 H6")]
    (alone,) = [row for row in rows if "languages" in row]
    (shared,) = [row for row in rows if "languages" not in row]
    sweep = Sweep(load("own.yaml"))
    two_runs = [run for runs in sweep.students() for run in runs if len(runs) == 2]
    parameters = sum(find_cost(sweep.storage, run).figures["parameters"] for run in two_runs)
    assert len(two_runs) == 2
    assert FORMS["count"](parameters) in alone
    assert FORMS["count"](parameters) not in shared
