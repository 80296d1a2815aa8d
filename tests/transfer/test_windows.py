"""Transfer sets opened shard by shard, and trained on window by window."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from raykd.errors import StoreError
from raykd.precompute.plan import PrecomputePlan, estimate, precompute
from raykd.signals import Need
from raykd.storage import cache
from raykd.storage.store import Storage
from raykd.transfer import RowRange, TeacherRows, Text, TransferSet, read_manifest, row_ranges, signal_id
from raykd.transfer import windows as module
from raykd.transfer.index import Index, read_index, write_index
from tests.transfer.samples import FakeTeacher, School, Source, compute, sentences

NEEDS = (Need("emissions"), Need("transitions"), Need("kbest", 2))
TEXTS = {"en": Text.from_tokens(sentences(75, seed=1)), "de": Text.from_tokens(sentences(41, seed=2))}
ROWS = {"en": np.arange(116)[np.arange(116) % 3 != 1][:75]}
ROWS["de"] = np.setdiff1d(np.arange(116), ROWS["en"])


def plan_of(folder: Path) -> PrecomputePlan:
    return School(*map(FakeTeacher, TEXTS)).plan(folder, TEXTS, k=2)


@pytest.fixture
def folder(tmp_path):
    """Two teachers with 8 and 5 shards, joined over a table in which their sentences alternate."""
    compute(plan_of(tmp_path))
    return tmp_path


def opened(folder: Path, needs=NEEDS) -> TransferSet:
    covered = [TeacherRows(Source.of(name, text), ROWS[name]) for name, text in TEXTS.items()]
    return TransferSet.open(Storage(str(folder)), covered, needs)


def emissions(folder: Path, name: str = "en") -> Storage:
    emissions_id = signal_id(Need("emissions"), teacher_id=name, text_id=TEXTS[name].id)
    return Storage(str(folder)).child("transfer", emissions_id)


def flip(folder: Storage, shard: int) -> str:
    name = read_manifest(folder).shards[shard].name
    data = bytearray(folder.read(name))
    data[len(data) // 2] ^= 1
    folder.write(name, bytes(data))
    return name


def mapped(folder: Path) -> set[str]:
    """Return the shards mapped by the process."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split(maxsplit=5)[5] for line in lines if str(folder) in line and "/shard-" in line}


def background() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("raykd-prefetch")]


def test_a_damaged_shard_is_refused_by_name_when_it_is_first_used_and_not_before(folder):
    name = flip(emissions(folder), 4)
    transfer = opened(folder)
    transfer.gather(ROWS["en"][[0, 39, 50, 74]])
    transfer.gather(ROWS["de"])
    with pytest.raises(StoreError, match=f"{name}: the shard is damaged: its checksum.*remove"):
        transfer.gather(ROWS["en"][[0, 40]])


def test_a_shard_damaged_ahead_is_refused_when_its_window_is_trained_on(folder, monkeypatch):
    monkeypatch.setattr(module, "WINDOW_BYTES", 1)
    name = flip(emissions(folder), 4)
    transfer = opened(folder)
    damaged, windows = set(ROWS["en"][40:50]), transfer.plan(np.arange(116), seed=0, epoch=0)
    for window in ahead(transfer, windows):
        if damaged & set(window):
            with pytest.raises(StoreError, match=f"{name}: the shard is damaged"):
                transfer.gather(window)
        else:
            transfer.gather(window)
    transfer.close()


def test_a_shard_that_is_not_the_one_the_index_describes_is_refused(folder):
    store = emissions(folder)
    index = read_index(store, read_manifest(store))
    place_N = index.place_N.copy()
    place_N[[20, 21]] = place_N[[21, 20]]
    write_index(store, Index(place_N, index.start_N, index.length_N))
    transfer = opened(folder, NEEDS[:1])
    transfer.gather(ROWS["en"][:20])
    with pytest.raises(StoreError, match=r"shard-00000020-00000030\.arrow: the shard is damaged: its rows"):
        transfer.gather(ROWS["en"][25:26])


def test_an_index_that_is_missing_or_damaged_is_refused_and_written_again_without_a_teacher(folder):
    path = Path(emissions(folder).uri) / "shards.index"
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    with pytest.raises(StoreError, match=r"shards\.index: the index of the shards is damaged.*remove"):
        opened(folder)
    path.unlink()
    with pytest.raises(StoreError, match=r"shards\.index: .* is missing.*raykd precompute"):
        opened(folder)
    precompute(plan_of(folder), launch=lambda *_: pytest.fail("launched"))
    assert path.read_bytes() == whole


def test_what_fits_is_one_window_in_the_order_of_its_rows(folder):
    rows = np.array([5, 5, 0, 77, 3])
    (window,) = opened(folder).plan(rows, seed=0, epoch=0)
    assert window.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("bound", [1, 12_000])
def test_windows_cover_every_row_once_and_keep_their_bound(folder, monkeypatch, bound):
    monkeypatch.setattr(module, "WINDOW_BYTES", bound)
    transfer, rows = opened(folder), np.sort(np.random.default_rng(0).integers(0, 116, 150))
    plans = {
        (seed, epoch): transfer.plan(rows, seed=seed, epoch=epoch) for seed in (0, 1) for epoch in (0, 1)
    }
    for windows in plans.values():
        assert sorted(np.concatenate(windows).tolist()) == list(range(150))
        units = [
            set(transfer._units.unit_of_rows(*transfer._locate_rows(rows[window])).tolist())
            for window in windows
        ]
        assert sum(map(len, units)) == len(set.union(*units)) == 13
        sizes = [sum(transfer._units.bytes_U[list(window_units)]) for window_units in units]
        assert all(
            size <= bound or len(window_units) == 1 for size, window_units in zip(sizes, units, strict=True)
        )
        assert len(windows) == 13 if bound == 1 else 2 < len(windows) < 13
    assert len({tuple(np.concatenate(windows).tolist()) for windows in plans.values()}) == 4
    replanned = opened(folder).plan(rows, seed=1, epoch=1)
    assert all(map(np.array_equal, replanned, plans[1, 1]))
    in_order = transfer.plan(rows, seed=1, epoch=1, shuffle=False)
    assert np.concatenate(in_order)[0] == 0


def test_a_window_gives_the_batches_that_the_whole_gives(folder, monkeypatch):
    whole = opened(folder).gather(np.arange(116))
    monkeypatch.setattr(module, "WINDOW_BYTES", 12_000)
    transfer = opened(folder)
    for window in ahead(transfer, transfer.plan(np.arange(116), seed=3, epoch=1)):
        batch = transfer.gather(window)
        width = batch.chain.time
        assert torch.equal(batch.chain.emissions_BTY, whole.chain.emissions_BTY[window, :width])
        assert torch.equal(batch.paths_BKT, whole.paths_BKT[window, :, :width])
        assert torch.equal(batch.scores_BK, whole.scores_BK[window])
    transfer.close()


def test_one_window_and_the_next_are_mapped_and_closing_leaves_no_thread(folder, monkeypatch):
    monkeypatch.setattr(module, "WINDOW_BYTES", 12_000)
    transfer = opened(folder)
    assert not {name for name in mapped(folder) if "00000010" in name}
    windows = transfer.plan(np.arange(116), seed=0, epoch=0)
    for number, window in enumerate(ahead(transfer, windows)):
        for rows in np.array_split(window, min(3, len(window))):
            transfer.gather(rows)
        expected = {
            key
            for rows_of_window in windows[number : number + 2]
            for key in keys_of(transfer, rows_of_window)
        }
        assert len(mapped(folder)) <= len(expected)
        assert len(background()) == 1
    transfer.close()
    assert background() == []
    assert mapped(folder) == set()


def ahead(transfer: TransferSet, windows: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the windows in order, each fetched with the next one."""
    for number, window in enumerate(windows):
        transfer.prefetch(windows[number : number + 2])
        yield window


def keys_of(transfer: TransferSet, rows: np.ndarray) -> list:
    units = set(transfer._units.unit_of_rows(*transfer._locate_rows(rows)).tolist())
    return [key for unit in units for key in transfer._units.shards(unit)]


def test_an_object_stores_shards_go_through_a_cache_that_holds_a_part_of_them(folder, monkeypatch):
    whole = opened(folder).gather(np.arange(116)).chain.emissions_BTY
    local, remote = Storage(str(folder)), Storage("mock:///bucket")
    for name in local.names("transfer/"):
        remote._system.create_dir(f"bucket/{name.rpartition('/')[0]}")
        remote.write(name, local.read(name))
    monkeypatch.setenv("RAYKD_CACHE", str(folder / "cache"))
    monkeypatch.setenv("RAYKD_CACHE_BYTES", "30000")
    monkeypatch.setattr(cache, "_allowance_bytes", {})
    monkeypatch.setattr(module, "WINDOW_BYTES", 12_000)
    covered = [TeacherRows(Source.of(name, text), ROWS[name]) for name, text in TEXTS.items()]
    transfer = TransferSet.open(remote, covered, NEEDS)
    for window in ahead(transfer, transfer.plan(np.arange(116), seed=0, epoch=0)):
        emissions_BTY = transfer.gather(window).chain.emissions_BTY
        assert torch.equal(emissions_BTY, whole[window, : emissions_BTY.shape[1]])
    transfer.close()
    assert background() == []
    copies = [path for path in (folder / "cache").rglob("*") if path.suffix in (".arrow", ".index")]
    cached_bytes = sum(path.stat().st_size for path in copies)
    assert cached_bytes < 30_000 + 30_000 // 16 < sum(local.size(name) for name in local.names("transfer/"))


def test_ranges_are_halved_where_a_signal_is_too_large_and_else_left_as_they_are():
    small, large = np.full(4500, 10), np.full(4500, 10)
    large[2100:2200] = 1000
    cut = {"shard_sentences": 2000, "shard_bytes": 60_000}
    assert row_ranges([small], 4500, **cut) == (
        RowRange(0, 2000),
        RowRange(2000, 4000),
        RowRange(4000, 4500),
    )
    ranges = row_ranges([small, large], 4500, **cut)
    assert ranges[0] == RowRange(0, 2000)
    assert ranges[-2:] == (RowRange(3000, 4000), RowRange(4000, 4500))
    assert [rows.first for rows in ranges[1:]] == [rows.last for rows in ranges[:-1]]
    assert all(large[rows.first : rows.last].sum() <= 60_000 for rows in ranges)
    assert row_ranges([np.full(3, 99)], 3, shard_sentences=2000, shard_bytes=5) == tuple(
        RowRange(row, row + 1) for row in range(3)
    )


def test_shards_stay_below_their_bytes_and_the_estimate_says_so(tmp_path):
    plan = School(FakeTeacher("en")).plan(
        tmp_path, {"en": TEXTS["en"]}, shard_sentences=2000, shard_bytes=1000
    )
    before = estimate(plan)
    result = compute(plan)
    manifest = read_manifest(emissions(tmp_path))
    assert 3 < len(manifest.shards) == before.missing_shards - 1
    assert before.missing_bytes == pytest.approx(result.bytes, rel=0.3)  # 75 sentences: mostly the files' own
    # A committed signal keeps its ranges.
    wider = School(FakeTeacher("en")).plan(tmp_path, {"en": TEXTS["en"]}, shard_sentences=2000)
    assert estimate(wider).missing_shards == 0
