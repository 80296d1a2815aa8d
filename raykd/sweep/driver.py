"""The driver: one sweep from its file to its front, phase by phase. Every phase finds what was done before."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

from raykd.errors import RunError
from raykd.front import front_of, hypervolume_of
from raykd.identity import identity
from raykd.runs.cluster import concurrency
from raykd.runs.cost import find_cost
from raykd.runs.execute import find_result, keep_place
from raykd.runs.executor import work
from raykd.runs.precompute import PrecomputePlan
from raykd.runs.prepare import Preparation, gold_run, prepare, student_run, transfer_needs, with_seed
from raykd.runs.probe import probe
from raykd.runs.progress import Listener
from raykd.runs.recipe import TASKS
from raykd.runs.run import Run
from raykd.runs.transfer import compute_transfer, transfer_plan
from raykd.signals import Need
from raykd.spec import Document, assignments, covering
from raykd.storage import Storage
from raykd.sweep.outcome import against_teachers, teacher_row
from raykd.sweep.records import Record, SweepRecords
from raykd.sweep.scheduler import Recorder, RunList, Trials, missing_results
from raykd.sweep.spec import SweepFile, check_sweep, plain_sweep, search_identity
from raykd.sweep.study import Study, planned_trials
from raykd.tracking import Tracker
from raykd.transfer import signal_ids
from raykd.trial import Teacher, Trial, scores_of


class Sweep:
    """A valid sweep file. Its corpus is read, and put into the store, when first asked for; nothing is trained."""

    def __init__(self, document: Document):
        check_sweep(document)
        self.document = document
        self.variants = [plain_sweep(variant.tree) for variant in covering(document.tree)]
        self.file = self.variants[0]
        self.storage = Storage(self.file.store)
        self.records = SweepRecords(self.storage, self.file.name)

    @cached_property
    def preparation(self) -> Preparation:
        """Corpus and teachers, in the store."""
        return prepare(self.file, self.storage)

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        """The stored signals that serve every trial."""
        return transfer_needs(self.variants, self.preparation.corpus)

    def begin(self, *, resume: bool) -> None:
        """Start the sweep in the store, or take it up again.

        Raises:
            StoreError: a sweep of this name exists and `resume` is not set, or it searches something else.
        """
        text = json.dumps(self.document.tree)
        self.records.open(sweep_id=search_identity(self.document), text=text, resume=resume)

    @property
    def trials(self) -> int:
        """Trials the search comes to."""
        return planned_trials(self.document.tree, self.file.search)

    @property
    def teachers(self) -> list[tuple[str, Run]]:
        """Name and run of each teacher."""
        return [(teacher.name, teacher.run) for teacher in self.preparation.teachers]

    @property
    def members(self) -> list[tuple[str, Run]]:
        """Name and run of each teacher that is trained: those of `teachers`, or what they are the mean of."""
        return [member for teacher in self.preparation.teachers for member in teacher.members]

    def runs_of(self, tree: dict[str, Any]) -> tuple[Run, ...]:
        """The runs of one setting: one per seed. A gold setting of the baseline says so in its objective."""
        sweep = plain_sweep(tree)
        run = student_run(sweep, self.preparation)
        return tuple(with_seed(run, i) for i in range(sweep.search.runs_per_setting))

    def shapes(self) -> list[Run]:
        """One run for each student shape of the space."""
        base = next(iter(covering(self.document.tree))).tree
        trees = ({**base, "student": student} for student in assignments(self.document.tree["student"]))
        return [gold_run(student_run(plain_sweep(tree), self.preparation)) for tree in trees]

    @property
    def transfer_id(self) -> str:
        """One name for all transfer sets of the sweep; empty when no objective reads a teacher."""
        ids = [
            signal_ids(teacher.run.id, teacher.text.id)[need.signal]
            for teacher in self.preparation.teachers
            for need in self.needs
        ]
        return identity("transfer", ids) if ids else ""

    def transfer(self) -> PrecomputePlan | None:
        """The plan of the transfer sets that serve every trial."""
        return transfer_plan(self.storage, self.preparation.teachers, self.needs)


def run_sweep(
    sweep: Sweep, cluster: dict[str, float], *, tracker: Tracker, listener: Listener
) -> tuple[list[Trial], list[Teacher]]:
    """Do the whole sweep: teachers, transfer sets, costs, trials, baseline. Ends with all trials and the teacher row.

    Raises:
        PlacementError: before anything starts, if a run cannot be placed.
        RunError: if a teacher could not be trained.
        StoreError: if the store fails.
    """
    concurrent = concurrency(sweep.file.resources, cluster)
    started = time.monotonic()
    train_teachers(sweep, concurrent, listener)
    compute_transfer(sweep.transfer(), sweep.file.resources, cluster, listener)
    costs = measure_costs(sweep, listener)
    tell_text_left_out(sweep, listener)
    teachers = [_teacher_row(sweep)]
    sweep.records.save_teachers(teachers)
    for teacher in (each for row in teachers for each in (row, *row.members)):
        listener.note(f"teacher {teacher.name}: {scores_of(teacher)}")
    minutes = sweep.file.budget.minutes
    search = _Search(sweep, costs, tracker, listener, concurrent)
    search.trials(None if minutes is None else started + 60 * minutes)
    if sweep.file.baseline == "gold":
        search.baseline()
    return [record.trial for record in sweep.records.load()], teachers


def train_teachers(sweep: Sweep, concurrent: int, listener: Listener) -> None:
    """Train the teachers that are not in the store yet.

    Raises:
        RunError: naming each teacher that failed; those that did not are kept.
    """
    todo = missing_results(sweep.storage, sweep.members)
    listener.begin("teachers", sum(run.schedule.get("epochs", 1) for _, run in todo))
    # Ensembles are evaluated once their members stand.
    for runs in (sweep.members, sweep.teachers):
        lacking = missing_results(sweep.storage, runs)
        scheduler = RunList(lacking, "teachers", listener)
        if lacking:
            work(
                scheduler, store_uri=sweep.storage.uri, resources=sweep.file.resources, concurrent=concurrent
            )
        if scheduler.failed:
            raise RunError(
                "; ".join(f"teacher {name} failed: {why}" for name, why in scheduler.failed.items())
            )
    for _, run in [*sweep.members, *sweep.teachers]:
        keep_place(sweep.storage, run)
    listener.end("teachers", f"{len(todo)} trained, {len(sweep.members) - len(todo)} found in the store")


def measure_costs(sweep: Sweep, listener: Listener) -> dict[str, dict[str, Any]]:
    """Parameters and latency of every student shape and teacher, measured where nothing else runs."""
    runs = [*sweep.shapes(), *(run for _, run in sweep.teachers)]
    todo = [run for run in runs if find_cost(sweep.storage, run) is None]
    listener.begin("latency", len(runs), done=len(runs) - len(todo))
    probe(sweep.storage.uri, todo, lambda: listener.advance("latency"))
    listener.end("latency", f"{len(runs)} shapes")
    return {run.id: find_cost(sweep.storage, run) or {} for run in runs}


def tell_text_left_out(sweep: Sweep, listener: Listener) -> None:
    """Say so where some runs train on more text than others."""
    count = sweep.preparation.corpus.parts["unlabelled"].num_rows
    gold = sweep.file.baseline == "gold" or any(not variant.objective.needs for variant in sweep.variants)
    if count and gold:
        listener.note(
            f"gold is trained without the {count:,} unlabelled sentences; other objectives hear them"
        )


def _teacher_row(sweep: Sweep) -> Teacher:
    runs = [run for _, run in sweep.teachers]
    results = [find_result(sweep.storage, run) or {} for run in runs]
    costs = [find_cost(sweep.storage, run) or {} for run in runs]
    metric = TASKS[sweep.file.task].label
    return teacher_row(
        sweep.file.teachers.title, results, costs, metric=metric, members=_member_rows(sweep, metric)
    )


def _member_rows(sweep: Sweep, metric: str) -> list[Teacher]:
    """One row for each seed of an ensemble."""
    rows, kind = [], sweep.file.teachers.kind
    for seed in zip(*(run.members for _, run in sweep.teachers), strict=True):
        results = [find_result(sweep.storage, run) or {} for run in seed]
        rows.append(teacher_row(f"{kind} seed {seed[0].training['seed']}", results, (), metric=metric))
    return rows


class _Search:
    """The two phases of trials, which share their records."""

    def __init__(
        self, sweep: Sweep, costs: dict[str, Any], tracker: Tracker, listener: Listener, concurrent: int
    ):
        self._sweep, self._listener, self._concurrent = sweep, listener, concurrent
        teacher_costs = [find_cost(sweep.storage, run) or {} for _, run in sweep.teachers]

        def cost_of(run: Run) -> dict[str, Any]:
            return against_teachers(find_cost(sweep.storage, run) or {}, teacher_costs)

        self._recorder = partial(Recorder, sweep.records, tracker, listener, cost_of, self._grown)

    def _grown(self) -> tuple[int, float, int]:
        """Finished trials, hypervolume and students of the front as it now stands."""
        trials = [record.trial for record in self._sweep.records.load() if record.trial.state != "RUNNING"]
        objectives = self._sweep.file.search.objectives
        volume = hypervolume_of(trials, self._sweep.records.teachers(), objectives)
        return len(trials), volume, len(front_of(trials, objectives))

    def _work(self, trials: Trials) -> None:
        file = self._sweep.file
        work(trials, store_uri=self._sweep.storage.uri, resources=file.resources, concurrent=self._concurrent)

    def _tell_again(self, records: Sequence[Record]) -> None:
        """Tell what an earlier driver recorded and perhaps was killed before it could tell."""
        recorder = self._recorder(phase="trials")
        for record in records:
            if record.trial.state != "RUNNING":
                runs = self._sweep.runs_of(dict(record.resolved))
                found = [find_result(self._sweep.storage, run) for run in runs]
                recorder.tell_again(record.trial, [result for result in found if result is not None])

    def trials(self, deadline: float | None) -> None:
        """The search."""
        sweep, records = self._sweep, self._sweep.records.load()
        self._tell_again(records)
        own = [record for record in records if record.trial.role == "search"]
        ended = sum(record.trial.state != "RUNNING" for record in own)
        study = Study(sweep.document.tree, sweep.file.search, own)

        def suggest() -> Any:
            suggestion = study.ask()
            return None if suggestion is None else (suggestion, suggestion.tree)

        trials = Trials(
            self._recorder(phase="trials"), role="search", study=study, suggest=suggest, runs_of=sweep.runs_of,
            resumed=[record for record in own if record.trial.state == "RUNNING"],
            first=1 + max((record.trial.number for record in records), default=-1),
            known={record.trial.run_ids: record for record in own},
            most=sweep.trials - len(own), deadline=deadline,
        )  # fmt: skip
        self._listener.begin("trials", sweep.trials, done=ended)
        if ended < sweep.trials:
            self._work(trials)
        late = "; the budget is spent, --resume with a larger one goes on" if trials.out_of_time else ""
        self._listener.end("trials", f"{_count(self._sweep.records, 'search')}{late}")

    def baseline(self) -> None:
        """The students of the front, and of each objective's best trial, on gold labels alone."""
        records = self._sweep.records.load()
        own = [record for record in records if record.trial.role == "baseline"]
        trees = iter([gold_tree(record.resolved) for record in worth_a_baseline(records, self._sweep.file)])
        known = {record.trial.run_ids: record for record in records if record.trial.state == "COMPLETE"}

        def suggest() -> Any:
            tree = next(trees, None)
            return None if tree is None else (None, tree)

        trials = Trials(
            self._recorder(phase="baseline"), role="baseline", study=None, suggest=suggest, runs_of=self._sweep.runs_of,
            resumed=[record for record in own if record.trial.state == "RUNNING"],
            first=1 + max((record.trial.number for record in records), default=-1),
            known=known, most=len(records), deadline=None,
        )  # fmt: skip
        wanted = [
            self._sweep.runs_of(gold_tree(r.resolved)) for r in worth_a_baseline(records, self._sweep.file)
        ]
        todo = {runs[0].id for runs in wanted if tuple(run.id for run in runs) not in known}
        self._listener.begin("baseline", len(todo))
        if todo:
            self._work(trials)
        self._listener.end("baseline", _count(self._sweep.records, "baseline"))


def gold_tree(tree: Any) -> dict[str, Any]:
    """The same setting with gold labels alone."""
    return {**tree, "objective": {"kind": "gold"}}


def worth_a_baseline(records: Sequence[Record], file: SweepFile) -> list[Record]:
    """Records of the front and of each objective's best trial by dev F1: what a teacher bought is shown there."""
    done = [r for r in records if r.trial.role == "search" and r.trial.state == "COMPLETE"]
    standing = {trial.number for trial in front_of([r.trial for r in done], file.search.objectives)}
    front = [record for record in done if record.trial.number in standing]
    best: dict[str, Record] = {}
    for record in done:
        other = best.get(record.trial.objective)
        if other is None or (record.trial.dev_f1 or 0) > (other.trial.dev_f1 or 0):
            best[record.trial.objective] = record
    chosen = {record.trial.number: record for record in [*front, *best.values()]}
    return [chosen[number] for number in sorted(chosen) if chosen[number].trial.objective != "gold"]


def _count(records: SweepRecords, role: str) -> str:
    states = [record.trial.state for record in records.load() if record.trial.role == role]
    return ", ".join(f"{states.count(state)} {state.lower()}" for state in sorted(set(states))) or "none"


__all__ = ["Sweep", "measure_costs", "run_sweep", "train_teachers"]
