"""Every example in a docstring of raykd is run."""

import subprocess
import sys
from pathlib import Path

# In a process of its own: under the shape checks functions are wrapped, and doctest would pass them over.
RUN_ALL = """
import doctest, importlib, pkgutil, raykd
failed = attempted = 0
for module in pkgutil.walk_packages(raykd.__path__, "raykd."):
    try:
        imported = importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name != "triton":  # comes with CUDA builds of torch only
            raise
        continue
    result = doctest.testmod(imported)
    failed, attempted = failed + result.failed, attempted + result.attempted
print(f"{attempted} examples, {failed} failed")
"""


def test_examples_in_docstrings_are_true():
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    examples, failed = done.stdout.rsplit("\n", 2)[-2].split(" examples, ")
    assert failed == "0 failed", done.stdout
    assert int(examples.rpartition("\n")[2]) > 5
