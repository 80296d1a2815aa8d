"""The phase `trials`: the search. It ends early if the budget is spent, or if most trials fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from typing_extensions import override

from raykd.cluster.listener import Listener
from raykd.figures.trial import UNFINISHED, Trial, teacher_score
from raykd.recipes.signal_needs import recipe_needs
from raykd.sweep.bookkeeping import Recorder
from raykd.sweep.budget import Budget
from raykd.sweep.constraints import Constraints
from raykd.sweep.early_stopping import EarlyStopper
from raykd.sweep.phases.confirm import AfterSearch
from raykd.sweep.phases.costs import cost_of, keep_grid, renew_costs
from raykd.sweep.phases.interface import Phase, PhaseContext
from raykd.sweep.records import Record
from raykd.sweep.scheduler import Trials
from raykd.sweep.study import Study
from raykd.sweep.sweep import Sweep
from raykd.sweep.teacher_rows import log_teachers, save_teachers
from raykd.tracking.sweep_pages import SweepPages


class Search(Phase):
    """Does the remaining trials; teachers and costs are known before."""

    name, role = "trials", "students"

    def __init__(
        self, context: PhaseContext, pages: SweepPages, budget: Budget, later: Sequence[AfterSearch]
    ):
        """Begin the phase.

        Args:
            context: State shared by the phases.
            pages: Pages of the sweep in MLflow.
            budget: The budget.
            later: Phases for which the search leaves a part of the budget.
        """
        super().__init__(context)
        self._pages, self._budget, self._later = pages, budget, later
        self._summary = ""

    @override
    def planned(self) -> int:
        return self.sweep.most_runs if len(self.sweep.earlier()) < self.sweep.trials else 0

    @override
    def run(self) -> Iterator[Trials]:
        sweep = self.sweep
        recorder = self.context.recorder = self._recorder()
        earlier = [record for record in sweep.records.load() if record.trial.role == "search"]
        recorder.republish_ended_trials(sweep.settings.of)
        ended = sum(record.trial.state not in UNFINISHED for record in earlier)
        config = sweep.file.search.model_copy(update={"objectives": dict(sweep.file.objectives)})
        trials = Trials(
            recorder, Study(sweep.document.tree, config, sweep.starts.params), sweep.settings.of, role="search",
            earlier_records=earlier, limit=sweep.trials - len(earlier), at_once=self.context.at_once, spent=self._spent,
            stopper=stopper_of(sweep, earlier),
        )  # fmt: skip
        self.listener.begin(self.name, sweep.trials, done_before=ended)
        if ended < sweep.trials:
            yield trials
        late = f"; {trials.ended_by}" if trials.ended_by else ""
        self._summary = recorder.summary("search") + late
        self.context.given_up = trials.given_up

    @override
    def summary(self) -> str:
        return self._summary

    def _recorder(self) -> Recorder:
        """Return a recorder with the costs of all settings; the teachers' rows are in the store."""
        sweep = self.sweep
        note_unused_text(sweep, self.listener)
        teachers = save_teachers(sweep, self.listener)
        log_teachers(sweep, teachers, self._pages)
        score_name = sweep.file.task_entry.score_name
        constraints = Constraints.from_sources(
            sweep.file.search.constraints, score_name, teacher_score(teachers)
        )
        recorder = Recorder(
            sweep.records, self._pages, self.listener, sweep.file.objectives,
            lambda setting: cost_of(sweep, setting), constraints, grid=keep_grid(sweep),
        )  # fmt: skip
        renew_costs(sweep, recorder)
        return recorder

    def _spent(self, trials: Iterable[Trial]) -> str:
        trials = list(trials)
        seconds, gpu_hours = self._budget.remaining(trials)
        self.listener.budget(seconds=seconds, gpu_hours=gpu_hours)
        runs_after = sum(phase.foreseen_runs(trials) for phase in self._later)
        spent = self._budget.reason_to_stop(trials, runs_after / self.sweep.file.search.runs_per_setting)
        return spent and f"{spent}, --resume with a larger one goes on"


def note_unused_text(sweep: Sweep, listener: Listener) -> None:
    """Show a note if some runs train on more text than others."""
    count = sweep.preparation.corpus.parts["unlabelled"].num_rows
    gold = sweep.file.baseline == "gold" or any(
        not recipe_needs(variant, unlabelled=True) for variant in sweep.variants
    )
    if count and gold:
        listener.note(
            f"gold is trained without the {count:,} unlabelled sentences; other objectives use them"
        )


def stopper_of(sweep: Sweep, records: Iterable[Record]) -> EarlyStopper | None:
    """Return the early stopper of the search, informed of finished trials; None if nothing is stopped early."""
    config = sweep.file.search.stopping
    if not config.stops_trials:
        return None
    teachers = sweep.records.teachers()
    stopper = EarlyStopper(config, sweep.file.objectives, teachers[0].cost if teachers else {})
    for record in records:
        if record.trial.state in ("COMPLETE", "PRUNED"):
            setting = sweep.settings.of(record.resolved)
            stopper.begin(record.trial, setting.seeds, record.epochs)
            stopper.ended(record.trial, setting.found_results(sweep.storage))
    return stopper
