"""Samplers of the search on a table of recorded trials: the share of the dominated volume found after n trials.

    python benchmarks/search.py STORE SWEEP [SWEEP ...] [--trials 40] [--seeds 5] [--samplers random,tpe,...]

The table has the complete trials of real sweeps over one space. A setting that a sampler proposes is answered by the
nearest recorded trial of the same student. The distance counts choices that differ, and differences of numbers as a
share of their range. So all scores are measured ones. `plain_tpe` is Optuna's TPE with its defaults, which treats every
parameter by itself.
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
    """Recorded trials with their settings."""

    def __init__(self, records: Sequence[Record]):
        trained = {record.trial.run_ids: record for record in records if record.trial.state == "COMPLETE"}
        self.rows = [(settings_of(record.resolved), record.trial) for record in trained.values()]
        numbers: dict[str, list[float]] = {}
        for settings, _ in self.rows:
            for path, value in settings.items():
                if isinstance(value, float):
                    numbers.setdefault(path, []).append(math.log(value) if value > 0 else value)
        self.spans = {path: (max(values) - min(values)) or 1.0 for path, values in numbers.items()}

    def nearest(self, tree: Mapping[str, Any]) -> Trial:
        target = settings_of(tree)
        student = {path: value for path, value in target.items() if path.startswith("student.")}
        candidates = [
            (settings, trial) for settings, trial in self.rows if student.items() <= settings.items()
        ]
        if not candidates:
            raise SystemExit(f"no recorded trial has the student {student}; record more trials of this space")
        return min(candidates, key=lambda row: self.distance(row[0], target))[1]

    def distance(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
        total = 0.0
        for path in {*first, *second}:
            a, b = first.get(path), second.get(path)
            if isinstance(a, float) and isinstance(b, float) and a > 0 and b > 0:
                total += abs(math.log(a / b)) / self.spans.get(path, 1.0)
            else:
                total += a != b
        return total


def settings_of(tree: Mapping[str, Any]) -> dict[str, Any]:
    return flatten_tree(searched_tree(tree))


def search(records: SweepRecords, table: Table, sampler: str, seed: int, trials: int) -> list[float]:
    """Run one search on the table, and return the dominated volume after 1, 2, … trials."""
    config = SearchConfig.model_construct(sampler=sampler, seed=seed, objectives=dict(records.objectives))
    study, records_so_far, volumes = Study(records.tree(), config), [], []
    teachers = records.teachers()
    for number in range(trials):
        params_so_far = {str(record.params) for record in records_so_far}
        for attempt in range(20):
            suggestion = study.ask(number, attempt, records_so_far)
            assert suggestion is not None
            if str(suggestion.params) not in params_so_far:
                break
        trial = replace(table.nearest(suggestion.tree), number=number, role="search", violations={})
        records_so_far.append(
            Record(trial, suggestion.tree, suggestion.params, suggestion.distributions, suggestion.sampler)
        )
        volumes.append(
            front_hypervolume([record.trial for record in records_so_far], teachers, records.objectives)
        )
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
    arguments = parser.parse_args()
    study_module.SAMPLERS = {**study_module.SAMPLERS, "plain_tpe": plain_tpe}  # type: ignore[assignment]
    sweeps = [SweepRecords(Storage(arguments.store), name) for name in arguments.sweeps]
    table = Table([record for records in sweeps for record in records.load()])
    first = sweeps[0]
    whole = front_hypervolume(
        [replace(trial, number=n) for n, (_, trial) in enumerate(table.rows)],
        first.teachers(),
        first.objectives,
    )
    print(f"{len(table.rows)} recorded settings dominate {whole:.4f} of the box; shares of that, in percent:")
    looked = [count for count in LOOKED_AT if count <= arguments.trials]
    print("| sampler | " + " | ".join(f"{count} trials" for count in looked) + " | s/trial |")
    print("|---|" + "---:|" * (len(looked) + 1))
    for sampler in arguments.samplers.split(","):
        started = time.perf_counter()
        runs = [search(first, table, sampler, seed, arguments.trials) for seed in range(arguments.seeds)]
        trial_s = (time.perf_counter() - started) / arguments.seeds / arguments.trials
        cells = []
        for count in looked:
            shares = [100 * volumes[count - 1] / whole for volumes in runs]
            cells.append(f"{fmean(shares):.1f} ±{stdev(shares) if len(shares) > 1 else 0:.1f}")
        print(f"| {sampler} | {' | '.join(cells)} | {trial_s:.2f} |", flush=True)


if __name__ == "__main__":
    main()
