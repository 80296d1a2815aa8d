"""The command before any verb runs: help, wrong words, and what is imported."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from raykd.cli.main import VERBS, main, summary

ROOT = Path(__file__).parents[2]
LOADED = """
import atexit, json, sys
slow = ("ray", "mlflow", "optuna", "seqeval")
atexit.register(lambda: print(json.dumps([name for name in slow if name in sys.modules])))
sys.argv = ["raykd", "check", "sweeps/quickstart.yaml"]
from raykd.cli.main import main
main()
"""


def test_checking_a_file_imports_neither_ray_nor_mlflow():
    process = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert "check: sweeps/quickstart.yaml is valid" in process.stdout
    assert json.loads(process.stdout.splitlines()[-1]) == []


def test_the_version_and_the_commit_of_a_checkout(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["raykd", "--version"])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as raised:
        main()
    assert raised.value.code == 0
    output = capsys.readouterr().out
    assert output.startswith("raykd 0.")
    assert ("(" in output) is (ROOT / ".git").exists()


@pytest.mark.parametrize(
    ("words", "place", "completions"),
    [
        ("raykd ev", 1, ["evaluate"]),
        ("raykd predict --in", 2, ["--int8"]),
        ("raykd front n", 2, ["ner"]),
        ("raykd sweep sw", 2, []),
    ],
)
def test_bash_completes_verbs_options_and_sweeps(tmp_path, words, place, completions):
    (tmp_path / ".raykd/sweeps/ner").mkdir(parents=True)
    completing = {"_RAYKD_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
    program = "import sys; sys.argv = ['raykd']; from raykd.cli.main import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **completing}
    process = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert process.stdout.split() == completions, process.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_help_says_what_the_verb_itself_says(verb):
    module = importlib.import_module(f"raykd.cli.{verb}")
    assert summary(verb) == (
        module.app.info.help if hasattr(module, "app") else getattr(module, verb).__doc__
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Usage: raykd"),
        (["corpus"], "Usage: raykd corpus"),
        (["chek", "sweeps/quickstart.yaml"], "No such command 'chek'; see raykd --help"),
        (["check"], "Missing argument 'FILE'"),
        (["check", "sweeps/quickstart.yaml", "--sett", "a=1"], "No such option: --sett"),
        (["check", "nowhere.yaml"], "error nowhere.yaml: no such file"),
        (["front", "wikiann", "--variant", "20k", "--small"], "wikiann is a name; write wikiann-20k-small"),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
def test_wrong_words_end_with_code_2_and_no_traceback(monkeypatch, capsys, words, message):
    monkeypatch.setattr(sys, "argv", ["raykd", *words])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as raised:
        main()
    output = capsys.readouterr()
    assert raised.value.code == 2
    assert message in output.out + output.err
    assert "Traceback" not in output.err


def test_check_looks_into_every_variant(monkeypatch, capsys, tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(
        "name: x\ncorpus: {source: builtin}\nteachers: {kind: bilstm_crf}\n"
        "student: {kind: bilstm, embedding_dim: 8, hidden_dim: 8}\nobjective: {kind: gold}\n"
        "variants:\n  good: {objective: {kind: structural}}\n  bad:\n    schedule: {epoch: 3}\n"
    )
    monkeypatch.setattr(sys, "argv", ["raykd", "check", str(path)])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as raised:
        main()
    assert raised.value.code == 2
    assert f"{path}:9 schedule.epoch: unknown key 'epoch'" in capsys.readouterr().err.replace("\n", " ")
