"""Requests to an object store: requests are counted in the log of a server on this machine."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch

from raykd.errors import StoreError
from raykd.needs import CHAIN
from raykd.precompute.plan import PrecomputePlan
from raykd.signals import Need
from raykd.storage import digests
from raykd.storage.store import Storage
from raykd.sweep.doctor import examine_store
from raykd.sweep.lease import hold_working_lease
from raykd.transfer import TeacherRows, Text, TransferSet
from tests.s3_server import KEYS, S3Server
from tests.transfer.samples import FakeTeacher, School, Source, compute, sentences

SHARDS = 150
NEEDS = [Need(name) for name in CHAIN if name != "kbest"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The server, and the keys that its clients need."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        running = S3Server(tmp_path_factory.mktemp("s3"))
        yield running
        running.stop()


@pytest.fixture
def storage(server, tmp_path, monkeypatch):
    """An empty store there, on a node that has no copies."""
    monkeypatch.setenv("RAYKD_CACHE", str(tmp_path / "cache"))
    bucket = Storage(server.uri(tmp_path.name))
    server.asked()
    return bucket


def kinds(server) -> dict[str, int]:
    return dict(Counter(request.kind for request in server.asked()))


def test_a_small_file_is_one_put(server, storage):
    storage.write("a/part", b"1" * 100_000)
    storage.write("a/empty", b"")
    with storage.writer("a/pieces") as sink:
        sink.write(b"12")
        sink.write(b"3")
    assert kinds(server) == {"PUT": 3}
    assert [storage.read(name) for name in ("a/empty", "a/pieces")] == [b"", b"123"]


def test_a_large_file_is_uploaded_in_parts_and_is_whole(server, storage):
    data = np.random.default_rng(0).bytes(12 << 20)
    storage.write("a/part", data)
    assert set(kinds(server)) == {"UPLOAD"}
    assert storage.read("a/part") == data


def test_what_is_not_there_is_one_request(server, storage):
    assert storage.find("a/none") is None
    storage.remove("a/none")
    assert kinds(server) == {"HEAD": 2}


def test_connecting_asks_nothing(server, storage):
    for _ in range(3):
        Storage(storage.uri).child("a")
    assert kinds(server) == {}


def stored(uri: str, shards: int) -> tuple[PrecomputePlan, Callable[[], TransferSet]]:
    """A teacher's signals in shards of two sentences, and what opens them."""
    school, text = School(FakeTeacher("ada")), Text.from_tokens(sentences(shards * 2))
    plan = school.plan(uri, {"ada": text}, shard_sentences=2)
    compute(plan)
    covered = [TeacherRows(Source.of("ada", text, NEEDS), np.arange(len(text)))]
    return plan, lambda: TransferSet.open(Storage(uri), covered, NEEDS)


def read_all(opened: TransferSet, shards: int) -> torch.Tensor:
    try:
        chain = opened.gather(np.arange(shards * 2)).chain
        assert chain is not None
        return chain.emissions_BTY
    finally:
        opened.close()


def test_a_signal_of_many_shards_takes_a_few_requests_when_it_is_opened_again(server, storage):
    plan, open_set = stored(storage.uri, SHARDS)
    server.asked()
    (covered,) = plan.coverage()
    assert all(part.complete for part in covered.parts)
    assert sum(len(part.stored) for part in covered.parts) > SHARDS
    # A listing and a manifest for each signal.
    assert kinds(server) == {"LIST": 2, "HEAD": 2, "GET": 2}
    first = read_all(open_set(), SHARDS)
    fetched = server.asked()
    assert sum(request.path.endswith(".arrow") for request in fetched) == 2 * (SHARDS + 1)
    digests._digests.clear()  # another process
    assert torch.equal(read_all(open_set(), SHARDS), first)
    assert len(server.asked()) <= 6


def test_a_damaged_shard_is_refused_by_name_when_it_is_copied_and_by_the_doctor(storage, tmp_path):
    _, open_set = stored(storage.uri, 3)
    read_all(open_set(), 3)
    name = next(file for file in storage.names("transfer/") if "shard-00000002" in file)
    flipped = bytearray(storage.read(name))
    flipped[-200] ^= 1
    storage.write(name, bytes(flipped))
    # The node has copies of what was there; the doctor does not look at them.
    examination = examine_store(storage)
    assert [damage.name for damage in examination.damages] == [name]
    assert "its checksum is" in examination.damages[0].problem
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(
        StoreError, match=rf"{name}: the shard is damaged: its checksum is \w+…, it was written"
    ):
        read_all(open_set(), 3)


def test_a_shard_that_is_gone_is_named_and_computed_again(storage):
    plan, open_set = stored(storage.uri, 3)
    name = next(file for file in storage.names("transfer/") if "shard-00000002" in file)
    storage.remove(name)
    with pytest.raises(StoreError, match=rf"{name}: the shard is missing; run raykd precompute again"):
        read_all(open_set(), 3)
    (covered,) = plan.coverage()
    assert [rows.first for part in covered.parts for rows in part.pending] == [2]


def test_work_without_a_sweep_leaves_no_folder_of_its_own_behind(server, storage):
    for _ in range(2):
        with hold_working_lease(storage, "plan"):
            pass
    # The client makes an empty object for the folder of a file that it removes: the same one each time.
    leftovers = {
        request.path
        for request in server.asked()
        if request.method == "PUT" and not request.path.endswith(".json")
    }
    assert len(leftovers) == 1
