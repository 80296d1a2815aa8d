"""One student through the real commands: a full disk, then one worker, then two of which one is killed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.end_to_end.command import ROOT, Command, run, running, stamps
from tests.end_to_end.sweeps import TREE, sweep_file
from tests.long import of_make_chaos
from tests.stored import stored

pytestmark = pytest.mark.slow
KEPT = 2
FULL_DISK = f"""
import errno, os, pathlib
replace = os.replace

def full(source, target, **options):
    target = pathlib.Path(target)
    if target.name.startswith("shard-"):
        (transfer,) = (folder for folder in target.parents if folder.name == "transfer")
        if len(list(transfer.glob("**/shard-*"))) >= {KEPT}:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    replace(source, target, **options)

os.replace = full
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    # Without dropout, which every worker draws for itself, the number of workers changes nothing but rounding.
    exact = {**TREE["training"], "dropout": 0.0}
    return sweep_file(tmp_path_factory.mktemp("distill"), training=exact)


@pytest.fixture(scope="module")
def refused(path, ray_cluster):
    """Run `precompute` on a disk that is full after some shards; return its end, and the files in the store."""
    trap = path.parent / "trap"
    trap.mkdir()
    (trap / "sitecustomize.py").write_text(FULL_DISK)
    ended = run(path.parent, "precompute", str(path), RAY_ADDRESS=ray_cluster, PYTHONPATH=f"{trap}:{ROOT}")
    return ended, stamps(path.parent / "store", "teachers", "transfer")


@pytest.fixture(scope="module")
def alone(path, refused, ray_cluster):
    """`distill` with one worker, in the store that the full disk left."""
    return run(path.parent, "distill", str(path), RAY_ADDRESS=ray_cluster)


def result_in(store: Path) -> dict:
    (path,) = (store / "runs").glob("*/result.json")
    return stored(path)


def test_a_full_disk_is_reported_and_what_is_computed_stays(refused):
    ended, remaining = refused
    assert ended.code == 4, ended.output
    assert "no space left on device" in ended.err
    assert "shard-" in ended.err
    assert "Traceback" not in ended.output
    assert sum(name.endswith("result.json") for name in remaining) == 2, "both teachers are kept"
    assert sum("/shard-" in name for name in remaining) == KEPT
    assert not any(name.endswith("manifest.json") for name in remaining)


def test_one_worker_goes_on_from_there(path, refused, alone):
    assert alone.code == 0, alone.output
    assert "teachers: done, 0 trained, 2 found in the store" in alone.out
    assert "best epoch" in alone.out
    assert "Next: raykd sweep" in alone.out
    assert alone.err == ""
    assert refused[1].items() <= stamps(path.parent / "store", "teachers", "transfer").items()


def kill_one(command: Command, store: Path) -> bool:
    """Kill one of the workers that train, once there is a checkpoint to go on from."""
    workers = command.named("ray::RayTrainWorker")
    if len(workers) < 2 or not list((store / "runs").glob("*/checkpoint.pt")):
        return False
    workers[-1].kill()
    return True


@of_make_chaos
def test_two_workers_of_which_one_is_killed_end_where_one_does(path, alone, tmp_path, ray_cluster):
    store = tmp_path / "store"
    shutil.copytree(path.parent / "store", store, ignore=shutil.ignore_patterns("runs"))
    before = stamps(store, "teachers", "transfer")
    words = (
        "--set",
        "resources.workers=2",
        "--set",
        "resources.cpus_per_worker=0.5",
        "--set",
        f"store={store}",
    )
    with running(tmp_path, "distill", str(path), *words, RAY_ADDRESS=ray_cluster) as command:
        command.until(lambda: kill_one(command, store))
        ended = command.end()
    assert ended.code == 0, ended.output
    assert stamps(store, "teachers", "transfer") == before
    several, single = result_in(store), result_in(path.parent / "store")
    assert (several["workers"], single["workers"]) == (2, 1)
    assert several["run_id"] == single["run_id"]
    for part in ("dev", "test"):
        several_value, single_value = several["scores"][part]["source"], single["scores"][part]["source"]
        assert several_value["mean"] == pytest.approx(single_value["mean"], abs=1e-3)
    for several_value, single_value in zip(several["epochs"], single["epochs"], strict=True):
        assert several_value["loss"] == pytest.approx(single_value["loss"], rel=1e-3)
        assert several_value["epoch"] == single_value["epoch"]
