"""Precompute on a real Ray: killed drivers and actors, a full disk, and what is computed again afterwards."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pytest
import ray

from raykd.errors import PlacementError, StoreError
from raykd.signals import Need
from raykd.storage.store import Storage
from raykd.transfer import TeacherRows, TransferSet, signal_id
from tests.long import of_make_chaos
from tests.patience import until
from tests.precompute.precompute_driver import NEEDS, SHARD, SHARDS, TEACHERS, run, texts
from tests.transfer.samples import Source

ROOT = Path(__file__).parents[2]
SHARD_FILES = 2 * SHARDS * len(TEACHERS) + len(TEACHERS)
FIRST = {(name, 0) for name in TEACHERS}
"""Asked once more, for what is stored once per teacher."""
ALL_ROWS = {(name, row) for name in TEACHERS for row in range(SHARD * SHARDS)}


def shards(store: Path) -> dict[Path, tuple[int, int]]:
    """All committed shards, with what changes when it is written again."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in store.rglob("shard-*.arrow")}


def log_of(store: Path) -> list[dict]:
    """The sentences requested of teachers, call by call."""
    log = store.parent / "asked.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def asked(store: Path) -> Counter:
    """Requests per teacher and sentence."""
    return Counter((line["teacher"], row) for line in log_of(store) for row in line["rows"])


def rows_with(signal: str, store: Path) -> set[tuple[str, int]]:
    """The sentences with a committed shard of the signal."""
    ids = {name: signal_id(Need(signal), teacher_id=name, text_id=text.id) for name, text in texts().items()}
    return {
        (name, row)
        for name, shard_rows in ids.items()
        for path in (store / "transfer" / shard_rows).rglob("shard-*.arrow")
        for row in range(*map(int, path.stem.split("-")[1:]))
    }


def assert_whole(store: Path) -> None:
    """All shards are committed, and every sentence of every teacher can be gathered."""
    rows = SHARD * SHARDS
    covered = [
        TeacherRows(Source.of(name, text, NEEDS), np.arange(place * rows, (place + 1) * rows))
        for place, (name, text) in enumerate(texts().items())
    ]
    opened = TransferSet.open(Storage(str(store)), covered, NEEDS)
    assert len(shards(store)) == SHARD_FILES
    assert opened.gather(np.arange(rows * len(covered))).chain.batch == rows * len(covered)


def kill_a_driver(store: Path, *, after: int) -> None:
    """Start an endless precompute, kill it once `after` shards are committed, and wait for its actors to end."""
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-m", "tests.precompute.precompute_driver", address, str(store)]
    driver = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        until(lambda: len(shards(store)) >= after or driver.poll() is not None)
        assert driver.poll() is None, driver.stderr.read()
        driver.send_signal(signal.SIGKILL)
    finally:
        driver.kill()
        driver.communicate()
    actors = {line["pid"] for line in log_of(store)}
    until(lambda: not any(psutil.pid_exists(pid) for pid in actors))


@pytest.fixture
def store(tmp_path) -> Path:
    return tmp_path / "store"


@pytest.mark.slow
def test_after_a_killed_driver_only_missing_shards_are_computed(ray_cluster, store):
    kill_a_driver(store, after=8)
    remaining, before, rows = shards(store), asked(store), rows_with("emissions", store)
    assert 8 <= len(remaining) < SHARD_FILES
    assert not list(store.rglob("manifest.json"))
    computed, reported = run(store, "healthy")
    assert remaining.items() <= shards(store).items(), "a committed shard was written again"
    repeated = asked(store) - before
    assert set(repeated) - FIRST == ALL_ROWS - rows - FIRST
    assert max(count for row, count in repeated.items() if row not in FIRST) == 1
    assert 0 < computed < SHARDS * len(TEACHERS)
    assert reported == [SHARD] * computed
    assert_whole(store)


def test_too_few_cpus_are_refused_with_the_arithmetic(ray_cluster, store):
    store.parent.mkdir(exist_ok=True)
    with pytest.raises(PlacementError, match=r"9 × \{CPU: 0\.5\}, and the nodes are 1 × \{CPU: 4\}"):
        run(store, "healthy", actors=9)


@pytest.mark.slow
def test_the_cpus_of_slots_that_sleep_are_used(full_ray_cluster, store):
    store.parent.mkdir(exist_ok=True)
    computed, _ = run(store, "healthy", slots_asleep=True)
    assert computed == SHARDS * len(TEACHERS)
    assert_whole(store)


@of_make_chaos
def test_a_full_disk_and_a_killed_actor(ray_cluster, store):
    with pytest.raises(StoreError, match="no space left on device") as full:
        run(store, "disk-full")
    assert "shard-00000012-00000016.arrow" in str(full.value)
    finished = len(rows_with("kbest", store)) // SHARD
    assert finished, "no shard was finished before the disk was full"
    computed, _ = run(store, "actor-dies")
    assert (store.parent / "actor-died").exists()
    # What was finished before the disk was full is kept.
    assert 0 < computed <= SHARDS * len(TEACHERS) - finished
    counts = asked(store)
    assert set(counts) == ALL_ROWS
    # Asked before the disk was full, before the actor was killed, and by the actor that took its place.
    assert counts["de", 13] == 3
    assert run(store, "healthy") == (0, [])
    assert_whole(store)
