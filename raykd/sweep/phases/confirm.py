"""The phase `confirm`: the front's students run over more seeds than the search had, whose runs are found."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from raykd.figures.front import find_confirmation, pareto_front
from raykd.figures.trial import Role, Trial
from raykd.identity import PlainObject
from raykd.sweep.bookkeeping import Recorder
from raykd.sweep.phases.interface import Phase
from raykd.sweep.records import Record
from raykd.sweep.scheduler import Resolve, Trials, listed_trials


class AfterSearch(Phase):
    """A phase whose trials follow from those of the search. There is none where the search was given up."""

    name: ClassVar[Role]
    role = "students"

    @abstractmethod
    def is_wanted(self) -> bool:
        """Whether the sweep file asks for the phase."""

    @abstractmethod
    def foreseen_runs(self, trials: Sequence[Trial]) -> int:
        """The number of runs that the phase takes for the students found so far."""

    @abstractmethod
    def trials(self, recorder: Recorder) -> Iterator[Trials]:
        """Begin the phase, and do what is missing."""

    def is_skipped(self) -> bool:
        return bool(self.context.given_up) or not self.is_wanted()

    def planned(self) -> int:
        return self.sweep.most_runs if self.is_wanted() else 0

    def run(self) -> Iterator[Trials]:
        return self.trials(replace(self.context.recorder, phase=self.name))

    def summary(self) -> str:
        return self.context.recorder.summary(self.name)


class Confirm(AfterSearch):
    """Runs what the front's students lack of so many seeds."""

    name = "confirm"

    def is_wanted(self) -> bool:
        return self.sweep.file.search.confirm is not None

    def foreseen_runs(self, trials: Sequence[Trial]) -> int:
        search = self.sweep.file.search
        return (search.seeds_in_all - search.runs_per_setting) * len(
            pareto_front(trials, self.sweep.file.objectives)
        )

    def trials(self, recorder: Recorder) -> Iterator[Trials]:
        return confirm_front(recorder, self.sweep.file.search.seeds_in_all, self.sweep.settings.of)


def confirm_front(recorder: Recorder, seeds: int, resolve: Resolve) -> Iterator[Trials]:
    """The trials that run the front's students over so many seeds."""
    records = recorder.records.load()
    front = {trial.number for trial in pareto_front([each.trial for each in records], recorder.objectives)}
    known = [each for each in records if each.trial.role == "confirm" and each.trial.state == "COMPLETE"]
    trees = [over_seeds(each.resolved, seeds) for each in records if each.trial.number in front]
    yield from listed_trials(recorder, trees, resolve, role="confirm", known=known)


def over_seeds(resolved: PlainObject, seeds: int) -> PlainObject:
    """The same setting over so many seeds."""
    return {**resolved, "search": {**resolved.get("search", {}), "runs_per_setting": seeds}}


def with_seeds(records: Sequence[Record], every: Sequence[Record]) -> list[Record]:
    """Each of `records` as it was confirmed by one of `every`, where it was: over as many seeds."""
    found = []
    for record in records:
        by = find_confirmation(record.trial, [each.trial for each in every])
        resolved = next((each.resolved for each in every if each.trial is by), record.resolved)
        found.append(Record(record.trial, resolved))
    return found
