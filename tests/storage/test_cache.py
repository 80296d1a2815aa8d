import hashlib
import json
import mmap
import os
import threading
import time

import pytest

from raykd.errors import StoreError
from raykd.storage import cache, digests
from raykd.storage.cache import cached_content, cached_copy
from raykd.storage.store import Storage

ORIGINAL = {"size": 1000, "modified_ns": 5}
NOTE = 200  # bytes of a copy's note and lock, about


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    """A separate cache, as a process finds it that has used none yet."""
    monkeypatch.setenv("RAYKD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "_digests", {})
    monkeypatch.setattr(cache, "_allowance_bytes", {})


def fetched(name: str):
    return cached_copy(f"mock://bucket/{name}", ORIGINAL, lambda: (1000, [name.encode() * 500] * 2))


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


@pytest.fixture
def hashed(monkeypatch):
    """One entry per file read for a checksum."""
    counted, digest = [], hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *arguments: counted.append(1) or digest(*arguments))
    return counted


def another_process() -> None:
    digests._digests.clear()


def test_a_copy_is_compared_when_it_is_fetched_and_once_for_each_start_of_the_machine(hashed, monkeypatch):
    path = fetched("a")
    for _ in range(2):
        another_process()
        assert fetched("a") == path
        assert digests.path_sha256(path) == hashlib.sha256(b"a" * 1000).hexdigest()
    assert not hashed
    monkeypatch.setattr(cache, "_boot", lambda: "later")
    for _ in range(2):
        another_process()
        fetched("a")
    assert len(hashed) == 1


def test_a_copy_that_a_power_cut_damaged_is_fetched_again(monkeypatch):
    path = fetched("a")
    path.write_bytes(b"\0" * 1000)
    another_process()
    # It looks as it did when it was compared.
    note = json.loads((path.parent / "checked.json").read_bytes())
    note["compared"][1:] = digests.file_state(path.stat())
    (path.parent / "checked.json").write_text(json.dumps(note))
    monkeypatch.setattr(cache, "_boot", lambda: "later")
    assert fetched("a").read_bytes() == b"a" * 1000


def test_a_copy_that_was_written_to_is_fetched_again():
    path = fetched("a")
    path.write_bytes(b"x" * 1000)
    os.utime(path, ns=(0, 0))
    assert fetched("a").read_bytes() == b"a" * 1000


def test_another_original_is_fetched():
    fetched("a")
    new_copy = cached_copy("mock://bucket/a", {**ORIGINAL, "modified_ns": 6}, lambda: (3, [b"new"]))
    assert new_copy.read_bytes() == b"new"


def test_the_copy_with_a_checksum_is_used_for_every_address():
    calls, sha256 = [], hashlib.sha256(b"12").hexdigest()
    for address in ("mock://bucket/a", "mock://bucket/a", "mock://other/a"):
        path = cached_content(address, sha256, lambda: calls.append(1) or (2, [b"1", b"2"]))
        assert path.read_bytes() == b"12"
    assert len(calls) == 1


def test_what_has_another_checksum_is_refused_and_not_kept(tmp_path):
    with pytest.raises(ValueError, match=r"its checksum is \w{12}…, it was written with 000000000000…"):
        cached_content("mock://bucket/a", "0" * 64, lambda: (2, [b"12"]))
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} <= {"lock"}


def test_fresh_copies_are_fetched_and_do_not_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "FRESH_BYTES", 1500)
    path, calls = fetched("a"), []
    with cache.fresh_copies():
        for name in "ab":
            fresh_copy = cached_copy(
                f"mock://bucket/{name}", ORIGINAL, lambda: calls.append(1) or (1000, [b"f" * 1000])
            )
            assert fresh_copy.read_bytes() == b"f" * 1000
        assert len(calls) == 2
        assert held(tmp_path / "cache" / "fresh") < 1500
    assert not fresh_copy.exists()
    assert fetched("a") == path
    assert path.read_bytes() == b"a" * 1000


def test_several_that_want_one_file_fetch_it_once():
    calls = []

    def slow():
        calls.append(1)
        time.sleep(0.05)
        return 1000, [b"1" * 1000]

    threads = [
        threading.Thread(target=cached_copy, args=("mock://bucket/a", ORIGINAL, slow)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_an_error_while_fetching_leaves_no_copy(tmp_path):
    def broken():
        yield b"half"
        raise StoreError("mock://bucket/a", "cannot be read", "try again")

    with pytest.raises(StoreError, match="cannot be read"):
        cached_copy("mock://bucket/a", ORIGINAL, lambda: (1000, broken()))
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} <= {"lock"}


def test_a_bound_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("RAYKD_CACHE_BYTES", "50GB")
    with pytest.raises(StoreError, match=r"RAYKD_CACHE_BYTES: '50GB' is not a number of bytes; set it to"):
        fetched("a")


def test_a_file_is_copied_piece_by_piece(monkeypatch):
    monkeypatch.setattr("raykd.storage.store.CHUNK_BYTES", 3)
    remote = Storage("mock:///bucket")
    remote._system.create_dir("bucket")
    for data in (b"", b"123", b"12345678"):
        remote.write("part", data)
        assert remote.local_path("part").read_bytes() == data
