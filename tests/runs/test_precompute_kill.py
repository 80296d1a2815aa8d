"""Precompute on a real Ray: killed drivers and actors, a full disk, and what is computed again afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from raykd.signals import Need
from raykd.storage import Storage
from raykd.transfer import TransferSet, signal_ids

from .precompute_driver import SHARD, SHARDS, TEACHERS, texts

# Two Rays are started: on a machine that is busy with other work that alone can take minutes.
pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
SHARD_FILES = 2 * SHARDS * len(TEACHERS) + len(TEACHERS)


def start(*scenes: tuple[Path, str]) -> subprocess.Popen:
    """The driver as a process of its own, with one thread each for the arithmetic."""
    told = [f"{store}={scenario}" for store, scenario in scenes]
    command = [sys.executable, "-m", "tests.runs.precompute_driver", *told]
    quiet = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=ROOT, env=os.environ | quiet, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outcomes(*scenes: tuple[Path, str]) -> list[dict]:
    """What each scenario came to, all of them on one Ray."""
    driver = start(*scenes)
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
    assert len(told) == len(scenes), complaints
    return told


def children(pid: int) -> set[psutil.Process]:
    """Every process that descends from `pid`."""
    try:
        return set(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return set()


def bury(family: set[psutil.Process]) -> None:
    """Wait until they are gone: Ray ends them with their driver. Agents that linger are ended here."""
    _, alive = psutil.wait_procs(family, timeout=3)
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


@dataclass(frozen=True)
class Killed:
    """A store as a killed driver left it."""

    store: Path
    shards: dict[Path, tuple[int, int]]
    manifests: int
    asked: Counter
    rows: set[tuple[str, int]]


def kill_a_driver(store: Path, *, after: int) -> Killed:
    """Start a precompute and kill its driver once `after` shards are committed."""
    driver = start((store, "healthy"))
    try:
        deadline = time.monotonic() + 200
        while len(shards(store)) < after and driver.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        family = children(driver.pid)
        driver.send_signal(signal.SIGKILL)
        driver.wait(30)
        bury(family)
    finally:
        driver.kill()
        driver.communicate()
    manifests = len(list(store.rglob("manifest.json")))
    return Killed(store, shards(store), manifests, asked(store), rows_with_emissions(store))


@dataclass(frozen=True)
class Story:
    """A killed precompute and its rerun; beside it a store that meets with every other accident in turn."""

    killed: Killed
    rerun: dict
    other: Path
    refused: dict
    full: dict
    died: dict
    idle: dict


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Story:
    # Starting Ray is what costs time here: one start to be killed, one for all that follows.
    killed = kill_a_driver(tmp_path_factory.mktemp("killed") / "store", after=8)
    other = tmp_path_factory.mktemp("other") / "store"
    accidents = ("too-many-actors", "disk-full", "actor-dies", "healthy")
    told = outcomes((killed.store, "healthy"), *((other, accident) for accident in accidents))
    return Story(killed, told[0], other, *told[1:])


ALL_ROWS = {(name, row) for name in TEACHERS for row in range(SHARD * SHARDS)}


def test_after_a_killed_driver_only_missing_shards_are_computed(story):
    killed = story.killed
    assert 8 <= len(killed.shards) < SHARD_FILES
    assert killed.manifests == 0
    assert killed.shards.items() <= shards(killed.store).items(), "a committed shard was written again"
    again = asked(killed.store) - killed.asked
    assert set(again) == ALL_ROWS - killed.rows
    assert max(again.values()) == 1
    assert_whole(killed.store)


def test_progress_is_told_shard_by_shard(story):
    computed = story.rerun["computed"]
    assert 0 < computed < SHARDS * len(TEACHERS)
    assert story.rerun["told"] == [[number + 1, computed, SHARD] for number in range(computed)]


def test_too_few_cpus_are_refused_with_the_arithmetic(story):
    assert story.refused["error"] == "PlacementError"
    assert "9 × 1 CPU = 9 of 2" in story.refused["message"]


def test_a_full_disk_comes_out_of_the_actor_as_a_store_error(story):
    assert story.full["error"] == "StoreError"
    assert "no space left on device" in story.full["message"]
    assert "shard-00000012-00000016.arrow" in story.full["message"]
    assert story.full["told"], "no shard was finished before the disk was full"


def test_a_killed_actor_is_replaced_and_its_shard_computed_again(story):
    assert "error" not in story.died
    assert (story.other.parent / "accident-happened").exists()
    # What was finished before the disk was full is kept.
    assert 0 < story.died["computed"] <= SHARDS * len(TEACHERS) - len(story.full["told"])
    counts = asked(story.other)
    assert set(counts) == ALL_ROWS
    # Asked before the disk was full, before the actor was killed, and by the actor that took its place.
    assert counts["de", 13] == 3
    assert story.idle["computed"] == 0
    assert_whole(story.other)
