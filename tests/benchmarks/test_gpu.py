"""The script of `make gpu`: its runner, and all its sections in their small form on the processor."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import psutil

from benchmarks.gpu_sections.runner import Place, Section, run_sections
from tests.patience import until


def write_folder(place: Place) -> None:
    print("its folder is empty:", not any(Path(place.folder).iterdir()))


def fail(place: Place) -> None:
    print("a figure")
    raise ValueError("this one fails")


def sleep(place: Place) -> None:
    print("started", subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]).pid)
    time.sleep(3600)


def test_a_section_that_fails_or_takes_too_long_says_why_and_leaves_the_others(tmp_path, capsys):
    sections = [
        Section("failing", 600, fail),
        Section("too slow", 10, sleep),
        Section("good", 600, write_folder),
    ]
    assert run_sections(sections, Place("cpu", small=True), tmp_path / "out") == ["failing", "too slow"]
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name for file in files] == ["1-failing.md", "2-too-slow.md", "3-good.md"]
    failing, slow, good = (file.read_text() for file in files)
    assert "a figure" in failing
    assert "ValueError: this one fails" in failing
    assert re.search(r"\*\*Stopped after \d+ s\*\*", slow)
    for started in re.findall(r"started (\d+)", slow):
        until(lambda started=started: not psutil.pid_exists(int(started)))
    assert good.startswith("## Good\n\nits folder is empty: True\n")
    assert capsys.readouterr().out == "".join(f"{text}\n" for text in (failing, slow, good))
