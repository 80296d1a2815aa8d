"""Heavy modules imported by each command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.commands import CALLED
from tests.cli.test_compare import saved

ROOT = Path(__file__).parents[2]
ALLOWED = {
    "--version": set(),
    "--help": set(),
    "init --help": set(),
    "check sweeps/quickstart.yaml": set(),
    "list STORE": set(),
    "watch --help": set(),
    "compare ner --store STORE": set(),
    "front ner --store STORE": {"pandas"},  # pyarrow imports pandas where it is installed
    "predict --help": set(),
    "evaluate --help": set(),
    "serve --help": set(),
    "clean --help": set(),
    "corpus --help": set(),
    "plan --help": {"torch", "ray", "pandas", "scipy", "optuna"},
}
"""The words of a command → what it may import of the heavy modules."""


@pytest.mark.parametrize("words", ALLOWED)
def test_a_verb_imports_no_more_than_it_needs(words, tmp_path):
    saved(tmp_path, "ner")
    command = [str(tmp_path) if word == "STORE" else word for word in words.split()]
    process = subprocess.run(
        [sys.executable, "-c", CALLED, *command], cwd=ROOT, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    _, loaded = json.loads(process.stderr.splitlines()[-1])
    assert set(loaded) <= ALLOWED[words]
