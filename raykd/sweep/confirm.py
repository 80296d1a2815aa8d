"""Confirmation: the students of the front run again over more seeds than the search had, whose runs are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from raykd.figures.front import confirmation, front_of
from raykd.sweep.baseline import Twin
from raykd.sweep.recorder import Recorder
from raykd.sweep.records import Record
from raykd.sweep.scheduler import Trials
from raykd.sweep.settings import Setting


class Confirmations:
    """Proposes some settings over so many seeds, one after the other."""

    exhaustive = True
    learns = False

    def __init__(self, records: Sequence[Record], seeds: int):
        self.proposals = [Twin(over_seeds(record.resolved, seeds)) for record in records]
        self._rest = iter(self.proposals)

    def ask(self, number: int, attempt: int, seen: Sequence[Record]) -> Twin | None:
        """The next setting."""
        return next(self._rest, None)


def over_seeds(resolved: Mapping[str, Any], seeds: int) -> dict[str, Any]:
    """The same setting over so many seeds."""
    return {**resolved, "search": {**resolved.get("search", {}), "runs_per_setting": seeds}}


def confirm_front(
    recorder: Recorder,
    seeds: int,
    resolve: Callable[[Mapping[str, Any]], Setting],
) -> Iterator[Trials]:
    """The phase `confirm`: what the front lacks of so many seeds, to be run before it goes on."""
    records = recorder.records.load()
    front = {trial.number for trial in front_of([each.trial for each in records], recorder.objectives)}
    known = [each for each in records if each.trial.role == "confirm" and each.trial.state == "COMPLETE"]
    confirmed = {each.trial.run_ids for each in known}
    wanted = Confirmations([each for each in records if each.trial.number in front], seeds)
    todo = [each for each in wanted.proposals if resolve(each.tree).run_ids not in confirmed]
    recorder.listener.begin(recorder.phase, len(todo))
    if todo:
        yield Trials(recorder, wanted, resolve, role="confirm", known=known, most=len(todo))
    recorder.listener.end(recorder.phase, recorder.summary("confirm"))


def with_seeds(records: Sequence[Record], every: Sequence[Record]) -> list[Record]:
    """Each of `records` as it was confirmed by one of `every`, where it was: over as many seeds."""
    found = []
    for record in records:
        by = confirmation(record.trial, [each.trial for each in every])
        resolved = next((each.resolved for each in every if each.trial is by), record.resolved)
        found.append(Record(record.trial, resolved))
    return found
