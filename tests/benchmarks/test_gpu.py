"""The script of `make gpu`: its runner, and all its sections in their small form on the processor."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from benchmarks.gpu_sections.runner import Place, Section, run_sections
from raykd.cluster.placement import Placements, preflight
from raykd.cluster.topology import Topology
from raykd.recipes.resources import Resources
from tests.patience import until

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SECTIONS = ("device", "equality", "times", "waits", "models", "sweeps", "ray-train", "resumption")


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


@pytest.fixture
def script_imports(monkeypatch):
    """Make benchmarks/ importable, as the scripts import modules by bare names."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_all_sections_together_take_at_most_eight_minutes(script_imports):
    import gpu

    assert [section.name.lower().replace(" ", "-") for section in gpu.SECTIONS] == list(SECTIONS)
    assert sum(section.limit_s for section in gpu.SECTIONS) <= 8 * 60


def test_the_roles_of_the_sweeps_fit_one_gpu(script_imports):
    from gpu_sections.sweeps import ROLES

    resources = Resources.model_validate({"concurrency": 1, **ROLES})
    assert preflight(resources, Topology.of({"CPU": 4.0, "GPU": 1.0})) == Placements(1, 1, 1)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_all_sections_run_to_their_end_in_small_on_the_processor(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    environment |= {
        "PYTHONPATH": str(BENCHMARKS.parent), "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "1200",
    }  # fmt: skip
    command = [sys.executable, str(BENCHMARKS / "gpu.py"), "--small", "--patience", "100"]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    files = sorted((tmp_path / "build/gpu").iterdir())
    assert [file.name for file in files] == [f"{n}-{name}.md" for n, name in enumerate(SECTIONS, 1)]
    for file in files:
        text = file.read_text()
        assert re.search(r"^\| .* \|$", text, re.MULTILINE), file.name
        assert text in ended.stdout
    waits, resumption = files[3].read_text(), files[7].read_text()
    assert re.findall(r"^\| (?!a step|a fine|---)[^|]* \| (\d+) \|", waits, re.MULTILINE) == ["1", "1", "1"]
    assert resumption.count("equal bit by bit") == 4
    assert "Weights: equal bit by bit." in files[6].read_text()
