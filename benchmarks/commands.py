"""What the command costs before it has said anything: processor seconds of each verb, and its heavy modules.

    python benchmarks/commands.py                 --version, --help, and the help of each verb
    python benchmarks/commands.py "front ner"     others, in quotes

Each runs three times in a process of its own; the least of the three counts. Seconds of the processor are those of a
quiet machine also on a busy one, but for its caches.
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
    """Processor seconds of `raykd` with these words, and the heavy modules that it imports.

    Raises:
        RuntimeError: it does not end well.
    """
    found = []
    for _ in range(RUNS):
        done = subprocess.run([sys.executable, "-c", CALLED, *words], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"raykd {shlex.join(words)}: {done.stderr}")
        found.append(json.loads(done.stderr.splitlines()[-1]))
    return min(seconds for seconds, _ in found), found[0][1]


def main() -> None:
    """Print the table."""
    from raykd.cli.main import VERBS

    given = [shlex.split(each) for each in sys.argv[1:]]
    for words in given or [["--version"], ["--help"], *([verb, "--help"] for verb in VERBS)]:
        seconds, loaded = cost(words)
        print(f"{'raykd ' + shlex.join(words):<40} {seconds:6.2f} s   {' '.join(loaded)}", flush=True)


if __name__ == "__main__":
    main()
