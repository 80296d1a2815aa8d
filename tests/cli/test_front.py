"""`raykd front` on a sweep's records: what is chosen, by which names, and what is refused."""

from __future__ import annotations

import os
import pwd
import signal
import sys

import pytest

from raykd.cli.main import main
from raykd.figures.trial import Teacher, Trial
from raykd.storage.store import Storage
from raykd.sweep.records import Record, SweepRecords
from tests.scores import scores
from tests.sweep.in_process import code_of

CALLED = {"score_name": "accuracy", "score_label": "accuracy"}


@pytest.fixture
def front(tmp_path, monkeypatch, capsys):
    """Run the command on a sweep with two students on the front; return its output and its end."""
    records = SweepRecords(Storage(str(tmp_path)), "pos")
    records.open(sweep_id="sweep-pos", text="{}", resume=False)
    records.save_teachers(
        [Teacher("t", scores(0.9, 0.9), {"latency_ms": 9.0, "parameters": 9000}, **CALLED)], dev_labels=1000
    )
    for number, (score, latency) in enumerate(((0.88, 2.0), (0.7, 1.0))):
        cost = {"latency_ms": latency, "parameters": 1000, "speedup": 9 / latency, "compression": 9.0}
        settings = {"student.hidden_dim": 8 + number}
        student = Trial(
            number,
            "COMPLETE",
            settings,
            "search",
            "top_k",
            ("run-1",),
            scores(score, 0.6),
            cost,
            3.0,
            "",
            **CALLED,
        )
        records.save(Record(student, {}))

    def run(*words: str) -> tuple[str, int]:
        monkeypatch.setattr(sys, "argv", ["raykd", "front", "pos", *words, "--store", str(tmp_path)])
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        with pytest.raises(SystemExit) as raised:
            main()
        output = capsys.readouterr()
        return output.out + output.err, int(raised.value.code or 0)

    return run


def test_the_next_command_names_the_task_s_score(front, tmp_path):
    output, code = front()
    assert code == 0
    assert "2 of 2 students on the front" in output
    assert (
        f"Next: raykd front pos --store {tmp_path} --where 'accuracy >= 0.95 * teacher' --best latency_ms"
        in output
    )
    assert (tmp_path / "sweeps/pos/front.csv").read_text().startswith('"number","name"')


def test_the_table_is_shown_where_nothing_can_be_written(front, tmp_path):
    # A folder in the place of a file cannot be replaced by anybody, whatever the rights are.
    (tmp_path / "sweeps/pos/front.csv/in the way").mkdir(parents=True)
    output, code = front()
    assert code == 0
    assert "2 of 2 students on the front" in output
    assert f"warning {tmp_path}/sweeps/pos/front.csv: cannot be written" in output
    assert (
        "front: front.html, front.csv and trials.parquet could not be written. Next: raykd front pos"
        in output
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="takes another user's place, for root alone")
def test_another_user_s_store_is_read(front, tmp_path):
    folder = tmp_path / "sweeps/pos"
    before = sorted(path.name for path in folder.iterdir())
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_mode & 0o055 != 0o055:  # those of pytest
            path.chmod(path.stat().st_mode | 0o055)
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        output, code = front()
    finally:
        os.seteuid(0)
    assert code == 0
    assert "2 of 2 students on the front" in output
    assert "cannot be written (permission denied)" in output
    assert "make the folder writable" in output
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (["--best", "latency_ms"], 1),
        (["--best", "accuracy"], 0),
        (["--where", "accuracy >= 0.95 * teacher", "--best", "latency_ms"], 0),
        (["--where", "score < 0.8 and compression == 9"], 1),
    ],
)
def test_one_student_is_chosen(front, words, number):
    output, code = front(*words)
    assert code == 0
    assert output.startswith(f"#0{number} top_k · H{8 + number}: dev accuracy")
    assert "runs/run-1" in output


def test_a_choice_shows_scores_and_costs(front):
    output, _ = front("--best", "accuracy")
    costs = "2.00 ms, 1.00k parameters, 4.50× faster, 9.00× smaller"
    assert output.startswith(f"#00 top_k · H8: dev accuracy 88.0, test accuracy 60.0, {costs}")


@pytest.mark.parametrize("option", ["--where", "--best"])
def test_another_task_s_score_is_refused_with_the_hint(front, option):
    output, code = front(option, "f1 > 0" if option == "--where" else "f1")
    assert code == 2
    assert "unknown name 'f1'" in output
    assert "for the task's score write accuracy" in output


def test_no_student_is_an_answer_too(front):
    output, code = front("--where", "accuracy > 0.95", "--best", "accuracy")
    assert code == 1
    assert "no student of the front meets the condition" in output


@pytest.fixture
def small(tmp_path, monkeypatch, capsys):
    """Run `raykd front` in a folder where only the variant `small` of mine.yaml was run; return the messages."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("name: mine\nvariants: {large: {}, small: {search: {trials: 3}}}\n")
    SweepRecords(Storage(".raykd"), "mine-small").open(sweep_id="sweep-s", text="{}", resume=False)

    def run(*words: str) -> str:
        assert code_of("front", *words) == 4
        return capsys.readouterr().err

    return run


def test_the_form_of_the_sweep_that_was_run_is_named_with_its_command(small):
    message = "error sweep 'mine': is not in the store .raykd; it has mine-small: write raykd front "
    assert small("mine.yaml") == f"{message}mine.yaml --small\n"
    assert small("mine.yaml", "--set", "search.seed=1") == f"{message}mine.yaml --small --set search.seed=1\n"
    assert small("mine") == f"{message}mine-small\n"
    assert "it has mine-small: write raykd front mine-small" in small("mine.yaml", "--variant", "large")
    assert "run raykd sweep first, or give --store" in small("other")


def test_a_variant_that_an_override_does_not_fit_is_not_named(small, tmp_path):
    """The store has `mine-small`, and `large`, which is looked for before it, has no item 1 of a list."""
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nstages: [{}, {}]\nvariants: {large: {stages: [{}]}, small: {search: {trials: 3}}}\n"
    )
    assert "it has mine-small: write raykd front mine.yaml --small" in small(
        "mine.yaml", "--set", "stages.1.text=all"
    )
