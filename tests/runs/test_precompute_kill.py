"""Precompute on a real Ray: killed drivers and actors, a full disk, and what is computed again afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import psutil

from raykd.signals import Need
from raykd.storage import Storage
from raykd.transfer import TransferSet, signal_ids

from .precompute_driver import SHARD, SHARDS, TEACHERS, texts

ROOT = Path(__file__).parents[2]
SHARD_FILES = 2 * SHARDS * len(TEACHERS) + len(TEACHERS)


def start(store: Path, *scenarios: str) -> subprocess.Popen:
    """The driver as a process of its own, with one thread each for the arithmetic."""
    command = [sys.executable, "-m", "tests.runs.precompute_driver", str(store), *scenarios]
    quiet = {"RAY_AUTH_MODE": "disabled", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=ROOT, env=os.environ | quiet, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outcomes(store: Path, *scenarios: str) -> list[dict]:
    """What each scenario came to."""
    driver = start(store, *scenarios)
    family: set[psutil.Process] = set()
    try:
        while driver.poll() is None:
            family |= children(driver.pid)
            time.sleep(1)
        out, complaints = driver.communicate()
    finally:
        driver.kill()
        bury(family)
    told = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert len(told) == len(scenarios), complaints
    return told


def children(pid: int) -> set[psutil.Process]:
    """Every process that descends from `pid`."""
    try:
        return set(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return set()


def bury(family: set[psutil.Process]) -> None:
    """Wait until they are gone. Ray ends its processes with their driver, a straggler is ended here by its id."""
    _, alive = psutil.wait_procs(family, timeout=8)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=10)


def shards(store: Path) -> dict[Path, tuple[int, int]]:
    """Every committed shard, with what changes when it is written again."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in store.rglob("shard-*.arrow")}


def asked(store: Path) -> Counter:
    """How often a teacher was asked for a sentence."""
    log = store.parent / "asked.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return Counter((line["teacher"], row) for line in lines for row in line["rows"])


def rows_with_emissions(store: Path) -> set[tuple[str, int]]:
    """The sentences whose emission shard is committed."""
    folders = {
        name: store / "transfer" / signal_ids(name, text.id)["emissions"] for name, text in texts().items()
    }
    return {
        (name, row)
        for name, folder in folders.items()
        for path in folder.glob("shard-*.arrow")
        for row in range(*map(int, path.stem.split("-")[1:]))
    }


def assert_whole(store: Path) -> None:
    """Every shard stands, and every sentence of every teacher can be gathered."""
    needs = [Need("emissions"), Need("transitions"), Need("kbest", 2)]
    ids = [signal_ids(name, text.id) for name, text in texts().items()]
    sources = [type("Source", (), {"signals": signals})() for signals in ids]
    rows = SHARD * SHARDS
    covered = [(source, np.arange(place * rows, (place + 1) * rows)) for place, source in enumerate(sources)]
    opened = TransferSet.open(Storage(str(store)), covered, needs)
    assert len(shards(store)) == SHARD_FILES
    assert opened.gather(np.arange(rows * len(sources))).chain.batch == rows * len(sources)


def test_a_killed_driver_loses_nothing_and_only_missing_shards_are_computed(tmp_path):
    store = tmp_path / "store"
    driver = start(store, "healthy")
    try:
        deadline = time.monotonic() + 120
        while len(shards(store)) < 8 and driver.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        family = children(driver.pid)
        driver.send_signal(signal.SIGKILL)
        driver.wait(30)
        bury(family)
    finally:
        driver.kill()
        driver.communicate()
    standing, before, done = shards(store), asked(store), rows_with_emissions(store)
    assert 8 <= len(standing) < SHARD_FILES
    assert not list(store.rglob("manifest.json"))

    (rerun,) = outcomes(store, "healthy")
    assert standing.items() <= shards(store).items()
    again = asked(store) - before
    assert set(again) == {(name, row) for name in TEACHERS for row in range(SHARD * SHARDS)} - done
    assert max(again.values()) == 1
    assert [(done, total) for done, total, *_ in rerun["told"]] == [
        (number + 1, rerun["computed"]) for number in range(rerun["computed"])
    ]
    assert rerun["computed"] < SHARDS * len(TEACHERS)
    assert_whole(store)


def test_dead_actors_full_disks_and_too_few_cpus(tmp_path):
    store = tmp_path / "store"
    refused, full, died, idle = outcomes(store, "too-many-actors", "disk-full", "actor-dies", "healthy")

    assert refused["error"] == "PlacementError"
    assert "9 × 1 CPU = 9 of 2" in refused["message"]

    assert full["error"] == "StoreError"
    assert "no space left on device" in full["message"]
    assert "shard-00000012-00000016.arrow" in full["message"]
    assert full["told"], "no shard was finished before the disk was full"

    # The actor was killed at this row before it could commit it, so it is asked for a third time.
    assert "error" not in died
    assert 0 < died["computed"] <= SHARDS * len(TEACHERS) - len(full["told"])
    counts = asked(store)
    assert set(counts) == {(name, row) for name in TEACHERS for row in range(SHARD * SHARDS)}
    assert counts["de", 13] == 3
    assert (store.parent / "accident-happened").exists()
    assert idle["computed"] == 0
    assert_whole(store)
