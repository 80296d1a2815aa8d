"""A transfer set larger than memory should hold: time to open it, and an epoch of batches with and without windows.

    python benchmarks/signals_at_scale.py                     20,000 and 200,000 sentences of 24 words x 384, float16
    python benchmarks/signals_at_scale.py --sentences 20000 --folder /disk

Random hidden states go through the functions of the shard writer into a temporary folder, 18 kB a sentence. Each line
of the output is a separate process that reads from the disk: once with one window (shards at random), and once with
several. It shows

    seconds to open, to plan an epoch, and until the first batch
    rows a second and CPU time for 1,000 rows, in a first epoch and in a second one, which verifies nothing again
    MiB of memory: anonymous (in no file) after opening and at the end, and the peak with mapped files
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from raykd.corpora.batching import plan_batches
from raykd.signals import Need, Sizes
from raykd.storage.store import Storage
from raykd.transfer import (
    Coverage,
    Origin,
    TeacherRows,
    TransferSet,
    encode_columns,
    origin_folder,
    row_ranges,
    shard_order,
    signal_id,
    windows,
    write_shard,
)

NEED, TEACHER, TEXT, BATCH_TOKENS = Need("hidden", layer=0), "teacher", "text", 2000
MIB = 2**20


@dataclass(frozen=True)
class Source:
    """The id of one stored signal, by the name of the signal."""

    stored_ids: dict[str, str]


def lengths_of(sentences: int) -> np.ndarray:
    """Return random lengths of sentences, 24 words on average."""
    return np.random.default_rng(0).integers(1, 48, sentences)


def write(folder: str, sentences: int, size: int) -> int:
    """Write the transfer set, and return the size in bytes."""
    store, words_N = Storage(folder), lengths_of(sentences)
    origin = Origin(
        signal="hidden", layer=0, teacher_id=TEACHER, weights_sha256="", text_id=TEXT, tags=9, k=0
    )
    sizes, draw, entries = Sizes(9, {0: size}), np.random.default_rng(1), []
    ranges = row_ranges([words_N * size * 2], sentences, shard_sentences=2000, shard_bytes=64 * MIB)
    for rows in ranges:
        order = shard_order(words_N[rows.first : rows.last])
        lengths = words_N[rows.first : rows.last][order]
        values = draw.standard_normal((int(lengths.sum()), size), np.float32)
        columns, error = encode_columns(NEED, sizes, rows.first + order, lengths, [values])
        origin_store = origin_folder(store, origin)
        entries.append(write_shard(origin_store, columns, origin=origin, rows=rows, largest_error=error))
    coverage = Coverage(origin_folder(store, origin), origin, (), ranges, committed=False)
    coverage.commit(entries, words_N, words_N)
    return sum(entry.bytes for entry in entries)


def memory() -> dict[str, float]:
    """Return the memory of the current process in MiB: anonymous now, and the peak with mapped files."""
    fields = dict(line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {"own": int(fields["Anonymous"].split()[0]) / 1024, "peak": int(status["VmHWM"].split()[0]) / 1024}


def measure(folder: str, sentences: int, window_bytes: int) -> dict[str, float]:
    """Measure two epochs in the current process, on one thread."""
    torch.set_num_threads(1)
    windows.WINDOW_BYTES = window_bytes
    source = Source({NEED.name: signal_id(NEED, teacher_id=TEACHER, text_id=TEXT)})
    words_N, before = lengths_of(sentences), memory()
    started = time.perf_counter()
    transfer = TransferSet.open(Storage(folder), [TeacherRows(source, np.arange(sentences))], [NEED])
    opened = time.perf_counter()
    open_mib = memory()["own"] - before["own"]
    epochs = [epoch_of(transfer, words_N, epoch) for epoch in (0, 1)]
    after = memory()
    transfer.close()
    return {
        "open_s": opened - started, **epochs[0], "again_rows_per_s": epochs[1]["rows_per_s"],
        "again_cpu_ms_per_1000": epochs[1]["cpu_ms_per_1000"], "opened_own_mib": open_mib,
        "own_mib": after["own"] - before["own"], "peak_rss_mib": after["peak"] - before["peak"],
    }  # fmt: skip


def epoch_of(transfer: TransferSet, words_N: np.ndarray, epoch: int) -> dict[str, float]:
    """Plan one epoch and gather the batches; the first epoch also verifies every shard."""
    started, sentences = time.perf_counter(), len(words_N)
    parts = transfer.plan(np.arange(sentences), seed=0, epoch=epoch)
    batches = [
        (number, part[batch])
        for number, part in enumerate(parts)
        for batch in plan_batches(
            words_N[part], batch_tokens=BATCH_TOKENS, seed=0, epoch=epoch, window=number
        )
    ]
    planned, cpu = time.perf_counter(), time.process_time()
    transfer.prefetch(parts[:2])
    transfer.gather(batches[0][1])
    first, window = time.perf_counter(), 0
    for number, batch in batches[1:]:
        if number != window:
            window = number
            transfer.prefetch(parts[window : window + 2])
        transfer.gather(batch)
    ended, cpu = time.perf_counter(), time.process_time() - cpu
    return {
        "windows": len(parts), "plan_s": planned - started, "first_s": first - planned,
        "rows_per_s": sentences / (ended - planned), "cpu_ms_per_1000": 1e6 * cpu / sentences,
    }  # fmt: skip


def in_a_process(folder: str, sentences: int, window_bytes: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", folder, str(sentences), str(window_bytes)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(process.stderr)
    return json.loads(process.stdout)


def drop_page_cache(folder: str) -> None:
    """Drop the written files from the page cache, so that every process reads from the disk."""
    for path in Path(folder).rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sentences", type=int, nargs="*", default=[20_000, 200_000])
    parser.add_argument("--size", type=int, default=384, help="components of a word's state")
    parser.add_argument("--window", type=int, default=256, help="MiB of a window")
    parser.add_argument(
        "--folder", default=None, help="where the transfer set is written (else the temporary folder)"
    )
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        folder, sentences, window_bytes = arguments.measure
        print(json.dumps(measure(folder, int(sentences), int(window_bytes))))
        return
    for sentences in arguments.sentences:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            started = time.perf_counter()
            size = write(folder, sentences, arguments.size)
            print(
                f"{sentences:,} sentences, {size / MIB:,.0f} MiB written in {time.perf_counter() - started:.0f} s"
            )
            for name, window_bytes in (
                ("one window", 2**62),
                (f"{arguments.window} MiB windows", arguments.window * MIB),
            ):
                drop_page_cache(folder)
                figures = in_a_process(folder, sentences, window_bytes)
                print(f"  {name:>16}: " + ", ".join(f"{key} {value:,.2f}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
