"""A few hundred damaged files per kind: refused in one sentence or accepted, never a traceback, never for long.

`make fuzz` tries 10,000 of each and prints the counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.cases import SECONDS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["sweep_files", "corpora", "predicted"])
@pytest.mark.slow
def test_damaged_files_are_refused_or_read(kind):
    command = [sys.executable, "-m", "tests.fuzz.cases", kind, "0", "300"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    report = json.loads(process.stdout)
    assert report["wrong"] == []
    assert report["slowest_s"] < SECONDS
    ends = sum((Counter(counts) for counts in report["counts"].values()), Counter())
    assert ends["accepted"] + ends["refused"] == 300
    # Damage is noticed more often than not, and what is undamaged is read.
    assert ends["refused"] > 100
    assert ends["accepted"] > 20
