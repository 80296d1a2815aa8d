"""One driver at a time: a second is refused by the first's name, a dead one's place is taken, a displaced one stops."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import psutil
import pytest

from raykd.errors import StoreError
from raykd.storage import Storage
from raykd.sweep import lease as lease_module
from raykd.sweep.lease import NAME, Lease, held, refuse_if_held
from raykd.sweep.records import Record, SweepRecords
from tests.sweep.samples import trial

HOLDER = """
import sys, time
from raykd.storage import Storage
from raykd.sweep.lease import held
with held(Storage(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def fast(monkeypatch):
    """Beats of a tenth of a second."""
    monkeypatch.setattr(lease_module, "BEAT_S", 0.1)
    monkeypatch.setattr(lease_module, "STALE_S", 0.6)
    monkeypatch.setattr(lease_module, "SETTLE_S", 0.05)


@pytest.fixture(params=["local", "object store"])
def folder(request, tmp_path) -> Storage:
    if request.param == "local":
        return Storage(str(tmp_path / "sweeps/x"))
    remote = Storage("mock:///bucket")
    remote._system.create_dir("bucket/sweeps/x/trials")  # unlike S3, it wants its folders made
    return remote.child("sweeps", "x")


def elsewhere(folder: Storage, **more: object) -> None:
    """Lets the lease come from another machine."""
    plain = folder.read_json(NAME)
    folder.write_json(NAME, {**plain, "machine": "another", "host": "node-7", "process": 12, **more})


@pytest.fixture
def holder(tmp_path):
    """Another process of this machine that has the lease of tmp_path."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_driver_is_refused_by_the_first_ones_name_and_takes_its_place_once_it_is_killed(
    tmp_path, holder
):
    folder, started = Storage(str(tmp_path)), time.monotonic()
    with pytest.raises(
        StoreError, match=rf"process {holder.pid} on \S+ works on this sweep; wait for its end"
    ):
        Lease(folder).take()
    assert time.monotonic() - started < 5, "its process can be seen from here"
    holder.kill()
    while psutil.Process(holder.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    with held(folder):
        assert folder.read_json(NAME)["process"] == os.getpid()
    assert not folder.exists(NAME)


def test_a_holder_that_ends_leaves_nothing(tmp_path, holder):
    holder.communicate("")
    assert holder.returncode == 0
    assert not Storage(str(tmp_path)).exists(NAME)


def test_a_lease_of_another_machine_is_taken_when_it_does_not_change(fast, folder):
    Lease(folder).take()
    elsewhere(folder)
    notes: list[str] = []
    with held(folder, note=notes.append) as lease:
        lease.check()
    assert notes == ["the sweep has the lease of process 12 on node-7; waiting up to 1 s for a sign of it"]


def test_a_lease_of_another_machine_that_beats_is_respected(fast, folder):
    Lease(folder).take()
    elsewhere(folder)
    threading.Timer(0.2, lambda: elsewhere(folder, beats=9)).start()
    with pytest.raises(StoreError, match="process 12 on node-7 works on this sweep"):
        refuse_if_held(folder)


def test_of_two_that_take_it_at_once_one_has_it(fast, folder, monkeypatch):
    monkeypatch.setattr(lease_module, "refuse_if_held", lambda *_, **__: None)
    monkeypatch.setattr(lease_module, "SETTLE_S", 1.0)  # all six have written by then, on a busy machine too
    leases, refused = [Lease(folder) for _ in range(6)], []

    def take(lease: Lease) -> None:
        try:
            lease.take()
        except StoreError:
            refused.append(lease)

    threads = [threading.Thread(target=take, args=(lease,)) for lease in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 5
    (kept,) = (lease for lease in leases if lease not in refused)
    kept.check()


def test_a_driver_that_lost_its_lease_is_interrupted_and_writes_nothing_more(fast, folder, monkeypatch):
    # No beat is on its way while the other takes the lease, on a busy machine too.
    monkeypatch.setattr(lease_module, "BEAT_S", 1.0)
    monkeypatch.setattr(lease_module, "STALE_S", 6.0)
    records = SweepRecords(folder, "x")
    records.folder = folder
    started = time.monotonic()

    def drive() -> None:
        with held(folder) as lease:
            records.lease = lease
            records.save(Record(trial(0), {}))
            elsewhere(folder, token="other")
            with pytest.raises(StoreError, match="lost the sweep to process 12 on node-7"):
                records.save(Record(trial(1), {}))
            with pytest.raises(StoreError, match="lost"):
                records.save_file("front.html", b"")
            time.sleep(20)

    with pytest.raises(StoreError, match="this driver has lost the sweep to process 12 on node-7"):
        drive()
    assert time.monotonic() - started < 10
    assert [record.trial.number for record in records.load()] == [0]
    assert folder.read_json(NAME)["token"] == "other", "the other's lease stays"


def test_no_beat_comes_after_the_release(fast, folder):
    for _ in range(20):
        with held(folder):
            time.sleep(0.1)
        assert not folder.exists(NAME)
    time.sleep(0.3)
    assert not folder.exists(NAME)


def test_a_store_out_of_reach_for_a_beat_costs_nothing(fast, tmp_path, monkeypatch):
    folder = Storage(str(tmp_path))
    with held(folder) as lease:
        with pytest.MonkeyPatch.context() as away:
            away.setattr(
                Storage, "read_json", lambda *_, **__: (_ for _ in ()).throw(StoreError("a", "b", "c"))
            )
            time.sleep(0.4)
        time.sleep(0.3)
        lease.check()
        assert folder.read_json(NAME)["beats"] > 2


def test_a_damaged_lease_is_named(fast, tmp_path):
    folder = Storage(str(tmp_path))
    Lease(folder).take()
    (tmp_path / NAME).write_text("{")
    with pytest.raises(StoreError, match=r"lease.json: is damaged"):
        Lease(folder).take()
