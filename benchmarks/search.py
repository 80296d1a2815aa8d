"""The samplers on a recorded table: which share of the box do the trials so far dominate?

    python benchmarks/search.py STORE SWEEP [SWEEP ...] [--trials 40] [--seeds 5] [--samplers random,tpe,...]

The table is the complete trials of real sweeps of one space. A setting that a sampler proposes is answered by the
recorded trial of the same student that is nearest in its other settings: choices that differ, and the distance of
numbers as a share of their range. So scores are measured ones, and no student costs what another does. `plain_tpe` is
Optuna's TPE as it comes: each parameter by itself.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import optuna

from raykd.figures.front import front_hypervolume
from raykd.figures.trial import Trial
from raykd.spec import flatten_tree
from raykd.storage.store import Storage
from raykd.sweep import study as study_module
from raykd.sweep.records import Record, SweepRecords
from raykd.sweep.spec import SearchConfig, searched_tree
from raykd.sweep.study import Study

LOOKED_AT = (10, 20, 30, 40, 60, 80)


def plain_tpe(seed: int, startup: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.TPESampler(seed=seed)


class Table:
    """Recorded trials, found by a setting."""

    def __init__(self, records: Sequence[Record]):
        trained = {record.trial.run_ids: record for record in records if record.trial.state == "COMPLETE"}
        self.rows = [(settings_of(record.resolved), record.trial) for record in trained.values()]
        numbers: dict[str, list[float]] = {}
        for settings, _ in self.rows:
            for path, value in settings.items():
                if isinstance(value, float):
                    numbers.setdefault(path, []).append(math.log(value) if value > 0 else value)
        self.spans = {path: (max(own) - min(own)) or 1.0 for path, own in numbers.items()}

    def nearest(self, tree: Mapping[str, Any]) -> Trial:
        wanted = settings_of(tree)
        student = {path: value for path, value in wanted.items() if path.startswith("student.")}
        own = [(settings, trial) for settings, trial in self.rows if student.items() <= settings.items()]
        if not own:
            raise SystemExit(f"no recorded trial has the student {student}; record more trials of this space")
        return min(own, key=lambda row: self.distance(row[0], wanted))[1]

    def distance(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
        total = 0.0
        for path in {*one, *other}:
            a, b = one.get(path), other.get(path)
            if isinstance(a, float) and isinstance(b, float) and a > 0 and b > 0:
                total += abs(math.log(a / b)) / self.spans.get(path, 1.0)
            else:
                total += a != b
        return total


def settings_of(tree: Mapping[str, Any]) -> dict[str, Any]:
    return flatten_tree(searched_tree(tree))


def search(records: SweepRecords, table: Table, sampler: str, seed: int, trials: int) -> list[float]:
    """The share that is dominated after each trial."""
    config = SearchConfig.model_construct(sampler=sampler, seed=seed, objectives=dict(records.objectives))
    study, seen, volumes = Study(records.tree(), config), [], []
    teachers = records.teachers()
    for number in range(trials):
        known = {str(record.params) for record in seen}
        for attempt in range(20):
            suggestion = study.ask(number, attempt, seen)
            assert suggestion is not None
            if str(suggestion.params) not in known:
                break
        trial = replace(table.nearest(suggestion.tree), number=number, role="search", violations={})
        seen.append(
            Record(trial, suggestion.tree, suggestion.params, suggestion.distributions, suggestion.sampler)
        )
        volumes.append(front_hypervolume([each.trial for each in seen], teachers, records.objectives))
    return volumes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store")
    parser.add_argument("sweeps", nargs="+")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--samplers", default="random,plain_tpe,tpe,nsga2,gp")
    given = parser.parse_args()
    study_module.SAMPLERS = {**study_module.SAMPLERS, "plain_tpe": plain_tpe}  # type: ignore[assignment]
    every = [SweepRecords(Storage(given.store), name) for name in given.sweeps]
    table = Table([record for records in every for record in records.load()])
    first = every[0]
    whole = front_hypervolume(
        [replace(trial, number=n) for n, (_, trial) in enumerate(table.rows)],
        first.teachers(),
        first.objectives,
    )
    print(f"{len(table.rows)} recorded settings dominate {whole:.4f} of the box; shares of that, in percent:")
    looked = [count for count in LOOKED_AT if count <= given.trials]
    print("| sampler | " + " | ".join(f"{count} trials" for count in looked) + " | s/trial |")
    print("|---|" + "---:|" * (len(looked) + 1))
    for sampler in given.samplers.split(","):
        started = time.perf_counter()
        runs = [search(first, table, sampler, seed, given.trials) for seed in range(given.seeds)]
        each = (time.perf_counter() - started) / given.seeds / given.trials
        cells = []
        for count in looked:
            shares = [100 * volumes[count - 1] / whole for volumes in runs]
            cells.append(f"{fmean(shares):.1f} ±{stdev(shares) if len(shares) > 1 else 0:.1f}")
        print(f"| {sampler} | {' | '.join(cells)} | {each:.2f} |", flush=True)


if __name__ == "__main__":
    main()
