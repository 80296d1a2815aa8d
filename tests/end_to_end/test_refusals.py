"""Bad input: a clear message, the right exit code, no traceback, and nothing computed or kept."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from raykd.cli.main import main
from tests.end_to_end.sweeps import conll_corpus, sweep_file


@pytest.fixture
def raykd(monkeypatch, capsys, tmp_path):
    """Calls the command in this process; gives its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    for name in ("RAY_ADDRESS", "RAY_JOB_CONFIG_JSON_ENV_VAR"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["raykd", *words])
        with pytest.raises(SystemExit) as raised:
            main()
        printed = capsys.readouterr()
        output = printed.out + printed.err
        assert "Traceback" not in output
        return int(raised.value.code or 0), output

    return call


def test_five_faults_are_reported_together(raykd, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(
        "name: bad\n"
        "corpus: {source: bultin}\n"
        "teachers: {kind: bilstm_crf, hiden_dim: 8}\n"
        "student: {kind: bilstm, embedding_dim: 8, hidden_dim: {choice: []}}\n"
        "objective: {kind: top_wk, k: 0}\n"
        "training: {learning_rate: fast}\n"
    )
    for verb in ("check", "sweep"):
        code, output = raykd(verb, str(path))
        assert code == 2
        for line, hint in [
            (2, "corpus.source: unknown 'bultin'; did you mean 'builtin'?"), (3, "did you mean 'hidden_dim'?"),
            (4, "student.hidden_dim: choice has no options; list at least one"), (5, "objective.k: got 0; must be"),
            (6, "training.learning_rate: got 'fast' (text); expected a number"),
        ]:  # fmt: skip
            (line_of_fault,) = (text for text in output.splitlines() if f"{path}:{line} " in text)
            assert hint in line_of_fault
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.yaml"]


@pytest.mark.parametrize("verb", ["precompute", "plan"])
def test_a_missing_corpus_is_reported_before_anything_starts(raykd, tmp_path, verb):
    corpus = conll_corpus(tmp_path / "conll") | {"root": str(tmp_path / "nowhere")}
    code, output = raykd(verb, str(sweep_file(tmp_path, corpus=corpus)))
    assert code == 3
    assert "nowhere" in output
    assert not (tmp_path / "store").exists()


def test_an_empty_file_is_reported_by_its_name(raykd, tmp_path):
    corpus = conll_corpus(tmp_path / "conll")
    empty = tmp_path / "conll/de/train.conll"
    empty.write_text("")
    code, output = raykd("precompute", str(sweep_file(tmp_path, corpus=corpus)))
    assert code == 3
    assert str(empty) in output
    assert not (tmp_path / "store").exists()


def test_tags_that_do_not_occur_in_train_are_warned_of(raykd, tmp_path):
    corpus = conll_corpus(tmp_path / "conll")
    with (tmp_path / "conll/de/test.conll").open("a") as file:
        file.write("\nParis\tB-CITY\n")
    code, output = raykd("corpus", "show", str(sweep_file(tmp_path, corpus=corpus)))
    assert code == 0
    assert "CITY" in output


@pytest.mark.timeout(60)
def test_a_tracking_server_that_does_not_answer_is_reported_within_seconds(raykd, tmp_path):
    code, output = raykd("sweep", str(sweep_file(tmp_path)), "--set", "tracking.uri=http://127.0.0.1:9")
    assert code == 6
    assert "nothing answers at 127.0.0.1:9" in output
    assert "--set tracking.uri=" in output
    assert not (tmp_path / "store").exists()


def test_more_workers_than_cpus_are_refused_with_the_arithmetic(raykd, tmp_path, ray_cluster):
    path = sweep_file(tmp_path, resources={"workers": 8, "cpus_per_worker": 0.6})
    for verb in ("plan", "precompute", "distill", "sweep"):
        code, output = raykd(verb, str(path))
        assert code == 5
        assert "8 workers × 0.6 CPUs + 0.1 for its driver = 4.9 CPUs, the cluster has 4" in output
    store = tmp_path / "store"
    assert {entry.name for entry in store.iterdir()} <= {"corpora", "vocabularies"}


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ((), ["store: 'store' is relative", "tracking.uri: 'sqlite:///mlflow.db' is relative"]),
        (("--set", "store=/shared/raykd"), ["tracking.uri"]),
        (("--set", "store=s3://bucket/raykd", "--set", "tracking.uri=http://mlflow:5000"), []),
        (("--set", "store=/shared/raykd", "--set", "tracking.uri=sqlite:////shared/mlflow.db"), []),
        (
            ("--set", "store=/shared/raykd", "--set", "tracking.uri=postgresql://raykd@db/mlflow"),
            ["tracking.artifacts: 'mlruns' is relative"],
        ),
        (
            (
                "--set",
                "store=/shared/raykd",
                "--set",
                "tracking.uri=postgresql://raykd@db/mlflow",
                "--set",
                "tracking.artifacts=s3://bucket/mlflow",
            ),
            [],
        ),
    ],
    ids=["both", "tracking", "neither", "local but absolute", "files of a database", "files in a bucket"],
)
def test_a_job_refuses_paths_that_vanish_with_it(raykd, monkeypatch, tmp_path, words, refused):
    path = str(sweep_file(tmp_path))
    assert raykd("check", path, *words)[0] == 0
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    code, output = raykd("check", path, *words)
    assert code == (2 if refused else 0)
    for message in refused:
        assert message in output
    assert ("is deleted at its end" in output) == bool(refused)


def test_the_front_of_a_sweep_that_was_never_run(raykd, tmp_path):
    code, output = raykd("front", str(sweep_file(tmp_path)))
    assert code == 4
    assert "run raykd sweep first" in output
    assert not Path("store").exists()


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "..", "a/../../b"])
def test_the_front_of_what_is_no_name_of_a_sweep(raykd, name):
    code, output = raykd("front", name)
    assert code == 4
    assert "is not in the store" in output


def test_data_that_looks_like_markup_is_printed_as_it_is(raykd, tmp_path):
    corpus = conll_corpus(tmp_path / "conll")
    with (tmp_path / "conll/de/test.conll").open("a") as file:
        file.write("\n[/bold]\tB-[/red]\\\n")
    code, output = raykd("corpus", "show", str(sweep_file(tmp_path, corpus=corpus)))
    assert code == 0
    assert "[/red]" in output
    (tmp_path / "conll/de/dev.conll").write_text("[/bold]\\[red] O O\n[x\n")
    code, output = raykd("corpus", "show", str(sweep_file(tmp_path, corpus=corpus)))
    assert code == 3
