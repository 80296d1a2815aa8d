"""The baseline: which settings are trained on labels alone as well, so that a sweep shows what distillation gains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from raykd.figures.front import GOLD, front_of
from raykd.figures.table import Directions
from raykd.figures.trial import section
from raykd.sweep.recorder import Recorder
from raykd.sweep.records import Record
from raykd.sweep.scheduler import Trials
from raykd.sweep.settings import Setting


@dataclass(frozen=True)
class Twin:
    """A setting with gold labels alone; proposed, not searched for."""

    tree: Mapping[str, Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    sampler: Mapping[str, Any] = field(default_factory=dict)


class TwinList:
    """Proposes the twins of some records, one after the other."""

    exhaustive = True
    learns = False

    def __init__(self, records: Sequence[Record], objective: str):
        self.twins = [Twin(twin_tree(record, objective)) for record in records]
        self._rest = iter(self.twins)

    def ask(self, number: int, attempt: int, seen: Sequence[Record]) -> Twin | None:
        """The next twin."""
        return next(self._rest, None)


def twin_tree(record: Record, objective: str) -> dict[str, Any]:
    """The same setting with labels alone, for as many optimiser steps as the record's own runs took.

    Epochs would not do: without the unlabelled text an epoch is shorter, and a student that had more steps is better
    for that alone.
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
    """Records of the front and of each objective's best trial by its dev score, but for those on gold labels and
    those that miss a constraint."""
    done = [
        r for r in records if r.trial.role == "search" and r.trial.state == "COMPLETE" and r.trial.feasible
    ]
    front = {trial.number for trial in front_of([record.trial for record in done], objectives)}
    best: dict[str, Record] = {}
    for record in done:
        other = best.get(record.trial.objective)
        if other is None or _dev(record) > _dev(other):
            best[record.trial.objective] = record
    chosen = {record.trial.number for record in best.values()} | front
    return [r for r in done if r.trial.number in chosen and r.trial.objective != GOLD]


def twins_of_sweep(
    recorder: Recorder,
    objective: str,
    resolve: Callable[[Mapping[str, Any]], Setting],
    with_seeds: Callable[[Sequence[Record], Sequence[Record]], Sequence[Record]] = lambda some, every: some,
) -> Iterator[Trials]:
    """The phase `baseline`: the twins on `objective` that are not trained yet, to be trained before it goes on.
    `with_seeds` gives students the seeds that all of the records say."""
    records = recorder.records.load()
    students = with_seeds(worth_a_baseline(records, recorder.objectives), records)
    twins = TwinList(students, objective)
    complete = [record for record in records if record.trial.state == "COMPLETE"]
    known = {record.trial.run_ids for record in complete}
    todo = {resolve(twin.tree).run_ids for twin in twins.twins} - known
    recorder.listener.begin(recorder.phase, len(todo))
    if todo:
        yield Trials(recorder, twins, resolve, role="baseline", known=complete, most=len(todo))
    recorder.listener.end(recorder.phase, recorder.summary("baseline"))


def _dev(record: Record) -> float:
    return record.trial.scores.mean("dev") or 0.0
