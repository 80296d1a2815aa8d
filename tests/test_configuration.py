"""Configuration imports no network: `tests/cli/test_imports.py` has the same of the verbs that read it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import raykd

ROOT = Path(raykd.__file__).parents[1]
NETWORKS = ("torch", "transformers")
COMPUTING = ("losses", "single_loss", "weighted_losses", "chunks", "softmax", "stored_vocabulary")
"""The modules of these rooms that compute."""
JOINED = [
    "raykd.sweep.spec",
    "raykd.sweep.sweep_faults",
    "raykd.layers.optimisation",
    "raykd.layers.contextual",
]


def wing(name: str) -> list[str]:
    """The modules of a room, without those that compute."""
    files = sorted((ROOT / "raykd" / name).glob("[!_]*.py"))
    return [f"raykd.{name}.{file.stem}" for file in files if file.stem not in COMPUTING]


@pytest.mark.parametrize(
    "room", ["students", "teachers", "objectives", "tasks", "forms", "recipes", "figures", "spec"]
)
def test_modules_of_configuration_import_no_network(room):
    modules = [*wing(room), *JOINED]
    code = (
        "import importlib, sys\n"
        f"for name in {modules}:\n"
        "    importlib.import_module(name)\n"
        f"    loaded = [each for each in {NETWORKS} if each in sys.modules]\n"
        "    if loaded:\n"
        "        sys.exit(f'{name} imports {loaded}')\n"
    )
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
