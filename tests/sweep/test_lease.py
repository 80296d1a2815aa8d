"""One driver at a time: a second is refused by the first's name, a dead one's place is taken, a displaced one stops."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import psutil
import pytest

from raykd.cluster import background
from raykd.errors import StoreError
from raykd.storage.store import Storage
from raykd.sweep import lease as lease_module
from raykd.sweep.lease import NAME, Lease, hold_lease, refuse_if_leased
from raykd.sweep.records import Record, SweepRecords
from tests.patience import until
from tests.sweep.samples import trial

HOLDER = """
import sys, time
from raykd.storage.store import Storage
from raykd.sweep.lease import hold_lease
with hold_lease(Storage(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


class Beats:
    """A replacement of the event between the beats of a holder; the test decides when a beat comes."""

    def __init__(self) -> None:
        self._due: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.ended = threading.Event()

    def beat(self) -> None:
        self._due.put(False)

    def set(self) -> None:
        self.ended.set()
        self._due.put(True)

    def wait(self, seconds: float) -> bool:
        return self._due.get()


@pytest.fixture
def fast(monkeypatch):
    """A lease counts at once."""
    monkeypatch.setattr(lease_module, "SETTLE_S", 0.0)


@pytest.fixture
def beats(monkeypatch) -> Beats:
    """The beats of the held lease."""
    event = Beats()
    monkeypatch.setattr(
        background, "threading", SimpleNamespace(**{**vars(threading), "Event": lambda: event})
    )
    return event


@pytest.fixture(params=["local", "object store"])
def folder(request, tmp_path) -> Storage:
    if request.param == "local":
        return Storage(str(tmp_path / "sweeps/x"))
    remote = Storage("mock:///bucket")
    remote._system.create_dir("bucket/sweeps/x/trials")  # unlike S3, it wants its folders made
    return remote.child("sweeps", "x")


def elsewhere(folder: Storage, **more: object) -> None:
    """Rewrite the lease as if a different machine held it."""
    plain = folder.read_json(NAME)
    folder.write_json(NAME, {**plain, "machine": "another", "host": "node-7", "process": 12, **more})


@pytest.fixture
def holder(tmp_path):
    """A second process of the same machine, with the lease of tmp_path."""
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
    folder, notes = Storage(str(tmp_path)), list[str]()
    with pytest.raises(
        StoreError, match=rf"process {holder.pid} on \S+ works on this sweep; wait for its end"
    ):
        Lease(folder).take(note=notes.append)
    assert notes == [], "its process can be seen from here: no sign of it is waited for"
    holder.kill()
    until(lambda: psutil.Process(holder.pid).status() == psutil.STATUS_ZOMBIE)
    with hold_lease(folder):
        assert folder.read_json(NAME)["process"] == os.getpid()
    assert not folder.exists(NAME)


def test_a_holder_that_ends_leaves_nothing(tmp_path, holder):
    holder.communicate("")
    assert holder.returncode == 0
    assert not Storage(str(tmp_path)).exists(NAME)


def test_a_lease_of_another_machine_is_taken_when_it_does_not_change(fast, folder, monkeypatch):
    monkeypatch.setattr(lease_module, "STALE_S", 0.6)
    Lease(folder).take()
    elsewhere(folder)
    notes: list[str] = []
    with hold_lease(folder, note=notes.append) as lease:
        lease.check()
    assert notes == ["process 12 on node-7 has the lease of the sweep; waiting up to 1 s for a sign of it"]


def test_a_lease_of_another_machine_that_beats_is_respected(fast, folder):
    Lease(folder).take()
    elsewhere(folder)
    with pytest.raises(StoreError, match="process 12 on node-7 works on this sweep"):
        refuse_if_leased(folder, note=lambda text: elsewhere(folder, beats=9))


def test_of_two_that_take_it_at_once_one_has_it(fast, folder, monkeypatch):
    monkeypatch.setattr(lease_module, "refuse_if_leased", lambda *_, **__: None)
    written = threading.Barrier(6)
    monkeypatch.setattr(lease_module, "time", SimpleNamespace(sleep=lambda seconds: written.wait()))
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
    (winner,) = (lease for lease in leases if lease not in refused)
    winner.check()


def test_a_driver_that_lost_its_lease_is_interrupted_and_writes_nothing_more(fast, folder, beats):
    records = SweepRecords(folder, "x")
    records.folder = folder

    def drive() -> None:
        with hold_lease(folder) as lease:
            records.lease = lease
            records.save(Record(trial(0), {}))
            elsewhere(folder, token="other")
            with pytest.raises(StoreError, match="lost the sweep to process 12 on node-7"):
                records.save(Record(trial(1), {}))
            with pytest.raises(StoreError, match="lost"):
                records.save_file("front.html", b"")
            beats.beat()
            while True:
                time.sleep(0.01)

    with pytest.raises(StoreError, match="this driver has lost the sweep to process 12 on node-7"):
        drive()
    assert [record.trial.number for record in records.load()] == [0]
    assert folder.read_json(NAME)["token"] == "other", "the other's lease stays"


def test_no_beat_comes_after_the_release(fast, folder, beats, monkeypatch):
    write, begun = Lease._write, threading.Event()

    def slow(lease: Lease) -> None:
        begun.set()
        beats.ended.wait()
        time.sleep(0.05)  # a release that does not wait for it would come first
        write(lease)

    with hold_lease(folder):
        monkeypatch.setattr(Lease, "_write", slow)
        beats.beat()
        begun.wait()
    assert not [thread for thread in threading.enumerate() if thread.name == "raykd-lease"]
    assert not folder.exists(NAME)


def test_a_store_out_of_reach_for_a_beat_costs_nothing(fast, tmp_path, beats):
    folder, tries = Storage(str(tmp_path)), []

    def out_of_reach(*_: object, **__: object) -> None:
        tries.append(1)
        raise StoreError("a", "b", "c")

    with hold_lease(folder) as lease:
        with pytest.MonkeyPatch.context() as away:
            away.setattr(Storage, "find_json", out_of_reach)
            beats.beat()
            until(lambda: tries)
        beats.beat()
        until(lambda: folder.read_json(NAME)["beats"] == 2)
        lease.check()


def test_a_damaged_lease_is_named(fast, tmp_path):
    folder = Storage(str(tmp_path))
    Lease(folder).take()
    (tmp_path / NAME).write_text("{")
    with pytest.raises(StoreError, match=r"lease.json: is damaged"):
        Lease(folder).take()
