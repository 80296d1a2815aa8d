"""The phase `confirm`: run the students of the front over more seeds; existing runs are reused."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from typing_extensions import override

from raykd.figures.front import find_confirmation, pareto_front
from raykd.figures.trial import Role, Trial
from raykd.identity import PlainObject
from raykd.sweep.bookkeeping import Recorder
from raykd.sweep.phases.interface import Phase
from raykd.sweep.records import Record
from raykd.sweep.scheduler import Resolve, Trials, listed_trials


class AfterSearch(Phase):
    """A phase whose trials depend on those of the search; skipped if the search was given up."""

    name: ClassVar[Role]
    role = "students"

    @abstractmethod
    def is_wanted(self) -> bool:
        """True if the sweep file requests the phase."""

    @abstractmethod
    def foreseen_runs(self, trials: Sequence[Trial]) -> int:
        """Number of runs of the phase for the present students."""

    @abstractmethod
    def trials(self, recorder: Recorder) -> Iterator[Trials]:
        """Begin the phase, and do the missing trials."""

    @override
    def is_skipped(self) -> bool:
        return bool(self.context.given_up) or not self.is_wanted()

    @override
    def planned(self) -> int:
        return self.sweep.most_runs if self.is_wanted() else 0

    @override
    def run(self) -> Iterator[Trials]:
        return self.trials(replace(self.context.recorder, phase=self.name))

    @override
    def summary(self) -> str:
        return self.context.recorder.summary(self.name)


class Confirm(AfterSearch):
    """Runs the missing seeds of the front's students."""

    name = "confirm"

    @override
    def is_wanted(self) -> bool:
        return self.sweep.file.search.confirm is not None

    @override
    def foreseen_runs(self, trials: Sequence[Trial]) -> int:
        search = self.sweep.file.search
        return (search.seeds_in_all - search.runs_per_setting) * len(
            pareto_front(trials, self.sweep.file.objectives)
        )

    @override
    def trials(self, recorder: Recorder) -> Iterator[Trials]:
        return confirm_front(recorder, self.sweep.file.search.seeds_in_all, self.sweep.settings.of)


def confirm_front(recorder: Recorder, seeds: int, resolve: Resolve) -> Iterator[Trials]:
    """Yield the missing trials of the front's students over `seeds` seeds."""
    records = recorder.records.load()
    front = {
        trial.number for trial in pareto_front([record.trial for record in records], recorder.objectives)
    }
    complete = [
        record for record in records if record.trial.role == "confirm" and record.trial.state == "COMPLETE"
    ]
    trees = [over_seeds(record.resolved, seeds) for record in records if record.trial.number in front]
    yield from listed_trials(recorder, trees, resolve, role="confirm", complete_records=complete)


def over_seeds(resolved: PlainObject, seeds: int) -> PlainObject:
    """Return the setting of a record over `seeds` seeds."""
    return {**resolved, "search": {**resolved.get("search", {}), "runs_per_setting": seeds}}


def with_seeds(records: Sequence[Record], all_records: Sequence[Record]) -> list[Record]:
    """Return the records, each replaced by its confirmation among `all_records`, if there is one."""
    confirmed = []
    for record in records:
        by = find_confirmation(record.trial, [candidate.trial for candidate in all_records])
        resolved = next(
            (candidate.resolved for candidate in all_records if candidate.trial is by), record.resolved
        )
        confirmed.append(Record(record.trial, resolved))
    return confirmed
