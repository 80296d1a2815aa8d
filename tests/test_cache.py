import hashlib
import mmap
import os
import threading
import time

import pytest

from raykd import cache, streams
from raykd.cache import cached_copy
from raykd.errors import StoreError
from raykd.storage import Storage

ORIGINAL = {"size": 1000, "modified_ns": 5}
NOTE = 200  # bytes of a copy's note and lock, about


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    """A cache of its own, as a process finds it that has used none yet."""
    monkeypatch.setenv("RAYKD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(streams, "_digests", {})
    monkeypatch.setattr(cache, "_room", {})


def fetched(name: str):
    return cached_copy(f"mock://bucket/{name}", ORIGINAL, lambda: [name.encode() * 500, name.encode() * 500])


def used_at(path, second: int) -> None:
    os.utime(path.parent / "checked.json", (second, second))


def held(root) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def test_the_least_recently_used_copies_go_and_the_bound_is_kept(tmp_path, monkeypatch):
    bound = 3 * (1000 + NOTE) + 500
    monkeypatch.setenv("RAYKD_CACHE_BYTES", str(bound))
    paths = {}
    for second, name in enumerate("abc"):
        paths[name] = fetched(name)
        used_at(paths[name], 100 + second)
    fetched("a")  # used again: now
    for second, name in enumerate("defgh"):
        paths[name] = fetched(name)
        used_at(paths[name], 200 + second)
        assert held(tmp_path / "cache") <= bound
    assert [name for name, path in paths.items() if path.exists()] == ["a", "g", "h"]
    assert paths["h"].read_bytes() == b"h" * 1000


def test_a_mapped_copy_stays_readable_when_it_is_removed(monkeypatch):
    monkeypatch.setenv("RAYKD_CACHE_BYTES", "1500")
    path = fetched("a")
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    fetched("b")
    assert not path.exists()
    assert mapped[:] == b"a" * 1000
    assert fetched("a").read_bytes() == b"a" * 1000


def test_a_copy_that_is_being_fetched_is_not_removed(monkeypatch):
    monkeypatch.setenv("RAYKD_CACHE_BYTES", "1500")
    path = fetched("a")
    with cache._locked(path.parent):
        fetched("b")
        assert path.exists()


def test_a_copy_is_compared_with_its_checksum_once_per_process_and_state(monkeypatch):
    counted, digest = [], hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *given: counted.append(1) or digest(*given))
    path = fetched("a")
    fetched("a")
    assert not counted  # written by this very process
    streams._digests.clear()  # another process
    fetched("a")
    fetched("a")
    assert len(counted) == 1
    path.write_bytes(b"x" * 1000)
    os.utime(path, ns=(0, 0))
    assert fetched("a").read_bytes() == b"a" * 1000
    other = cached_copy("mock://bucket/a", {**ORIGINAL, "modified_ns": 6}, lambda: [b"new"])
    assert other.read_bytes() == b"new"


def test_several_that_want_one_file_fetch_it_once():
    calls = []

    def slow():
        calls.append(1)
        time.sleep(0.05)
        return [b"1" * 1000]

    wanted = [
        threading.Thread(target=cached_copy, args=("mock://bucket/a", ORIGINAL, slow)) for _ in range(3)
    ]
    for thread in wanted:
        thread.start()
    for thread in wanted:
        thread.join()
    assert len(calls) == 1


def test_an_error_while_fetching_leaves_no_copy(tmp_path):
    def broken():
        yield b"half"
        raise StoreError("mock://bucket/a", "cannot be read", "try again")

    with pytest.raises(StoreError, match="cannot be read"):
        cached_copy("mock://bucket/a", ORIGINAL, broken)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} <= {"lock"}


def test_a_bound_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("RAYKD_CACHE_BYTES", "50GB")
    with pytest.raises(StoreError, match=r"RAYKD_CACHE_BYTES: '50GB' is not a number of bytes; set it to"):
        fetched("a")


def test_a_file_is_copied_piece_by_piece(monkeypatch):
    monkeypatch.setattr("raykd.storage.CHUNK_BYTES", 3)
    remote = Storage("mock:///bucket")
    remote._system.create_dir("bucket")
    for data in (b"", b"123", b"12345678"):
        remote.write("part", data)
        assert remote.local_path("part").read_bytes() == data
