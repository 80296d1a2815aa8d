"""Nothing phones home: what each verb writes into an empty home folder, and where it connects to.

A module of startup code watches every Python process of a command. What a library does outside of Python is seen by the
files that it keeps: ONNX Runtime writes the id of the device before it reports anything.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import raykd
from raykd.cluster.environment import TELEMETRY_OFF, set_defaults, worker_variables
from tests.end_to_end.sweeps import conll_corpus, sweep_file
from tests.sweep.in_process import call, without_ray

ROOT = Path(__file__).parents[1]
WATCH = "RAYKD_TEST_WATCH"
STARTUP = f'''
import json, os, sys

def _write(*entry):
    with open(os.environ["{WATCH}"], "a") as file:
        file.write(json.dumps(entry) + "\\n")

def _watch(event, values):
    if event == "socket.connect" and not isinstance(values[1], (str, bytes)):
        _write(event, int(values[0].type), values[1][0])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname") and values[0]:
        _write(event, 0, values[0] if isinstance(values[0], str) else values[0].decode())

if "{WATCH}" in os.environ:
    _write("process", 0, sys.argv[0] if hasattr(sys, "argv") else "")
    sys.addaudithook(_watch)
'''
VERBS = """
import json, sys
from pathlib import Path
from raykd.cli.main import main

for words in json.loads(sys.argv[1]):
    print("verb", json.dumps(words))
    sys.argv = ["raykd", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            sys.exit(f"raykd {' '.join(words)} ended with {end.code}")
"""
LABELLER = """
from labeller import load
print([span.label for span in load(".")("Ada Lovelace lives in London .").words])
"""
CLOUD = {"169.254.169.254", "metadata.google.internal"}
"""Hosts that Ray's dashboard asks whether the machine is one of a cloud, whatever is set."""
NEEDED = ("PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Variables that a command gets. It does not get those of continuous integration and of pytest: libraries that see them
report nothing by themselves."""


@dataclass(frozen=True)
class Watch:
    """Commands in a separate home folder."""

    home: Path
    startup: Path
    log: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, folder: Path, *words: str) -> str:
        """The output of Python with these words in `folder`; it must succeed."""
        process = subprocess.run(
            [sys.executable, *words], cwd=folder, env=self.environment(), capture_output=True, text=True
        )
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    def environment(self) -> dict[str, str]:
        """The environment of such a command."""
        variables = {name: os.environ[name] for name in NEEDED if name in os.environ}
        return variables | {
            "HOME": str(self.home), "PYTHONPATH": f"{self.startup}{os.pathsep}{ROOT}", WATCH: str(self.log),
            "OMP_NUM_THREADS": "1", "RAYKD_CPUS": "2", **self.variables,
        }  # fmt: skip

    def processes(self) -> int:
        """The number of watched Python processes."""
        return sum(event == "process" for event, _, _ in self._entries())

    def connections(self) -> set[str]:
        """Foreign hosts looked up or connected to.

        Connecting a datagram socket sends nothing: Ray finds the address of this machine in this way.
        """
        local = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "::", socket.gethostname(), socket.getfqdn()}
        local |= {str(address[4][0]) for address in socket.getaddrinfo(socket.gethostname(), None)}
        return {
            host
            for event, kind, host in self._entries()
            if event != "process" and kind != socket.SOCK_DGRAM and host not in local
        }

    def files(self) -> set[str]:
        """Files in the home folder but raykd's cache."""
        files = {str(path.relative_to(self.home)) for path in self.home.rglob("*") if path.is_file()}
        return {name for name in files if not name.startswith(".cache/raykd/")}

    def _entries(self) -> list[tuple[str, int, str]]:
        return [tuple(json.loads(line)) for line in self.log.read_text().splitlines()]


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    """An empty home folder; raykd's compiled kernels are those of this machine, because they take a minute."""
    home, startup = tmp_path / "home", tmp_path / "startup"
    startup.mkdir()
    (startup / "sitecustomize.py").write_text(STARTUP)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "raykd"
    cache.mkdir(parents=True, exist_ok=True)
    (home / ".cache").mkdir(parents=True)
    (home / ".cache" / "raykd").symlink_to(cache, target_is_directory=True)
    return Watch(home, startup, tmp_path / "watched.log")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, empty_mlflow: Path) -> Path:
    """A folder with a corpus, and a sweep that has ended and was exported."""
    folder = tmp_path_factory.mktemp("folder")
    conll_corpus(folder / "corpus")
    shutil.copy(empty_mlflow, folder / "mlflow.db")
    changes = {"store": str(folder / "store"), "tracking": {"uri": f"sqlite:///{folder / 'mlflow.db'}"}}
    file = sweep_file(folder, **changes)
    with without_ray():
        call("sweep", str(file))
    call("export", "tiny#best", str(folder / "student"), "--store", str(folder / "store"))
    return folder


def test_the_watch_sees_files_lookups_and_connections(watch, tmp_path):
    """Otherwise the tests below would find nothing whatever a command did. Nothing is sent here."""
    events = (
        "import pathlib, socket, sys; stream, datagram = socket.socket(), socket.socket(type=socket.SOCK_DGRAM); "
        "sys.audit('socket.connect', stream, ('192.0.2.1', 443)); "
        "sys.audit('socket.connect', datagram, ('192.0.2.2', 80)); "
        "sys.audit('socket.getaddrinfo', 'example.invalid', 443, 0, 0, 0); "
        "pathlib.Path('~/device').expanduser().write_text('7')"
    )
    watch.run(tmp_path, "-c", events)
    assert watch.processes() == 1
    assert watch.connections() == {"192.0.2.1", "example.invalid"}
    assert watch.files() == {"device"}


def test_verbs_that_read_a_store(watch, folder):
    file, student = str(folder / "tiny.yaml"), str(folder / "student")
    (folder / "text.txt").write_text("Ada Lovelace lives in London .\n")
    verbs = [
        ["--version"],
        ["init", "corpus", "--out", "drafted.yaml", "--overwrite"],
        ["check", file],
        ["corpus", "show", file],
        ["watch", file],
        ["front", file],
        ["list", "store"],
        ["doctor", "store"],
        ["clean", "store", "--yes"],
        ["export", "tiny#best", "again", "--store", "store", "--overwrite"],
        ["predict", student, "text.txt", "--out", "labelled.jsonl", "--overwrite"],
        ["evaluate", student, "en=corpus/en/test.conll"],
    ]
    output = watch.run(folder, "-c", VERBS, json.dumps(verbs))
    assert output.count("\nverb ") + output.startswith("verb ") == len(verbs)
    assert watch.processes() >= 1
    assert watch.connections() == set()
    assert watch.files() == set()


def test_an_export_by_itself_and_inside_raykd(watch, folder):
    watch.run(folder / "student", "-c", LABELLER)
    watch.run(folder, "-c", "import raykd; raykd.load('student')('Ada lives in London .')")
    assert (watch.connections(), watch.files()) == (set(), set())


def test_a_server(watch, folder):
    words = ["-c", "from raykd.cli.main import main; main()", "serve", "student", "--port", "0"]
    server = subprocess.Popen(
        [sys.executable, *words], cwd=folder, env=watch.environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        body = json.dumps({"texts": ["Ada Lovelace lives in London ."]}).encode()
        request = urllib.request.Request(f"{address}/predict", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer)
        server.send_signal(signal.SIGINT)
        assert server.wait() == 0
    finally:
        server.kill()
        server.communicate()
    assert (watch.connections(), watch.files()) == (set(), set())


@pytest.mark.slow
def test_a_sweep_with_the_processes_of_ray(watch, tmp_path):
    tracking = {"uri": f"sqlite:///{tmp_path / 'mlflow.db'}"}
    sweep_file(tmp_path, store=str(tmp_path / "store"), tracking=tracking, search={"trials": 1})
    watch.run(tmp_path, "-c", VERBS, json.dumps([["sweep", "tiny.yaml"], ["plan", "tiny.yaml"]]))
    assert watch.processes() > 2, "the workers of Ray were not watched"
    assert watch.connections() <= CLOUD
    assert watch.files() == set()


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The environment without what this process was given; put back as it was."""
    for name in TELEMETRY_OFF:
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    yield monkeypatch
    for name in set(os.environ) - set(before):
        del os.environ[name]


def test_what_the_user_has_set_stays(settings):
    settings.setenv("MLFLOW_DISABLE_TELEMETRY", "false")
    set_defaults(TELEMETRY_OFF)
    assert {name: os.environ[name] for name in TELEMETRY_OFF} == {
        **TELEMETRY_OFF, "MLFLOW_DISABLE_TELEMETRY": "false",
    }  # fmt: skip


def test_workers_elsewhere_get_the_settings_of_the_driver_but_those_of_its_job(settings):
    job = {"runtime_env": {"env_vars": {"HF_HUB_DISABLE_TELEMETRY": "0"}}}
    settings.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", json.dumps(job))
    settings.setenv("RAY_USAGE_STATS_ENABLED", "1")
    set_defaults(TELEMETRY_OFF)
    settings.setattr("raykd.cluster.environment.RAY", {})
    expected = {**TELEMETRY_OFF, "RAY_USAGE_STATS_ENABLED": "1"}
    del expected["HF_HUB_DISABLE_TELEMETRY"]
    assert worker_variables() == expected


def test_the_labeller_switches_off_the_same(settings, folder):
    raykd.load(str(folder / "student"))
    assert os.environ["ORT_DISABLE_TELEMETRY"] == TELEMETRY_OFF["ORT_DISABLE_TELEMETRY"]


@pytest.mark.parametrize(("value", "calls"), [(None, 1), ("1", 1), ("0", 0)])
def test_so_is_a_runtime_that_was_imported_before(settings, folder, value, calls):
    told = []
    settings.setattr("onnxruntime.disable_telemetry_events", lambda: told.append(1))
    if value is not None:
        settings.setenv("ORT_DISABLE_TELEMETRY", value)
    raykd.load(str(folder / "student"))
    assert len(told) == calls


def test_every_switch_is_explained():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for name, value in TELEMETRY_OFF.items():
        assert f"`{name}={value}`" in text
