"""Processor seconds of the raykd command up to the first output, by verb, and the heavy modules imported.

    python benchmarks/commands.py                 --version, --help, and the help of each verb
    python benchmarks/commands.py "front ner"     other commands, in quotes

Each command runs three times in a process of its own; the table shows the least of the three. Processor seconds depend
little on other work on the machine, apart from its effect on the caches.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

HEAVY = (
    "torch", "transformers", "ray", "mlflow", "optuna", "pandas", "sklearn", "scipy", "numba", "onnx",
    "onnxruntime",
)  # fmt: skip
RUNS = 3
CALLED = f"""
import atexit, json, resource, sys

def said():
    used = resource.getrusage(resource.RUSAGE_SELF)
    loaded = [name for name in {HEAVY} if name in sys.modules]
    print(json.dumps([used.ru_utime + used.ru_stime, loaded]), file=sys.stderr)

atexit.register(said)
from raykd.cli.main import main
main()
"""


def cost(words: list[str]) -> tuple[float, list[str]]:
    """Return the processor seconds of `raykd` with the arguments `words`, and the names of the heavy modules imported.

    Raises:
        RuntimeError: The command fails; the message has its output.
    """
    costs = []
    for _ in range(RUNS):
        process = subprocess.run([sys.executable, "-c", CALLED, *words], capture_output=True, text=True)
        if process.returncode:
            raise RuntimeError(f"raykd {shlex.join(words)}: {process.stderr}")
        costs.append(json.loads(process.stderr.splitlines()[-1]))
    return min(seconds for seconds, _ in costs), costs[0][1]


def main() -> None:
    """Print the table."""
    from raykd.cli.main import VERBS

    commands = [shlex.split(words) for words in sys.argv[1:]]
    for words in commands or [["--version"], ["--help"], *([verb, "--help"] for verb in VERBS)]:
        seconds, loaded = cost(words)
        print(f"{'raykd ' + shlex.join(words):<40} {seconds:6.2f} s   {' '.join(loaded)}", flush=True)


if __name__ == "__main__":
    main()
