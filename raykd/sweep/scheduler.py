"""Schedulers: the jobs of a sweep's phases, either a fixed list of runs or the trials of a search."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from raykd.cluster.jobs import Job, Outcome, Scheduler, Wait
from raykd.cluster.listener import Listener, Unit
from raykd.figures.trial import STRATEGY, UNFINISHED, Role, Trial
from raykd.identity import PlainObject
from raykd.recipes.run import Run
from raykd.sweep.bookkeeping import Recorder, epoch_event
from raykd.sweep.early_stopping import EarlyStopper
from raykd.sweep.failure_limit import reason_to_give_up
from raykd.sweep.outcome import complete_trial, flatten_settings, seed_paths, with_cost
from raykd.sweep.records import Record, Suggestion
from raykd.sweep.settings import Setting
from raykd.sweep.spec import FREE
from raykd.tasks import find_task
from raykd.training.checkpoint import reported_epochs

Resolve = Callable[[PlainObject], Setting]
"""Resolves a plain tree."""

# A sampler that proposes only settings that were tried or miss a constraint has exhausted the space, or nearly so.
MOST_REPEATS = 100
NOTHING_NEW = (
    f"the sampler found no new setting in {MOST_REPEATS} proposals (they were tried, or cost more than "
    "search.constraints allows); set search.sampler: grid, which tries each setting of a finite space once"
)


class RunList:
    """A fixed list of runs: teachers, or the runs of `raykd distill`."""

    def __init__(self, runs: Sequence[tuple[str, Run]], phase: str, listener: Listener):
        self._todo, self._phase, self._listener = list(runs), phase, listener
        self._runs = {run.id: (name, run) for name, run in runs}
        self._metric = find_task(runs[0][1].task).score_label if runs else ""
        self.failed: dict[str, str] = {}
        """Name of a failed run → reason."""

    def next(self) -> Job | None:
        """Return the next run of the list."""
        if not self._todo:
            return None
        name, run = self._todo.pop(0)
        self._listener.started(Unit(self._phase, run.id, {run.id: name}, trains=True))
        return Job(run.id, (run,))

    def epoch(self, key: str, run_id: str, metrics: PlainObject) -> Literal["continue", "stop"]:
        """Show the epoch."""
        name, run = self._runs[run_id]
        self._listener.epoch(self._phase, epoch_event(key, name, "", run, self._metric, metrics))
        return "continue"

    def ended(self, key: str, outcome: Outcome) -> None:
        """Keep the reason of a failure."""
        name, _ = self._runs[key]
        self._listener.ended(key)
        self._listener.advance(self._phase, detail=name)
        if outcome.state != "COMPLETE":
            self.failed[name] = outcome.message


class InTurn:
    """Several schedulers, one after another, so that actors are kept from one phase to the next.

    A scheduler is requested when all jobs of the one before have ended, and may depend on their outcomes.
    """

    def __init__(self, schedulers: Iterator[Scheduler]):
        self._schedulers, self._current = schedulers, next(schedulers, None)
        self._open, self._exhausted = 0, False

    def next(self) -> Job | Wait | None:
        """Return the current scheduler's next job, or "wait" until its jobs end; None after the last one."""
        while self._current is not None:
            if not self._exhausted:
                job = self._current.next()
                self._open += isinstance(job, Job)
                if job is not None:
                    return job
                self._exhausted = True  # a sampler that only repeats itself need not be asked again
            if self._open:
                return "wait"
            self._current, self._exhausted = next(self._schedulers, None), False
        return None

    def epoch(self, key: str, run_id: str, metrics: PlainObject) -> Literal["continue", "stop"]:
        """Pass the epoch on."""
        assert self._current is not None
        return self._current.epoch(key, run_id, metrics)

    def ended(self, key: str, outcome: Outcome) -> None:
        """Pass the outcome on."""
        assert self._current is not None
        self._open -= 1
        self._current.ended(key, outcome)


class Proposer(Protocol):
    """A source of trials: the study of a search, or a fixed list."""

    @property
    def exhaustive(self) -> bool:
        """True if the proposals end by themselves; a sampler could repeat itself for ever."""
        ...

    @property
    def learns(self) -> bool:
        """True if proposals depend on the outcomes of earlier trials."""
        ...

    def ask(self, number: int, attempt: int, earlier: Sequence[Record]) -> Suggestion | None:
        """Propose the setting of a trial.

        Args:
            number: Number of the trial.
            attempt: Number of earlier proposals for this trial that were known already.
            earlier: Earlier trials.

        Returns:
            None if there are no more settings.
        """
        ...


class SettingList:
    """Proposes the settings of a list, one after another."""

    exhaustive = True
    learns = False

    def __init__(self, trees: Iterable[PlainObject]):
        self._rest = iter([Suggestion(tree) for tree in trees])

    def ask(self, number: int, attempt: int, earlier: Sequence[Record]) -> Suggestion | None:
        """Return the next setting."""
        return next(self._rest, None)


@dataclass(frozen=True)
class _Running:
    record: Record
    setting: Setting


class Trials:
    """The trials of a proposer, no setting twice; the end of each is recorded.

    Trials that an earlier driver left running, or that failed there, come first.

    A proposer that learns is given the same trials whenever it is asked for the same number: with c trials at once,
    those numbered up to number − (2c − 1), all of which have ended; if one still runs, the next trial waits. Chance
    decides which of the later ones have ended by then. (Simulated with a standard deviation of 0.5 for the logarithms
    of durations: a search takes 2 to 5 % longer with 2c − 1, and 13 to 41 % with c.)
    """

    def __init__(
        self,
        recorder: Recorder,
        proposer: Proposer,
        resolve: Resolve,
        *,
        role: Role,
        earlier_records: Iterable[Record],
        limit: int,
        at_once: int = 1,
        spent: Callable[[Iterable[Trial]], str] = lambda trials: "",
        stopper: EarlyStopper | None = None,
    ):
        """Begin with the trials of earlier drivers.

        Args:
            recorder: Writes the records.
            proposer: Proposes settings.
            resolve: Turns a plain tree into a setting.
            role: Role of the trials.
            earlier_records: Trials that are not repeated.
            limit: Largest number of new trials.
            at_once: Number of simultaneous trials.
            spent: Given all trials, the reason why no further one may start; empty if one may.
            stopper: Follows finished trials and stops new ones early; None stops none.
        """
        self._recorder, self._proposer, self._resolve = recorder, proposer, resolve
        self._role: Role = role
        self._stopper, self._stopped = stopper, dict[str, str]()
        self._remaining, self._spent, self._lag = limit, spent, 2 * at_once - 1
        self._records_by_run_ids = {record.trial.run_ids: record for record in earlier_records}
        trials = recorder.records.load()
        self._records = {record.trial.number: record for record in trials if record.trial.role == role}
        self._to_repeat = [record for record in self._records.values() if record.trial.state in UNFINISHED]
        self._next_number = 1 + max((record.trial.number for record in trials), default=-1)
        self._running: dict[str, _Running] = {}
        self.ended_by = ""
        """Reason why the search ended before its last trial; empty otherwise."""
        self.given_up = ""
        """Reason why no other trial begins, as too many failed; empty otherwise."""

    def next(self) -> Job | Wait | None:
        """Return the next trial to run."""
        if self.given_up:
            return None
        if self._to_repeat:
            record = self._to_repeat.pop(0)
            record = replace(record, trial=replace(record.trial, state="RUNNING", message=""))
            return self._begin(_Running(record, self._resolve(record.resolved)))
        if self._remaining <= 0:
            return None
        self.ended_by = self._spent([record.trial for record in self._records.values()])
        if self.ended_by:
            return None
        return self._proposed()

    def _proposed(self) -> Job | Wait | None:
        earlier: list[Record] = []
        if self._proposer.learns:
            last = self._next_number - self._lag
            earlier = [record for number, record in sorted(self._records.items()) if number <= last]
            if any(record.trial.state == "RUNNING" for record in earlier):
                return "wait"
        repeats = itertools.count() if self._proposer.exhaustive else range(MOST_REPEATS)
        for attempt in repeats:
            proposal = self._proposer.ask(self._next_number, attempt, earlier)
            if proposal is None:
                return None
            setting = self._resolve(proposal.tree)
            # Tried before: each setting is computed once.
            if setting.run_ids in self._records_by_run_ids:
                continue
            record = self._record(setting, proposal)
            # The setting costs more than the search allows; costs are known before training.
            if not record.trial.feasible and self._role == "search":
                continue
            self._remaining -= 1
            self._next_number += 1
            return self._begin(_Running(record, setting))
        self.ended_by = NOTHING_NEW
        return None

    def _record(self, setting: Setting, suggestion: Suggestion) -> Record:
        task = setting.recipe.task_entry
        settings = {
            **_strategy(setting), **flatten_settings(setting.runs[0]), **seed_paths(setting.tree.get("student", {})),
            **setting.prepared.differences,
        }  # fmt: skip
        trial = Trial(
            number=self._next_number, state="RUNNING", role=self._role, run_ids=setting.run_ids, settings=settings,
            objective=setting.recipe.method, score_name=task.score_name, score_label=task.score_label,
        )  # fmt: skip
        trial = self._judged(with_cost(trial, self._recorder.cost_of(setting), self._recorder.grid))
        resolved = {section: value for section, value in setting.tree.items() if section not in FREE}
        return Record(trial, resolved, suggestion.params, suggestion.distributions, suggestion.sampler)

    def _begin(self, running: _Running) -> Job | Wait | None:
        key = str(running.record.trial.number)
        self._keep(running.record)
        self._running[key] = running
        self._recorder.start(running.record, running.setting)
        if self._stopper is not None:
            # Runs that go on from a checkpoint do not report their earlier epochs again. The driver may have died
            # before it judged the last of these.
            storage = self._recorder.records.storage
            epochs_of_runs = {
                run.id: reported_epochs(storage.child(*run.folder)) for run in running.setting.runs
            }
            self._stopped[key] = self._stopper.begin(
                running.record.trial, running.setting.seeds, epochs_of_runs
            )
            if self._stopped[key]:
                epochs = max(len(run_epochs) for run_epochs in epochs_of_runs.values())
                self.ended(key, Outcome("PRUNED", message=f"stopped after epoch {epochs}"))
                return self.next()
        return Job(key, running.setting.runs)

    def epoch(self, key: str, run_id: str, metrics: PlainObject) -> Literal["continue", "stop"]:
        """Log the epoch, and decide if the trial goes on."""
        running = self._running[key]
        self._recorder.epoch(running.record.trial, running.setting, run_id, metrics)
        if self._stopper is None:
            return "continue"
        self._stopped[key] = self._stopper.epoch(running.record.trial.number, run_id, metrics)
        return "stop" if self._stopped[key] else "continue"

    def ended(self, key: str, outcome: Outcome) -> None:
        """Record the trial."""
        running = self._running.pop(key)
        if outcome.state == "PRUNED" and (reason := self._stopped.get(key)):
            outcome = replace(outcome, message=f"{outcome.message}: {reason}")
        record = replace(running.record, trial=self._outcome(running, outcome))
        if self._stopper is not None:
            record = replace(record, epochs=self._stopper.ended(record.trial, outcome.results))
        self._keep(record)
        self._recorder.end(record, running.setting, outcome.results)
        if outcome.state == "FAILED" and not self.given_up:
            self._give_up()

    def _give_up(self) -> None:
        # Failed trials of an earlier driver count only after they were tried again.
        unrepeated = {record.trial.number for record in self._to_repeat}
        self.given_up = reason_to_give_up(
            record.trial for record in self._records.values() if record.trial.number not in unrepeated
        )
        if self.given_up:
            self._recorder.listener.warn(
                f"{self._recorder.phase}: no other trial is begun, since {self.given_up}. "
                "Correct that, and go on with --resume: it tries failed trials again"
            )

    def _keep(self, record: Record) -> None:
        self._records_by_run_ids[record.trial.run_ids] = self._records[record.trial.number] = record

    def _judged(self, trial: Trial) -> Trial:
        """Return the trial with the violations of constraints; a baseline need not meet them."""
        return self._recorder.constraints.with_violations(trial) if self._role != "baseline" else trial

    def _outcome(self, running: _Running, outcome: Outcome) -> Trial:
        trial, setting = running.record.trial, running.setting
        if outcome.state == "COMPLETE":
            results, cost = setting.seed_results(outcome.results), self._recorder.cost_of(setting)
            return self._judged(complete_trial(trial, results, cost, self._recorder.grid))
        return replace(trial, state=outcome.state, message=outcome.message)


def listed_trials(
    recorder: Recorder,
    trees: Sequence[PlainObject],
    resolve: Resolve,
    *,
    role: Role,
    complete_records: Sequence[Record],
) -> Iterator[Trials]:
    """Do the missing trials of a fixed list, each once; begin the phase even if none is missing.

    Args:
        recorder: Writes the records.
        trees: Plain trees of the settings.
        resolve: Turns a plain tree into a setting.
        role: Role of the trials.
        complete_records: Complete trials; their settings are not repeated.
    """
    todo = {resolve(tree).run_ids for tree in trees} - {record.trial.run_ids for record in complete_records}
    recorder.listener.begin(recorder.phase, len(todo))
    if todo:
        yield Trials(
            recorder,
            SettingList(trees),
            resolve,
            role=role,
            earlier_records=complete_records,
            limit=len(todo),
        )


def _strategy(setting: Setting) -> PlainObject:
    """Name of the setting's strategy, unknown to its runs."""
    strategy = setting.recipe.strategy
    return {} if strategy is None else {STRATEGY: strategy.name}
