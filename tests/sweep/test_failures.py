"""Failing trials and teachers, and the messages about them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from raykd.cli.sweep import NO_FRONT, SOME_FAILED
from raykd.errors import RunError
from raykd.figures.trial import Trial
from raykd.storage.store import Storage
from raykd.sweep.records import SweepRecords
from tests.sweep import in_process
from tests.sweep.in_process import code_of, without_ray

TEXT = """\
name: failing
corpus: {{source: builtin, languages: [en], train: 12, dev: 4, test: 4}}
teachers: {{kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}}
student: {{kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {{kind: wordpiece, size: 200}}}}
objective: {{choice: [{{kind: structural}}, {{kind: posterior}}]}}
schedule: {{epochs: 1, anneal_horizon: 2}}
training: {{batch_tokens: 200, learning_rate: {rate}}}
search: {{sampler: grid}}
store: {folder}/store
tracking: {{uri: 'sqlite:///{folder}/mlflow.db'}}
"""


@pytest.fixture
def folder(tmp_path, empty_mlflow) -> Path:
    shutil.copy(empty_mlflow, tmp_path / "mlflow.db")
    return tmp_path


def sweep(folder: Path, *words: str, rate: str = "0.01") -> int:
    """The exit code of the sweep in `folder`."""
    (folder / "sweep.yaml").write_text(TEXT.format(folder=folder, rate=rate))
    with without_ray():
        return code_of("sweep", str(folder / "sweep.yaml"), *words)


def trials(folder: Path) -> list[Trial]:
    return [record.trial for record in SweepRecords(Storage(str(folder / "store")), "failing").load()]


def failing(monkeypatch: pytest.MonkeyPatch, *kinds: str) -> None:
    """Let all students with the given objectives fail from now on."""
    really = in_process.execute_run

    def execute(store_uri: str, run: Any, **options: Any) -> Any:
        if run.role == "student" and run.stages[0]["objective"]["kind"] in kinds:
            raise RunError("[the disk] is full")
        return really(store_uri, run, **options)

    monkeypatch.setattr(in_process, "execute_run", execute)


@pytest.mark.slow
def test_a_front_with_gaps_has_an_exit_code_of_its_own_and_resume_fills_them(folder, capsys):
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, "posterior")
        assert sweep(folder) == SOME_FAILED
    printed = capsys.readouterr().out
    assert "1 complete, 1 failed" in printed
    assert "The front has gaps: 1 trial failed (#01 posterior" in printed
    assert "--resume tries them again" in printed
    assert [(trial.state, trial.message) for trial in trials(folder)] == [
        ("COMPLETE", ""), ("FAILED", "[the disk] is full")
    ]  # fmt: skip
    assert sweep(folder, "--resume") == 0
    assert [(trial.number, trial.state, trial.message) for trial in trials(folder)] == [
        (0, "COMPLETE", ""), (1, "COMPLETE", "")
    ]  # fmt: skip
    assert "trials: done, 2 complete" in capsys.readouterr().out


def test_a_sweep_without_any_student_has_another_exit_code(folder, monkeypatch, capsys):
    failing(monkeypatch, "posterior", "structural")
    assert sweep(folder) == NO_FRONT
    assert "2 failed" in capsys.readouterr().out
    assert sweep(folder, "--resume") == NO_FRONT, "tried again, and failed again"
    assert [trial.state for trial in trials(folder)] == ["FAILED"] * 2


@pytest.mark.slow
def test_a_sweep_stops_when_its_trials_fail_keeps_what_it_has_and_goes_on_when_that_is_corrected(
    folder, capsys
):
    many = "{choice: [0.01, 0.011, 0.012, 0.013, 0.014]}"
    teachers = ("--set", "teachers.training.learning_rate=0.01", "--set", "baseline=none")
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, "posterior", "structural")
        assert sweep(folder, *teachers, rate=many) == NO_FRONT
    printed = capsys.readouterr()
    assert "4 of 4 trials failed, 4 of them with: [the disk] is full" in printed.out + printed.err
    assert "There is no front: 4 trials failed" in printed.out
    assert len(trials(folder)) == 4, "six were not begun"
    assert (folder / "store/sweeps/failing/front.html").is_file()
    assert sweep(folder, *teachers, "--resume", rate=many) == 0
    assert [trial.state for trial in trials(folder)] == ["COMPLETE"] * 10


@pytest.mark.slow
def test_a_run_that_diverges_is_named_with_the_step_and_what_to_change(folder):
    assert (
        sweep(folder, "--set", "teachers.training.learning_rate=0.01", rate="{choice: [0.01, 1e37]}")
        == SOME_FAILED
    )
    for trial in trials(folder):
        diverged = trial.settings["training.learning_rate"] == 1e37
        assert (trial.state == "FAILED") == diverged
        if diverged:
            assert "epoch 0, batch" in trial.message
            assert "lower training.learning_rate" in trial.message
