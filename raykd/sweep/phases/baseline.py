"""The phase `baseline`: train some students on labels alone as well, to show the gain by distillation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from typing_extensions import override

from raykd.figures.front import GOLD, pareto_front
from raykd.figures.table import Directions
from raykd.figures.trial import Trial, section
from raykd.identity import PlainObject
from raykd.sweep.bookkeeping import Recorder
from raykd.sweep.phases.confirm import AfterSearch, with_seeds
from raykd.sweep.records import Record
from raykd.sweep.scheduler import Resolve, Trials, listed_trials


class Baseline(AfterSearch):
    """Trains the missing twins, over as many seeds as their students have."""

    name = "baseline"

    @override
    def is_wanted(self) -> bool:
        return self.sweep.file.baseline != "none"

    @override
    def foreseen_runs(self, trials: Sequence[Trial]) -> int:
        if not self.is_wanted():
            return 0
        records = [Record(trial, {}) for trial in trials]
        return self.sweep.file.search.seeds_in_all * len(
            worth_a_baseline(records, self.sweep.file.objectives)
        )

    @override
    def trials(self, recorder: Recorder) -> Iterator[Trials]:
        return twins_of_sweep(recorder, self.sweep.file.baseline, self.sweep.settings.of)


def twins_of_sweep(recorder: Recorder, objective: str, resolve: Resolve) -> Iterator[Trials]:
    """Yield the trials of the missing twins: selected students, trained with `objective` instead."""
    records = recorder.records.load()
    students = with_seeds(worth_a_baseline(records, recorder.objectives), records)
    complete = [record for record in records if record.trial.state == "COMPLETE"]
    trees = [twin_tree(record, objective) for record in students]
    yield from listed_trials(recorder, trees, resolve, role="baseline", complete_records=complete)


def twin_tree(record: Record, objective: str) -> PlainObject:
    """Return the setting of a record with labels alone, for as many optimiser steps as its runs had.

    Equal epochs would not do: without the unlabelled text an epoch is shorter, and a student with more steps is better
    for this alone.
    """
    resolved = record.resolved
    tree = {key: value for key, value in resolved.items() if key not in ("stages", "strategy", "start_from")}
    if "stages" in resolved or "strategy" in resolved:
        # As the trial shows it: a single stage's own training as the run's.
        tree |= {"training": section(record.trial.settings, "training")}
    if scope := (resolved.get("strategy") or {}).get("scope"):
        tree["student"] = {**resolved["student"], "scope": scope}
    schedule = {"epochs": None, "max_steps": record.trial.steps, "patience": None}
    return {**tree, "schedule": schedule, "objective": {"kind": objective}}


def worth_a_baseline(records: Sequence[Record], objectives: Directions) -> list[Record]:
    """Return the records of the front, and the best trial of each objective by dev score.

    Trials on gold labels and trials that miss a constraint are left out.
    """
    complete = [
        r for r in records if r.trial.role == "search" and r.trial.state == "COMPLETE" and r.trial.feasible
    ]
    front = {trial.number for trial in pareto_front([record.trial for record in complete], objectives)}
    best: dict[str, Record] = {}
    for record in complete:
        best_so_far = best.get(record.trial.objective)
        if best_so_far is None or _dev(record) > _dev(best_so_far):
            best[record.trial.objective] = record
    chosen = {record.trial.number for record in best.values()} | front
    return [r for r in complete if r.trial.number in chosen and r.trial.objective != GOLD]


def _dev(record: Record) -> float:
    return record.trial.scores.mean("dev") or 0.0
