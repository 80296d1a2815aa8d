"""Early stopping: epochs saved and volume lost, by replaying recorded sweeps under the rule.

    python benchmarks/stopping.py STORE SWEEP [SWEEP …] [--set eta=3 …] [--concurrency 1 4] [--orders 10]

The sweeps ran without stopping. They are replayed in the order of their trials, and in `--orders` random orders.
`--concurrency` is the number of trials at once; these advance in turn, an epoch each. The table shows the share of the
epochs that are trained, and the share of the hypervolume (against the teacher) that the complete trials keep.
"""

from __future__ import annotations

import argparse
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from raykd.figures.front import front_hypervolume, pareto_front
from raykd.figures.results import RunResult
from raykd.figures.table import Directions
from raykd.figures.trial import Teacher, Trial
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.sweep.early_stopping import EarlyStopper, StoppingConfig
from raykd.sweep.records import SweepRecords


@dataclass(frozen=True)
class Recorded:
    """A complete trial with runs and results."""

    trial: Trial
    runs: tuple[tuple[Run, RunResult], ...]

    @property
    def seeds(self) -> tuple[tuple[Run, ...], ...]:
        by_seed: dict[int, list[Run]] = {}
        for run, _ in self.runs:
            by_seed.setdefault(run.training["seed"], []).append(run)
        return tuple(map(tuple, by_seed.values()))

    @property
    def reports(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Id of the run and metrics of the epoch, one run after the other."""
        return [(run.id, metrics) for run, result in self.runs for metrics in result.epochs]


@dataclass(frozen=True)
class Replayed:
    """The outcome of a sweep under the rule.

    Attributes:
        epochs: Epochs trained.
        of: Epochs without stopping.
        complete: Trials that were not stopped.
        reasons: Number of a stopped trial to the reason.
    """

    epochs: int
    of: int
    complete: tuple[Trial, ...]
    reasons: Mapping[int, str]

    @property
    def share(self) -> float:
        return self.epochs / self.of


def recorded(storage: Storage, name: str) -> tuple[list[Recorded], list[Teacher], Directions]:
    """Return the complete trials of a stored sweep, the teachers and the objectives."""
    records = SweepRecords(storage, name)
    trials = [r.trial for r in records.load() if r.trial.role == "search" and r.trial.state == "COMPLETE"]
    return (
        [Recorded(trial, tuple(records.runs(trial))) for trial in trials],
        records.teachers(),
        records.objectives,
    )


def replay(
    trials: Sequence[Recorded],
    config: StoppingConfig,
    objectives: Directions,
    teacher: Teacher,
    *,
    at_once: int,
) -> Replayed:
    """Replay trials in order, `at_once` at a time, an epoch of each in turn."""
    stopper, waiting = EarlyStopper(config, objectives, teacher.cost), deque(trials)
    running: list[tuple[Recorded, deque[tuple[str, Mapping[str, Any]]]]] = []
    epochs, complete, reasons = 0, [], {}
    while waiting or running:
        while waiting and len(running) < at_once:
            recorded_trial = waiting.popleft()
            stopper.begin(recorded_trial.trial, recorded_trial.seeds)
            running.append((recorded_trial, deque(recorded_trial.reports)))
        for item in list(running):
            recorded_trial, reports = item
            run_id, metrics = reports.popleft()
            epochs += 1
            reason = stopper.epoch(recorded_trial.trial.number, run_id, metrics)
            if reason and reports:
                reasons[recorded_trial.trial.number] = reason
                running.remove(item)
            elif not reports:
                stopper.ended(recorded_trial.trial, [result for _, result in recorded_trial.runs])
                complete.append(recorded_trial.trial)
                running.remove(item)
    return Replayed(epochs, sum(len(trial.reports) for trial in trials), tuple(complete), reasons)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store")
    parser.add_argument("sweeps", nargs="+")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--concurrency", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--why", action="store_true")
    arguments = parser.parse_args()
    settings = {key: json.loads(value) for key, value in (setting.split("=", 1) for setting in arguments.set)}
    config = StoppingConfig(**{"kind": "mo_asha", **settings})
    heads = (
        ("trials", 6),
        ("at once", 7),
        ("order", 7),
        ("epochs", 7),
        ("volume", 7),
        ("stopped", 7),
        ("of front", 8),
    )
    print(f"{'sweep':14}", *(f"{head:>{width}}" for head, width in heads))
    for name in arguments.sweeps:
        trials, teachers, objectives = recorded(Storage(arguments.store), name)
        for at_once in arguments.concurrency:
            for label, orders in (("own", [trials]), ("random", _orders(trials, arguments.orders))):
                outcomes = [
                    replay(order, config, objectives, teachers[0], at_once=at_once) for order in orders
                ]
                if outcomes:
                    print(_line(name, label, at_once, trials, outcomes, teachers, objectives))
                if arguments.why and label == "own":
                    for number, reason in outcomes[0].reasons.items():
                        print(f"  #{number:02d} {reason}")


def _orders(trials: Sequence[Recorded], count: int) -> list[list[Recorded]]:
    """Return random orders of the trials, numbered anew: the rule identifies trials by number."""
    shuffled = [Random(seed).sample(list(trials), len(trials)) for seed in range(count)]
    return [
        [
            replace(recorded_trial, trial=replace(recorded_trial.trial, number=number))
            for number, recorded_trial in enumerate(order)
        ]
        for order in shuffled
    ]


def _line(
    name: str, label: str, at_once: int, trials: Sequence[Recorded], outcomes: Sequence[Replayed],
    teachers: Sequence[Teacher], objectives: Directions,
) -> str:  # fmt: skip
    whole = [trial.trial for trial in trials]
    volume = front_hypervolume(whole, teachers, objectives)
    volumes = [front_hypervolume(outcome.complete, teachers, objectives) / volume for outcome in outcomes]
    shares = [outcome.share for outcome in outcomes]
    front = {trial.run_ids for trial in pareto_front(whole, objectives)}
    lost = [len(front - {trial.run_ids for trial in outcome.complete}) for outcome in outcomes]
    mean = sum(shares) / len(shares), sum(volumes) / len(volumes)
    least = f" (least {100 * min(volumes):.1f})" if len(outcomes) > 1 else ""
    stopped = sum(len(outcome.reasons) for outcome in outcomes) / len(outcomes)
    return (
        f"{name:14} {len(trials):6} {at_once:7} {label:>7} {100 * mean[0]:6.1f}% {100 * mean[1]:6.1f}%{least} "
        f"{stopped:7.1f} {sum(lost) / len(lost):5.1f}/{len(front)}"
    )


if __name__ == "__main__":
    main()
