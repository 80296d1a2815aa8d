"""The examples in raykd's docstrings are run."""

import subprocess
import sys
from pathlib import Path

# In a process of its own: under the shape checks functions are wrapped, and doctest would pass them over.
RUN_ALL = """
import doctest, importlib, pathlib
failed = attempted = 0
for path in sorted(pathlib.Path("raykd").rglob("*.py")):
    if ">>>" not in path.read_text():
        continue  # importing all of raykd takes seconds
    result = doctest.testmod(importlib.import_module(".".join(path.with_suffix("").parts)))
    failed, attempted = failed + result.failed, attempted + result.attempted
print(f"{attempted} examples, {failed} failed")
"""


def test_examples_in_docstrings_are_true():
    process = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    examples, failed = process.stdout.rsplit("\n", 2)[-2].split(" examples, ")
    assert failed == "0 failed", process.stdout
    assert int(examples.rpartition("\n")[2]) > 5
