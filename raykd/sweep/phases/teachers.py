"""The phase `teachers`: train the missing ones. `RunsPhase` does any list of named runs in this way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from typing_extensions import override

from raykd.errors import RunError
from raykd.recipes.run import Run
from raykd.sweep.phases.interface import Phase, PhaseContext
from raykd.sweep.scheduler import RunList
from raykd.training.execute import find_result, unfinished_runs, update_model_paths
from raykd.training.model_folder import is_trained

NamedRuns = Sequence[tuple[str, Run]]


class RunsPhase(Phase):
    """Does the runs without a result, group after group: later `groups` need the results of earlier ones.

    Raises:
        RunError: with the name of each failed run; the results of the others are kept.
    """

    def __init__(self, context: PhaseContext, *groups: NamedRuns):
        super().__init__(context)
        self.groups = groups
        self.trained = self.missing(groups[0])
        """Runs of the first group without a result: the phase does them."""

    def missing(self, runs: NamedRuns) -> list[tuple[str, Run]]:
        """Return the runs without a result in the store."""
        return unfinished_runs(self.sweep.storage, list({run.id: (name, run) for name, run in runs}.values()))

    @override
    def planned(self) -> int:
        return len(self.missing([run for runs in self.groups for run in runs]))

    @override
    def run(self) -> Iterator[RunList]:
        self.listener.begin(self.name, self.planned())
        for runs in self.groups:
            if not (todo := self.missing(runs)):
                continue
            scheduler = RunList(todo, self.name, self.listener)
            yield scheduler
            if scheduler.failed:
                failed = "; ".join(f"{name} failed: {reason}" for name, reason in scheduler.failed.items())
                raise RunError(f"{self.name}: {failed}")

    @override
    def summary(self) -> str:
        trained = sum(is_trained(run) for _, run in self.trained)
        evaluated = len(self.trained) - trained
        counts = f"{trained} trained" + (f", {evaluated} evaluated" if evaluated else "")
        return f"{counts}, {len(self.groups[0]) - len(self.trained)} found in the store"


class Teachers(RunsPhase):
    """Trains teachers; an ensemble is evaluated after its members are trained."""

    name, role = "teachers", "teachers"

    def __init__(self, context: PhaseContext, charge: Callable[[float], None] = lambda seconds: None):
        """Begin the phase.

        Args:
            context: State shared by the phases.
            charge: Called with the seconds of each run, for the budget.
        """
        super().__init__(context, context.sweep.members, context.sweep.teachers)
        self._charge = charge

    @override
    def run(self) -> Iterator[RunList]:
        yield from super().run()
        storage = self.sweep.storage
        for _, run in {run.id: (name, run) for runs in self.groups for name, run in runs}.values():
            update_model_paths(storage, run)
        for _, run in self.trained:
            result = find_result(storage, run)
            self._charge(result.wall_s if result is not None else 0.0)
