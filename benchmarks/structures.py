"""Exact inference compared with other libraries: ratios of time, measured in one process.

    python benchmarks/structures.py                 the full table, one and two threads (an hour; alone on the machine)
    python benchmarks/structures.py --quick         two cells, one thread (a minute)
    python benchmarks/structures.py --jobs kbest10 viterbi --cells 32,16,9 --threads 1

Contestants alternate after one call each to warm up. A ratio is a peer's median time over raykd's. Scores are float32,
lengths ragged in T/2..T. On a shared machine, use `--cpu-time` to count processor time (one thread only).

Peers are the packages of the extra `benchmarks` (pytorch-crf, torch-struct, supar), as far as they are installed, and
`plain`, the log-space recursion of `raykd.structures.reference` under autograd.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from statistics import median

import torch
from structures_contestants import Problem, ours, plain, problem_of, pytorch_crf, supar, torch_struct

CELLS = tuple(itertools.product((32, 128, 512), (16, 32, 128), (9, 17, 41)))
QUICK = ((32, 16, 9), (128, 32, 17))
# Limit of numbers in the tensors of a peer: with more, peers that build several [B, T, Y, Y] need over 24 GiB.
NUMBERS_AT_MOST = 720_000_000
PEERS = {"pytorch-crf": pytorch_crf, "torch-struct": torch_struct, "supar": supar, "plain": plain}
BUILD_PAIRS = {
    "torch-struct": 12,
    "supar": 1,
    "plain": 1,
    "pytorch-crf": 1,
}  # [B, T, Y, Y] tensors that a peer holds at once
JOBS = tuple(ours())


def installed(names: Iterable[str]) -> dict[str, dict[str, Callable[[Problem], object]]]:
    peers = {}
    for name in names:
        try:
            peers[name] = PEERS[name]()
        except ImportError as missing:
            print(f"{name}: skipped ({missing})", file=sys.stderr)
    return peers


def medians(
    contestants: dict[str, Callable[[], object]], rounds: int, patience: float, clock: Callable[[], float]
) -> dict[str, float]:
    """Return the median seconds by contestant, alternating.

    A contestant runs only once if the first call takes longer than `patience` seconds.
    """
    first: dict[str, float] = {}
    for name, call in contestants.items():
        try:
            if name == "ours":
                call()  # loads the kernels
            first[name] = seconds(call, 1, clock)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:90]}", file=sys.stderr)
    times = {name: [spent] if spent > patience else [] for name, spent in first.items()}
    for _ in range(rounds):
        for name, spent in first.items():
            if spent <= patience:
                times[name].append(seconds(contestants[name], max(1, min(50, int(0.02 / spent))), clock))
    return {name: median(spent) for name, spent in times.items()}


def seconds(call: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        call()
    return max((clock() - start) / repeats, 1e-9)


def run(
    jobs: Iterable[str],
    cells: Iterable[tuple[int, ...]],
    against: Iterable[str],
    threads: int,
    measure: Callable,
) -> None:
    torch.set_num_threads(threads)
    peers, mine = installed(against), ours()
    for job in jobs:
        able = [name for name, calls in peers.items() if job in calls]
        print(f"\n{job}, {threads} thread(s): how many times slower than ours (ms)")
        print(
            f"{'B':>5}{'T':>5}{'Y':>4}{'ours ms':>10}" + "".join(f"{name:>14}" for name in able), flush=True
        )
        ratios: dict[str, list[float]] = {name: [] for name in able}
        for cell in cells:
            problem = problem_of(*cell)
            pairs = cell[0] * cell[1] * cell[2] ** 2
            fits = [name for name in able if pairs * BUILD_PAIRS[name] <= NUMBERS_AT_MOST]
            contestants = {name: partial(peers[name][job], problem) for name in fits}
            spent = measure({"ours": partial(mine[job], problem), **contestants})
            line = f"{cell[0]:>5}{cell[1]:>5}{cell[2]:>4}{spent['ours'] * 1e3:>10.3f}"
            for name in able:
                if name in spent:
                    ratios[name].append(spent[name] / spent["ours"])
                line += f"{spent[name] / spent['ours']:>14.1f}" if name in spent else f"{'–':>14}"
            print(line, flush=True)
        for name, measured in ratios.items():
            if measured:
                mean = math.exp(sum(map(math.log, measured)) / len(measured))
                print(
                    f"  {name}: min {min(measured):.1f}  geometric mean {mean:.1f}  max {max(measured):.1f}"
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two cells, one thread, three rounds")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument("--peers", nargs="+", choices=tuple(PEERS), default=tuple(PEERS))
    parser.add_argument("--cells", nargs="+", help="B,T,Y")
    parser.add_argument("--threads", nargs="+", type=int)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--patience", type=float, default=2.0, help="seconds: a slower contestant runs once per cell"
    )
    parser.add_argument("--cpu-time", action="store_true", help="count this process's own time")
    chosen = parser.parse_args()
    cells = QUICK if chosen.quick else CELLS
    if chosen.cells:
        cells = tuple(tuple(int(part) for part in cell.split(",")) for cell in chosen.cells)
    rounds = 3 if chosen.quick else chosen.rounds
    clock = time.process_time if chosen.cpu_time else time.perf_counter
    for threads in chosen.threads or ((1,) if chosen.quick else (1, 2)):
        run(
            chosen.jobs,
            cells,
            chosen.peers,
            threads,
            partial(medians, rounds=rounds, patience=chosen.patience, clock=clock),
        )


if __name__ == "__main__":
    main()
