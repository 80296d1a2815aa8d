"""A whole sweep over text of any size: seconds of each phase, and the memory of the driver and of the actors.

    python benchmarks/sweep_at_scale.py                     20,000 and 200,000 sentences (some minutes)
    python benchmarks/sweep_at_scale.py 200000 2000000      other sizes

The corpus is that of `benchmarks/text.py`: four languages, half of the sentences without tags. One small teacher and
one small student are trained for a few hundred steps, since memory is the question. Every sentence goes through the
teacher, and is encoded for the student.

Memory is the peak over all processes of a kind, in MiB: `own` (pages of no file) and `resident` (with pages of mapped
files, which processes share and the system takes back when it needs them). Ray's workers take about 350 MiB for Python
and its libraries. Linux only.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from text import LANGUAGES, MIB, make

SWEEP = """\
name: scale
task: ner
corpus:
  source: conll
  root: {corpus}
  languages: [{languages}]
  train: "{{lang}}.train"
  dev: "{{lang}}.dev"
  test: "{{lang}}.test"
  unlabelled: "{{lang}}.unlabelled"
  dev_cap: 500
  test_cap: 500
teachers: {{kind: bilstm_crf, scope: all, embedding_dim: 16, hidden_dim: 16, character_dim: 0, max_steps: 300}}
student: {{kind: bilstm, embedding_dim: 16, hidden_dim: 16, vocabulary: {{kind: wordpiece, size: 8000}}}}
objective: {{kind: structural}}
schedule: {{max_steps: 300, anneal_horizon: 1}}
search: {{trials: 1}}
store: {store}
tracking: {{uri: "sqlite:///{folder}/mlflow.db"}}
"""
PHASES = ("teachers", "precompute", "latency", "trials")


class Memory:
    """Peak memory in KiB by kind of process, sampled twice a second: anonymous, and resident."""

    def __init__(self, driver: int):
        self.driver, self.peaks = driver, dict[str, tuple[int, int]]()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> dict[str, tuple[int, int]]:
        self._ended.set()
        self._thread.join()
        return self.peaks

    def _watch(self) -> None:
        while not self._ended.wait(0.5):
            for kind, pid in processes(self.driver):
                try:
                    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                except OSError:
                    continue  # the process has ended
                kib_by_field = {
                    name: int(kib) for name, kib in re.findall(r"^(\w+): +(\d+) kB", rollup, re.MULTILINE)
                }
                anonymous, resident = self.peaks.get(kind, (0, 0))
                self.peaks[kind] = (
                    max(anonymous, kib_by_field["Anonymous"]),
                    max(resident, kib_by_field["Rss"]),
                )


def processes(driver: int) -> Iterator[tuple[str, int]]:
    """Yield kind and process id of the processes of the sweep."""
    yield "driver", driver
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            # Ray puts the running task into the title of a worker.
            if title.startswith("ray::") and "IDLE" not in title:
                yield "precompute actor" if "Map" in title else "trial actor", int(folder.name)


def measure(sentences: int, folder: Path) -> dict[str, float]:
    make(folder / "corpus", sentences)
    settings = {"corpus": folder / "corpus", "store": folder / "store", "folder": folder}
    (folder / "sweep.yaml").write_text(SWEEP.format(languages=", ".join(LANGUAGES), **settings))
    started, begun = time.monotonic(), dict[str, float]()
    command = [
        sys.executable,
        "-c",
        "from raykd.cli.main import main; main()",
        "sweep",
        str(folder / "sweep.yaml"),
    ]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=folder, **streams) as sweep:
        memory, lines = Memory(sweep.pid), []
        for line in sweep.stdout or ():
            lines.append(line)
            phase = line.partition(":")[0]
            if phase in PHASES:
                begun.setdefault(phase, time.monotonic())
                begun[f"{phase} ended"] = time.monotonic()
    peaks = memory.end()
    if sweep.returncode:
        raise SystemExit("".join(lines))
    seconds = {phase: begun[f"{phase} ended"] - begun[phase] for phase in PHASES if phase in begun}
    figures: dict[str, float] = {"reading": begun["teachers"] - started, **seconds}
    figures["sentences/s through the teacher"] = sentences / seconds["precompute"]
    for kind, (anonymous, resident) in sorted(peaks.items()):
        figures |= {f"{kind}, own": anonymous * 1024 / MIB, f"{kind}, resident": resident * 1024 / MIB}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sentences", type=int, nargs="*", default=[20_000, 200_000])
    columns = {}
    for count in parser.parse_args().sentences:
        with tempfile.TemporaryDirectory(prefix="raykd-scale-") as folder:
            columns[count] = measure(count, Path(folder))
    names = dict.fromkeys(name for figures in columns.values() for name in figures)
    print(f"{'':36s}" + "".join(f"{count:>14,}" for count in columns))
    for name in names:
        print(
            f"{name:36s}"
            + "".join(f"{figures.get(name, float('nan')):14,.0f}" for figures in columns.values())
        )


if __name__ == "__main__":
    main()
