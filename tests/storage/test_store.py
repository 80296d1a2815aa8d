import errno
import hashlib
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from raykd.errors import OtherVersionError, StoreError
from raykd.identity import canonical_json
from raykd.storage.sealed_json import FORMAT_KEY, STORE_FORMAT
from raykd.storage.store import Storage


@pytest.fixture(params=["path", "file", "object store"])
def storage(request, tmp_path):
    if request.param == "object store":
        remote = Storage("mock:///bucket/store")
        # Unlike S3, the store in memory wants its folders made.
        for folder in ("bucket/store/a/b", "bucket/store/c"):
            remote._system.create_dir(folder)
        return remote
    return Storage(str(tmp_path / "store") if request.param == "path" else f"file://{tmp_path}/store")


def leftovers(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_is_written_is_read(storage):
    storage.write("a/b/part.bin", b"\x00\x01")
    storage.write("a/b/part.bin", b"\x00\x01\x02")
    assert storage.read("a/b/part.bin") == b"\x00\x01\x02"
    assert storage.size("a/b/part.bin") == 3
    assert storage.exists("a/b/part.bin")
    assert not storage.exists("a/b")
    assert not storage.exists("a/b/part")


def test_what_is_written_in_pieces_is_there_once_it_is_whole(storage):
    storage.write("a/b/part.bin", b"old")
    with storage.writer("a/b/part.bin") as sink:
        sink.write(b"\x00")
        sink.write(memoryview(np.arange(3, dtype="<i2")))
        assert storage.read("a/b/part.bin") == b"old"
    assert storage.read("a/b/part.bin") == b"\x00" + np.arange(3, dtype="<i2").tobytes()
    assert (sink.size, sink.sha256) == (7, hashlib.sha256(storage.read("a/b/part.bin")).hexdigest())


def test_what_is_broken_off_is_not_there(storage, tmp_path):
    storage.write("a/b/part.bin", b"old")

    def broken_off():
        with storage.writer("a/b/part.bin") as sink:
            sink.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken_off()
    assert storage.read("a/b/part.bin") == b"old"
    assert storage.names("a/b/") == ["a/b/part.bin"]
    assert not list(tmp_path.rglob("*.tmp"))


def test_arrow_files_go_through_the_writer(storage):
    table = pa.table({"x": [[1, 2], None, [3]]})
    with storage.writer("a/b/x.arrow") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    with storage.open("a/b/x.arrow") as file:
        assert pa.ipc.open_file(file).read_all().equals(table)


def test_a_file_is_read_in_blocks_lines_and_from_anywhere(storage):
    storage.write("a/b/text", "\n".join(map(str, range(400_000))).encode())
    with storage.open("a/b/text") as file:
        assert sum(map(int, file)) == sum(range(400_000))
        assert (file.seek(-2, 2), file.read()) == (storage.size("a/b/text") - 2, b"99")
    assert storage.stamp("a/b/text")[0] == storage.size("a/b/text")


def test_names_are_sorted_relative_and_complete(storage):
    for name in ("c/z.json", "a/b/y", "a/b/x", "top"):
        storage.write(name, b"1")
    assert storage.names() == ["a/b/x", "a/b/y", "c/z.json", "top"]
    assert storage.names("a/") == ["a/b/x", "a/b/y"]
    assert storage.names("a/b/x") == ["a/b/x"]
    assert storage.names("nothing/here") == []
    assert storage.child("a").names() == ["b/x", "b/y"]
    assert storage.child("a", "b").read("x") == b"1"
    assert storage.child("never", "made").names() == []


def test_a_compressed_file_is_not_unpacked(storage):
    storage.write("c/part.gz", b"not gzip at all")
    assert storage.read("c/part.gz") == b"not gzip at all"


def test_json(storage):
    storage.write_json("manifest.json", {"b": [1, 2.5], "é": None})
    assert storage.read_json("manifest.json") == {"b": [1, 2.5], "é": None}
    with pytest.raises(ValueError, match="nan has no canonical form"):
        storage.write_json("nan.json", {"b": float("nan")})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text.replace("2.5", "2.6"), r"its checksum is \w+…, it was written with \w+…"),
        (lambda text: text.replace('"b"', '"c"'), "its checksum is"),
        (lambda text: text.replace('"sha256"', '"sha257"'), "it has no sha256"),
        (lambda text: text[:-10], "JSONDecodeError"),
        (lambda text: "[1, 2]", "expected an object, found list"),
        (lambda text: "[" * 100_000, "RecursionError"),
    ],
    ids=["digit", "key", "no checksum", "cut", "list", "deep"],
)
def test_changed_json_is_refused_by_name(storage, change, reason):
    storage.write_json("trial.json", {"b": [1, 2.5], "é": None})
    storage.write("trial.json", change(storage.read("trial.json").decode()).encode())
    with pytest.raises(StoreError, match=rf"trial\.json: is damaged, .*{reason}.*raykd doctor"):
        storage.read_json("trial.json")


def test_every_flipped_bit_of_json_is_refused_or_changes_nothing(storage):
    value = {"mean": 0.5, "names": ["en", "é"], "none": None}
    storage.write_json("trial.json", value)
    written = storage.read("trial.json")
    unnoticed = 0
    for place in range(8 * len(written)):
        flipped = bytearray(written)
        flipped[place // 8] ^= 1 << place % 8
        storage.write("trial.json", bytes(flipped))
        try:
            unnoticed += storage.read_json("trial.json") == value
        except StoreError:
            continue
        else:
            assert storage.read_json("trial.json") == value
    # White space that became other white space.
    assert unnoticed < len(written) / 8


def test_json_that_its_parser_cannot_read_is_refused_by_name(storage):
    storage.write_json("trial.json", {"scores": []})
    with pytest.raises(OtherVersionError, match=r"trial\.json: is of another version.*KeyError: 'number'"):
        storage.read_json("trial.json", lambda plain: plain["number"])


@pytest.mark.parametrize(
    ("store_format", "words"),
    [(STORE_FORMAT - 1, f"store format {STORE_FORMAT - 1}"), (None, "no store format")],
)
def test_json_of_another_store_format_is_refused_in_one_sentence(storage, store_format, words):
    plain = {"number": 1} if store_format is None else {"number": 1, FORMAT_KEY: store_format}
    seal = hashlib.sha256(canonical_json(plain)).hexdigest()
    storage.write("trial.json", json.dumps({**plain, "sha256": seal}).encode())
    with pytest.raises(OtherVersionError) as refused:
        storage.read_json("trial.json")
    assert str(refused.value) == (
        f"{storage.address}/trial.json: is of another version of raykd: it has {words}, this raykd reads "
        f"{STORE_FORMAT}; use the raykd that wrote it, or another store"
    )


def test_json_that_was_edited_is_read_where_that_is_allowed(storage):
    storage.write("model.json", b'{"path": "/new"}')
    assert storage.read_json("model.json", edited=True) == {"path": "/new"}
    with pytest.raises(
        StoreError, match="it has no sha256: an older raykd wrote it, or it was changed by hand"
    ):
        storage.read_json("model.json")


def test_removing_twice_is_no_error(storage):
    storage.write("top", b"1")
    storage.remove("top")
    storage.remove("top")
    assert not storage.exists("top")


@pytest.mark.parametrize("verb", ["read", "size", "stamp", "open", "local_path", "read_json"])
def test_a_missing_file_is_named(storage, verb):
    with pytest.raises(StoreError, match=r"/store/a/none: does not exist"):
        getattr(storage, verb)("a/none")


def test_local_path_holds_the_bytes(storage, tmp_path, monkeypatch):
    monkeypatch.setenv("RAYKD_CACHE", str(tmp_path / "cache"))
    storage.write("a/b/part", b"first")
    assert storage.local_path("a/b/part").read_bytes() == b"first"


def test_the_cached_copy_is_checked_and_follows_its_original(tmp_path, monkeypatch):
    monkeypatch.setenv("RAYKD_CACHE", str(tmp_path / "cache"))
    remote = Storage("mock:///bucket")
    remote._system.create_dir("bucket")
    remote.write("part", b"first")
    copy = remote.local_path("part")
    stamp = copy.stat().st_mtime_ns
    assert remote.local_path("part") == copy
    assert copy.stat().st_mtime_ns == stamp  # the same copy, not a second one
    copy.write_bytes(b"fXrst")
    os.utime(copy, ns=(0, 0))  # within one tick of the clock it would look unchanged
    assert remote.local_path("part").read_bytes() == b"first"
    remote.write("part", b"second")
    assert remote.local_path("part").read_bytes() == b"second"


def test_a_relative_store_does_not_move_with_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = Storage(".raykd")
    storage.write("x", b"1")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert storage.uri == str(tmp_path / ".raykd")
    assert pickle.loads(pickle.dumps(storage)).read("x") == b"1"
    assert pickle.loads(pickle.dumps(storage.child("y"))).uri == str(tmp_path / ".raykd" / "y")


def test_options_of_a_uri_stay_at_its_end(monkeypatch):
    monkeypatch.setattr("raykd.storage.store.object_stores.connect", lambda uri: (None, "bucket/x"))
    below = Storage("s3://bucket/x?endpoint_override=localhost:9000").child("a", "b")
    assert below.uri == "s3://bucket/x/a/b?endpoint_override=localhost:9000"
    assert below._root == "bucket/x/a/b"


def test_signs_of_uris_and_patterns_mean_themselves_in_local_paths(tmp_path):
    folder = f"{tmp_path}/a?b #c%41 [d]*{{e}}"
    below = Storage(folder).child("f?g", "h#i")
    below.write("j?k", b"1")
    assert (Storage(folder).address, below.address) == (folder, f"{folder}/f?g/h#i")
    assert Storage(folder).names() == ["f?g/h#i/j?k"]
    assert pickle.loads(pickle.dumps(below)).read("j?k") == b"1"
    with pytest.raises(StoreError) as refused:
        below.read("no")
    assert f"{folder}/f?g/h#i/no" in str(refused.value)


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x"])
def test_names_cannot_leave_the_store(storage, name):
    with pytest.raises(ValueError, match="must be below"):
        storage.write(name, b"1")
    with pytest.raises(ValueError, match="must be below"):
        storage.child(name)


def test_an_unknown_scheme_is_refused_with_the_known_ones():
    with pytest.raises(StoreError, match=r"unknown scheme 'ftp'; use a path, file://, s3:// or gs://"):
        Storage("ftp://host/x")


def test_a_full_disk_is_reported_with_the_arithmetic_and_leaves_nothing(tmp_path, monkeypatch):
    storage = Storage(str(tmp_path))
    storage.write("part", b"old")
    really_write = os.write

    def full(descriptor, data):
        if len(data) <= 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return really_write(descriptor, data[:4])  # a disk fills in the middle of a part

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError) as caught:
        storage.write("part", b"12345678")
    monkeypatch.undo()
    assert str(caught.value).startswith(
        f"{tmp_path}/part: cannot be written (no space left on device): 8 bytes"
    )
    assert "free; free some space" in str(caught.value)
    assert storage.read("part") == b"old"
    assert leftovers(tmp_path) == ["part"]


@pytest.mark.parametrize("arrow", [False, True])
def test_a_disk_that_fills_in_the_middle_of_the_pieces_is_reported_too(tmp_path, monkeypatch, arrow):
    storage = Storage(str(tmp_path))
    storage.write("part", b"old")
    really_write, pieces = os.write, []

    def full(descriptor, data):
        pieces.append(len(data))
        if len(pieces) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return really_write(descriptor, data)

    table = pa.table({"x": [1]})

    def write():
        with storage.writer("part") as sink:
            if arrow:
                with pa.ipc.new_file(sink, table.schema) as writer:
                    writer.write_table(table)
            for _ in range(3):
                sink.write(b"1234")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(
        StoreError, match=r"part: cannot be written \(no space left.*free some space"
    ) as caught:
        write()
    monkeypatch.undo()
    assert caught.value.transient
    assert f" {sum(pieces):,} bytes needed" in str(caught.value)
    assert storage.read("part") == b"old"
    assert leftovers(tmp_path) == ["part"]


def test_a_real_limit_on_file_size_leaves_nothing(tmp_path):
    code = (
        "import resource, signal\n"
        "from raykd.storage.store import Storage\n"
        "from raykd.errors import OtherVersionError, StoreError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        f"storage = Storage({str(tmp_path)!r})\n"
        "storage.write('small', bytes(60000))\n"
        "try:\n    storage.write('large', bytes(70000))\n"
        "except StoreError as error:\n    print(error)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=repository(),
        check=True,
    )
    assert "large: cannot be written (file too large): 70,000 bytes needed" in process.stdout
    assert "free some space" in process.stdout
    assert leftovers(tmp_path) == ["small"]


def test_an_interrupt_leaves_no_temporary(tmp_path, monkeypatch):
    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Storage(str(tmp_path)).write("part", b"1")
    assert leftovers(tmp_path) == []


def test_a_temporary_file_left_by_a_kill_is_not_listed(tmp_path):
    (tmp_path / ".part.0123.tmp").write_bytes(b"half")
    assert Storage(str(tmp_path)).names() == []


def test_a_file_in_place_of_a_folder_is_reported(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match=r"file/part: cannot be written \((not a directory|file exists)\)"):
        Storage(str(tmp_path)).write("file/part", b"1")
    with (
        pytest.raises(StoreError, match=r"file/part: cannot be written \((not a directory|file exists)\)"),
        Storage(str(tmp_path)).writer("file/part"),
    ):
        pass
    assert leftovers(tmp_path) == ["file"]


def test_a_failing_object_store_is_reported(monkeypatch):
    remote = Storage("mock:///bucket")  # its folder was never made
    with pytest.raises(
        StoreError, match=r"mock:///bucket/part: cannot be written .*: 1 bytes needed; check the"
    ):
        remote.write("part", b"1")
    with (
        pytest.raises(StoreError, match=r"part: cannot be written .*: 2 bytes"),
        remote.writer("part") as sink,
    ):
        sink.write(b"12")


def repository():
    from pathlib import Path

    return Path(__file__).resolve().parents[2]


class Away:
    """A file system out of reach for some requests, as an object store is whose network has gone."""

    def __init__(self, system, message="network is unreachable"):
        self.system, self.message, self.failures = system, message, 0

    def __getattr__(self, name):
        if self.failures:
            self.failures -= 1
            raise OSError(self.message)
        return getattr(self.system, name)


@pytest.fixture
def away(monkeypatch):
    """An object store, and the pauses that were made for it."""
    pauses = []
    monkeypatch.setattr("raykd.storage.store.time.sleep", pauses.append)
    remote = Storage("mock:///bucket")
    remote._system.create_dir("bucket/a")
    remote._system = Away(remote._system)
    return remote, pauses


@pytest.mark.parametrize("verb", ["read", "write", "names", "exists", "remove"])
def test_a_store_that_goes_out_of_reach_is_awaited_for_half_a_minute(away, verb):
    remote, pauses = away
    remote.write("a/x", b"1")
    below = remote.child("a")
    words = {"write": ("x", b"2"), "names": ()}.get(verb, ("x",))
    below._system.failures = 5
    getattr(below, verb)(*words)
    assert pauses == [1, 2, 4, 8, 16]
    below._system.failures = 99
    with pytest.raises(StoreError, match=r"network is unreachable.*check the address, the network") as caught:
        getattr(below, verb)(*words)
    assert caught.value.transient


def test_every_block_of_a_stream_is_tried_again(away):
    remote, pauses = away
    remote.write("a/x", b"1")
    with remote.open("a/x") as file:
        file.raw._file = Away(file.raw._file)
        file.raw._file.failures = 2
        assert file.read() == b"1"
        file.raw._file.failures = 99
        with pytest.raises(StoreError, match="x: cannot be read"):
            file.read(1)
        file.raw._file.failures = 0
    with remote.writer("a/x") as sink:
        sink.write(b"2")
        remote._system.failures = 3
    assert remote.read("a/x") == b"2"
    assert pauses == [1, 2, 1, 2, 4, 8, 16, 1, 2, 4]


def test_a_store_that_never_answered_is_reported_at_once(away):
    remote, pauses = away
    remote._system.failures = 99
    with pytest.raises(StoreError, match="network is unreachable"):
        remote.read("a/x")
    assert pauses == []


def test_what_a_store_refuses_is_not_asked_for_again(away):
    remote, pauses = away
    remote.write("a/x", b"1")
    remote._system.failures, remote._system.message = 99, "AWS Error ACCESS_DENIED during PutObject"
    with pytest.raises(StoreError) as caught:
        remote.write("a/x", b"2")
    assert pauses == []
    assert not caught.value.transient
