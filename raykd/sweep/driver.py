"""The driver: one sweep from its file to its front, phase by phase. Each phase uses what the store already has."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from raykd.cluster.executor import Scheduler, work
from raykd.cluster.growth import places
from raykd.cluster.listener import Listener
from raykd.cluster.placement import concurrency, group_of, keeps_slots, preflight
from raykd.cluster.topology import Topology
from raykd.errors import RunError
from raykd.figures.front import front_of
from raykd.figures.trial import UNFINISHED, Teacher, Trial, teacher_score
from raykd.precompute.plan import Precomputed
from raykd.precompute.transfer import compute_features, compute_transfer
from raykd.recipes.resources import Resources, RunRole
from raykd.recipes.run import Run
from raykd.sweep.baseline import twins_of_sweep, worth_a_baseline
from raykd.sweep.budget import Budget
from raykd.sweep.confirm import confirm_front, with_seeds
from raykd.sweep.constraints import Constraints
from raykd.sweep.costs import check_measurable, cost_of, keep_grid, measure_costs, renew_costs
from raykd.sweep.recorder import Recorder
from raykd.sweep.records import Record
from raykd.sweep.scheduler import InTurn, RunList, Trials
from raykd.sweep.stopper import Stopper
from raykd.sweep.study import Study
from raykd.sweep.sweep import Sweep
from raykd.sweep.teacher_rows import refuse_unlearnt, save_teachers
from raykd.tracking.sweep_pages import SweepPages
from raykd.training.execute import find_result, keep_place, missing_results
from raykd.training.prepare import recipe_needs


def run_sweep(
    sweep: Sweep, cluster: Topology, *, pages: SweepPages, listener: Listener
) -> tuple[list[Trial], list[Teacher]]:
    """Do the whole sweep: teachers, precompute, costs, trials, confirm, baseline.

    Returns all trials and the teachers' rows.

    Raises:
        PlacementError: before anything starts, if a run cannot be placed.
        RunError: if a teacher could not be trained, or none learnt anything.
        StoreError: if the store fails.
    """
    resources = sweep.file.resources
    students = resources.of("students")
    placements = preflight(resources, cluster)
    check_measurable(sweep, cluster)
    budget = Budget(
        sweep.file.budget, gpus=group_of(students).total.get("GPU", 0.0), at_once=placements.students,
        ended=[record.trial.number for record in sweep.earlier()],
    )  # fmt: skip
    compute_teacher_features(sweep, cluster, listener)
    untrained = missing_results(sweep.storage, sweep.members)
    if untrained and keeps_slots(resources, cluster):
        asleep = replace(cluster, slots_asleep=True)

        def search_phases() -> Iterator[Scheduler]:
            recorder = before_search(sweep, untrained, budget, asleep, pages, listener)
            yield from _phases(sweep, recorder, placements.students, budget)

        every = chain(_teachers(sweep, listener), search_phases())
        _work(sweep, every, placements.students, students)
        return sweep.records.trials(), sweep.records.teachers()
    train_teachers(sweep, cluster, listener)
    recorder = before_search(sweep, untrained, budget, cluster, pages, listener)
    later = sweep.file.baseline != "none" or sweep.file.search.confirm is not None
    left = later or len(sweep.earlier()) < sweep.trials
    runs = sweep.trials * len(sweep.first_setting.runs)
    concurrent = at_once(sweep, "students", runs if left else 0, cluster, listener)
    _work(sweep, _phases(sweep, recorder, concurrent, budget), concurrent, students)
    return sweep.records.trials(), sweep.records.teachers()


def before_search(
    sweep: Sweep,
    trained: Sequence[tuple[str, Run]],
    budget: Budget,
    cluster: Topology,
    pages: SweepPages,
    listener: Listener,
) -> Recorder:
    """What comes between the teachers, of which those `trained` count for the budget, and the search.

    Raises:
        UnlearntError: no teacher learnt anything.
    """
    refuse_unlearnt(sweep, listener)
    compute_transfer(sweep.transfer(), sweep.file.resources, cluster, listener, sweep.nodes)
    for _, run in trained:
        result = find_result(sweep.storage, run)
        budget.charge(result.wall_s if result is not None else 0.0)
    if sweep.timed_on is None:  # else they were measured before the limits were looked at
        measure_costs(sweep, cluster, listener)
    note_unused_text(sweep, listener)
    teachers = save_teachers(sweep, listener)
    log_teachers(sweep, teachers, pages)
    recorder = Recorder(
        sweep.records,
        pages,
        listener,
        sweep.file.objectives,
        lambda setting: cost_of(sweep, setting),
        Constraints.of(sweep.file.search.constraints, sweep.file.labels.score_name, teacher_score(teachers)),
        grid=keep_grid(sweep),
    )
    renew_costs(sweep, recorder)
    return recorder


def teach(sweep: Sweep, cluster: Topology, listener: Listener) -> Precomputed | None:
    """The phases before the search: what frozen encoders give, the teachers, and what these know. Raises as `run_sweep`
    does."""
    resources = sweep.file.resources
    preflight(resources, cluster)
    compute_teacher_features(sweep, cluster, listener)
    train_teachers(sweep, cluster, listener)
    refuse_unlearnt(sweep, listener)
    return compute_transfer(sweep.transfer(), resources, cluster, listener, sweep.nodes)


def compute_teacher_features(sweep: Sweep, cluster: Topology, listener: Listener) -> None:
    """What frozen encoders give, of which teachers read. Refuses what teachers cannot give before they are trained."""
    sweep.transfer()
    resources, texts = sweep.file.resources, sweep.teacher_texts()
    compute_features(sweep.storage, sweep.models(), texts, resources, cluster, listener, sweep.nodes)


def at_once(sweep: Sweep, role: RunRole, runs: int, cluster: Topology, listener: Listener) -> int:
    """How many of so many runs are done at once. Where the cluster grows, their nodes are waited for.

    Raises:
        PlacementError: there is no place for one run, or for as many as are asked for.
    """
    resources = sweep.file.resources
    most, own = concurrency(resources, cluster, role), resources.of(role)
    if not runs or not cluster.grows:
        return most
    exactly, minutes = own.concurrency is not None, own.wait_minutes
    return places(role, group_of(own), min(most, runs), cluster, listener, minutes=minutes, exactly=exactly)


def train_teachers(sweep: Sweep, cluster: Topology, listener: Listener) -> None:
    """Train the teachers that are not in the store yet.

    Raises:
        PlacementError: as `at_once` does.
        RunError: naming each teacher that failed; the others are kept.
    """
    missing = missing_results(sweep.storage, [*sweep.members, *sweep.teachers])
    concurrent = at_once(sweep, "teachers", len(missing), cluster, listener)
    _work(sweep, _teachers(sweep, listener), concurrent, sweep.file.resources.of("teachers"))


def _teachers(sweep: Sweep, listener: Listener) -> Iterator[RunList]:
    """The phase `teachers`. RunError names each that failed."""
    todo = missing_results(sweep.storage, sweep.members)
    every = {run.id: (name, run) for name, run in [*sweep.members, *sweep.teachers]}
    listener.begin("teachers", len(missing_results(sweep.storage, list(every.values()))))
    # An ensemble is evaluated when its members are trained.
    for runs in (sweep.members, sweep.teachers):
        yield from _list(missing_results(sweep.storage, runs), "teachers", listener)
    for _, run in every.values():
        keep_place(sweep.storage, run)
    listener.end("teachers", f"{len(todo)} trained, {len(sweep.members) - len(todo)} found in the store")


def train(
    sweep: Sweep,
    runs: Sequence[tuple[str, Run]],
    phase: str,
    concurrent: int,
    listener: Listener,
) -> None:
    """Do a list of named runs.

    Raises:
        RunError: naming each run that failed.
    """
    _work(sweep, _list(runs, phase, listener), concurrent, sweep.file.resources.of("students"))


def _list(runs: Sequence[tuple[str, Run]], phase: str, listener: Listener) -> Iterator[RunList]:
    if not runs:
        return
    scheduler = RunList(runs, phase, listener)
    yield scheduler
    if scheduler.failed:
        failed = "; ".join(f"{name} failed: {why}" for name, why in scheduler.failed.items())
        raise RunError(f"{phase}: {failed}")


def note_unused_text(sweep: Sweep, listener: Listener) -> None:
    """Note where some runs train on more text than others."""
    count = sweep.preparation.corpus.parts["unlabelled"].num_rows
    gold = sweep.file.baseline == "gold" or any(
        not recipe_needs(variant, unlabelled=True) for variant in sweep.variants
    )
    if count and gold:
        listener.note(
            f"gold is trained without the {count:,} unlabelled sentences; other objectives use them"
        )


def log_teachers(sweep: Sweep, rows: Sequence[Teacher], pages: SweepPages) -> None:
    """Show the teachers in MLflow, with the curves of those that were trained alone."""
    teachers_shown = []
    for row, (_, teachers) in zip(rows, sweep.teacher_groups, strict=True):
        found = [] if row.members else [find_result(sweep.storage, teacher.run) for teacher in teachers]
        results = [result for result in found if result is not None]
        several = len(results) > 1
        epochs = {
            "+".join(each.scores.by_language("dev")) if several else "": each.epochs for each in results
        }
        teachers_shown.append((row, epochs))
    pages.log_teachers(teachers_shown)


def _phases(sweep: Sweep, recorder: Recorder, concurrent: int, budget: Budget) -> Iterator[Trials]:
    """The search and what follows it, unless most of its trials failed."""
    given_up = yield from search(sweep, recorder, concurrent, budget)
    if given_up:
        return
    resolve, confirm = sweep.settings.of, sweep.file.search.confirm
    if confirm is not None:
        yield from confirm_front(replace(recorder, phase="confirm"), confirm.seeds, resolve)
    if sweep.file.baseline != "none":
        again = replace(recorder, phase="baseline")
        yield from twins_of_sweep(again, sweep.file.baseline, resolve, with_seeds)


def search(sweep: Sweep, recorder: Recorder, concurrent: int, budget: Budget) -> Generator[Trials, None, str]:
    """The phase `trials`: what is left of them, to be done before it goes on. It ends early where no other trial fits
    into the budget, or where most failed: then it returns why."""

    def spent(trials: Iterable[Trial]) -> str:
        trials = list(trials)
        seconds, gpu_hours = budget.left(trials)
        recorder.listener.budget(seconds=seconds, gpu_hours=gpu_hours)
        spent = budget.spent(trials, after_search(sweep, trials))
        return spent and f"{spent}, --resume with a larger one goes on"

    own = [record for record in sweep.records.load() if record.trial.role == "search"]
    log_again(sweep, recorder)
    ended = sum(record.trial.state not in UNFINISHED for record in own)
    config = sweep.file.search.model_copy(update={"objectives": dict(sweep.file.objectives)})
    trials = Trials(
        recorder, Study(sweep.document.tree, config, sweep.starts.params), sweep.settings.of, role="search",
        known=own, most=sweep.trials - len(own), at_once=concurrent, spent=spent, stopper=stopper_of(sweep, own),
    )  # fmt: skip
    recorder.listener.begin(recorder.phase, sweep.trials, done=ended)
    if ended < sweep.trials:
        yield trials
    late = f"; {trials.ended_by}" if trials.ended_by else ""
    recorder.listener.end(recorder.phase, recorder.summary("search") + late)
    return trials.given_up


def stopper_of(sweep: Sweep, records: Iterable[Record]) -> Stopper | None:
    """What stops the search's trials early, informed of those that have ended; None where none is stopped."""
    config = sweep.file.search.stopping
    if config.kind == "none":
        return None
    teachers = sweep.records.teachers()
    stopper = Stopper(config, sweep.file.objectives, teachers[0].cost if teachers else {})
    for record in records:
        if record.trial.state in ("COMPLETE", "PRUNED"):
            setting = sweep.settings.of(record.resolved)
            stopper.begin(record.trial, setting.seeds, record.epochs)
            stopper.ended(record.trial, setting.found_results(sweep.storage))
    return stopper


def after_search(sweep: Sweep, trials: Iterable[Trial]) -> float:
    """How many trials' time the phases after the search take, for the students found so far."""
    trials, config = list(trials), sweep.file.search
    seeds = config.confirm.seeds if config.confirm is not None else config.runs_per_setting
    more = (seeds - config.runs_per_setting) * len(front_of(trials, sweep.file.objectives))
    if sweep.file.baseline != "none":
        records = [Record(trial, {}) for trial in trials]
        more += seeds * len(worth_a_baseline(records, sweep.file.objectives))
    return more / config.runs_per_setting


def log_again(sweep: Sweep, recorder: Recorder) -> None:
    """Show what an earlier driver recorded: it may have been killed before MLflow had it."""
    ended = [record for record in sweep.records.load() if record.trial.state != "RUNNING"]
    for record in ended:
        setting = sweep.settings.of(record.resolved)
        recorder.log(record, setting, setting.found_results(sweep.storage))
    if ended:
        recorder.show_front()


def _work(sweep: Sweep, schedulers: Iterator[Scheduler], concurrent: int, resources: Resources) -> None:
    work(
        InTurn(schedulers), store_uri=sweep.storage.uri, resources=resources, concurrent=concurrent, nodes=sweep.nodes
    )  # fmt: skip
