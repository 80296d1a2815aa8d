"""raykd installed: what it asks for, what `make` installs, and a wheel that works away from the checkout."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import raykd
from tests.end_to_end.sweeps import conll_corpus, sweep_file

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FAKE_PYTHON = """#!/bin/sh
echo "$*" >> "$LOG"
case "$1 $2" in
    "-c import"*) exit ${TOO_OLD:-0} ;;
    "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
esac
"""


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


@pytest.mark.parametrize("extra", ["", *PROJECT["optional-dependencies"]])
def test_what_is_tested_is_in_the_ranges_that_are_asked_for(extra):
    listed = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    requirements = [Requirement(line) for line in listed]
    for requirement in requirements:
        if requirement.name == PROJECT["name"]:
            assert requirement.extras <= set(PROJECT["optional-dependencies"])
        else:
            assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)]), requirement
    if extra not in ("dev", "docs", "benchmarks"):  # which nobody needs to use raykd
        assert [
            requirement.name for requirement in requirements if ">=" not in str(requirement.specifier)
        ] == []


@pytest.mark.parametrize("order", [("demo", "dev"), ("dev", "demo"), ("docs", "demo")])
def test_make_installs_each_set_once_in_any_order(tmp_path, order):
    folder, log = checkout(tmp_path), tmp_path / "log"
    for name in order:
        subprocess.run(make(tmp_path, f".venv/.ready-{name}"), cwd=folder, check=True, env=environment(log))
    installed = [line.split()[-1] for line in log.read_text().splitlines() if line.startswith("-m pip")]
    assert installed == [".", ".[dev]"] if order[0] == "demo" else [f".[{order[0]}]"]


def test_nothing_asks_for_the_metadata_that_a_checkout_without_installation_lacks():
    for path in (ROOT / "raykd").rglob("*.py"):
        assert not re.search(r"version\(.raykd.\)", path.read_text(encoding="utf-8")), path


def test_make_refuses_another_python_by_name(tmp_path):
    folder, log = checkout(tmp_path), tmp_path / "log"
    command = make(tmp_path, ".venv/.ready-demo")
    process = subprocess.run(
        command, cwd=folder, env=environment(log, TOO_OLD="1"), capture_output=True, text=True
    )
    assert process.returncode
    assert f"needs Python 3.11, 3.12 or 3.13, and '{tmp_path}/python' is none" in process.stderr
    assert not (folder / ".venv").exists()


def checkout(tmp_path: Path) -> Path:
    """A folder for make with a Python that only logs arguments."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    (tmp_path / "python").write_text(FAKE_PYTHON)
    (tmp_path / "python").chmod(0o755)
    return folder


def make(tmp_path: Path, target: str) -> list[str]:
    return ["make", "--silent", f"PYTHON={tmp_path / 'python'}", target]


def environment(log: Path, **more: str) -> dict[str, str]:
    """Without the options of the `make` that may have started the tests."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return {**variables, "LOG": str(log), **more}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel made by `python -m build` from a copy of the checkout, by way of the source distribution."""
    try:
        importlib.metadata.version("build")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package build is absent: pip install -c constraints.txt -e '.[dev]'")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    # What an earlier build left in a checkout would be packed again.
    shutil.copytree(ROOT / "raykd", source / "raykd", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    process = subprocess.run(command, capture_output=True, text=True, cwd=out)
    assert process.returncode == 0, process.stdout + process.stderr
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and, below it, the packages of this one without the checkout."""
    folder = tmp_path_factory.mktemp("programs")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    programs = folder / "venv" / "bin"
    target = subprocess.run(
        [programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    command = ["-m", "pip", "--python", programs / "python", "install", "--no-deps", "--no-index", "--quiet"]
    # pip installs nothing where it finds this version on the path: in the checkout, or in what comes below.
    subprocess.run([sys.executable, *command, str(wheel)], check=True, env=without_checkout())
    # The checkout is on this environment's path by a file of the same kind, which is not read from there.
    Path(target, "below.pth").write_text(sysconfig.get_path("purelib"))
    return programs


def without_checkout() -> dict[str, str]:
    """The environment without the path that the tests of Ray's workers set."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def call(programs: Path, folder: Path, *words: str) -> str:
    """The output of `raykd …` of that environment in `folder`; it must succeed."""
    variables = without_checkout() | {"RAYKD_CPUS": "2", "OMP_NUM_THREADS": "1", "COLUMNS": "140"}
    process = subprocess.run(
        [programs / "raykd", *words], cwd=folder, env=variables, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_a_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    files = [path for path in (ROOT / "raykd").rglob("*") if path.is_file()]
    package = {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        entries = next(name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "raykd = raykd.cli.main:main" in archive.read(entries).decode()
        assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())
    assert packed == package
    assert {"raykd/py.typed", "raykd/serving/labeller/__init__.py", "raykd/report/assets/page.js"} <= packed


def test_the_command_of_a_wheel_reads_no_checkout(programs, tmp_path):
    command = [programs / "python", "-c", "import raykd; print(raykd.__file__)"]
    process = subprocess.run(
        command, cwd=tmp_path, env=without_checkout(), check=True, capture_output=True, text=True
    )
    assert Path(process.stdout.strip()).is_relative_to(programs.parent)
    conll_corpus(tmp_path / "corpus")
    assert call(programs, tmp_path, "--version") == f"raykd {raykd.__version__}\n"
    assert "sweep.yaml is written, task ner" in call(programs, tmp_path, "init", "corpus")
    assert "sweep.yaml is valid" in call(programs, tmp_path, "check", "sweep.yaml")


@pytest.mark.slow
def test_a_wheel_sweeps_exports_and_labels(programs, tmp_path):
    sweep_file(tmp_path, search={"trials": 1}, tracking={"uri": "sqlite:///mlflow.db"})
    call(programs, tmp_path, "sweep", "tiny.yaml")
    call(programs, tmp_path, "export", "tiny#best", "student", "--store", "store")
    (tmp_path / "text.txt").write_text("Ada Lovelace lives in London .\n")
    call(programs, tmp_path, "predict", "student", "text.txt", "--out", "labelled.jsonl")
    (sentence,) = map(json.loads, (tmp_path / "labelled.jsonl").read_text().splitlines())
    assert sentence["text"] == "Ada Lovelace lives in London ."
