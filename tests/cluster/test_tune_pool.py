"""Placement of runs by the pool: each seed by itself, a job ends with its last run, unfinished runs come again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import psutil
import pytest
from ray.exceptions import OutOfMemoryError, RayActorError
from ray.tune.search import Searcher

from raykd.cluster import slot, tune_pool
from raykd.cluster.jobs import NOT_STORED, Job, OpenJobs, Outcome, Wait
from raykd.cluster.placement import DRIVER_CPUS
from raykd.cluster.tune_pool import work
from raykd.errors import PlacementError, RunError, StoreError
from raykd.recipes.recipe import Resources
from raykd.recipes.run import Run
from raykd.storage.layout import RESULT
from raykd.storage.store import Storage
from raykd.training import node_check
from raykd.training.execute import find_result
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs, with_seed_offset
from tests.sweep.samples import result_of, run_of
from tests.training.small import recipe

SETTING = {
    "student": {"embedding_dim": 8, "decoder": "crf"}, "objective": {"kind": "structural"}, "schedule": {"epochs": 1}
}  # fmt: skip


class Scheduler:
    """Proposes jobs by name, and writes down what it is informed of; `stops` after the first epoch of these jobs."""

    def __init__(self, names: str, seeds: int = 2, stops: str = ""):
        self.names, self.seeds, self.stops = list(names), seeds, stops
        self.reports: list[tuple[str, Any]] = []

    def next(self) -> Job | None:
        if not self.names:
            return None
        return Job(self.names.pop(0), tuple(run_of(SETTING, seed=seed) for seed in range(self.seeds)))

    def epoch(self, key: str, run_id: str, metrics: Mapping[str, Any]) -> Literal["continue", "stop"]:
        self.reports.append((key, run_id))
        return "stop" if key in self.stops else "continue"

    def ended(self, key: str, outcome: Outcome) -> None:
        self.reports.append((key, outcome.message or [int(result.run_id) for result in outcome.results]))


class Tuner:
    """Two trials at once, as Tune would do them; the later of the two ends first.

    `fails`: the numbers of the trials whose run fails; `cut`: of those with which memory is short; `loses`: of those
    whose result does not come into the store.
    """

    def __init__(self, fails: tuple[int, ...] = (), cut: tuple[int, ...] = (), loses: tuple[int, ...] = ()):
        self.fails, self.cut, self.loses = fails, cut, loses
        self.proposed: list[tuple[str, int]] = []

    def __call__(self, trainable: Any, *, param_space: Any, tune_config: Any, run_config: Any) -> Any:
        search, report, callback = tune_config.search_alg, run_config.stop, run_config.callbacks[0]
        store = Storage(param_space["store"])

        def begin() -> Any:
            trial = SimpleNamespace(trial_id=f"trial-{len(self.proposed)}", number=len(self.proposed))
            plain = None if report.stop_all() else search.suggest(trial.trial_id)
            if plain is None or plain == Searcher.FINISHED:
                return None
            trial.seed, trial.run = plain["run"]["training"]["seed"], Run.from_plain(plain["run"])
            trial.result = replace(result_of(trial.run, 0.5), run_id=str(trial.seed))
            self.proposed.append((search._jobs.places[trial.trial_id][0], trial.seed))
            return trial

        def end(trial: Any) -> None:
            epoch = {"run_id": f"seed {trial.seed}", "epoch_report": {"epoch": 0}, "done": False}
            if not report(trial.trial_id, epoch):
                result, error = trial.result.to_plain(), ""
                if trial.number in self.fails:
                    result, error = None, "it diverged"
                elif trial.number not in self.loses:
                    store.child(*trial.run.folder).write_json(RESULT, trial.result.to_plain())
                assert not report(trial.trial_id, {"run_end": {"result": result, "error": error}})
            callback.on_trial_complete(0, [], trial)

        def fit() -> None:
            while first := begin():
                second = begin()
                for trial in (second, first):
                    if trial is not None and trial.number in self.cut:
                        raise RuntimeError("Caught unexpected exception") from OutOfMemoryError("killed")
                    if trial is not None:
                        end(trial)

        return SimpleNamespace(fit=fit)


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setattr(node_check, "PAUSE_S", 0.0)

    def run(tuner: Tuner, scheduler: Scheduler, nodes: Any = None) -> list[tuple[str, int]]:
        monkeypatch.setattr(tune_pool.tune, "Tuner", tuner)
        resources = Resources(max_failures=2)
        work(scheduler, store_uri=str(tmp_path), resources=resources, concurrent=2, nodes=nodes)
        return tuner.proposed

    return run


def ends(scheduler: Scheduler) -> list[tuple[str, Any]]:
    return [(key, end) for key, end in scheduler.reports if not str(end).startswith("seed ")]


def test_seeds_are_placed_by_themselves_and_reported_together_in_order(run):
    scheduler = Scheduler("ab", seeds=3)
    assert run(Tuner(), scheduler) == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2)]
    assert ends(scheduler) == [("a", [0, 1, 2]), ("b", [0, 1, 2])]
    assert scheduler.reports[0] == ("a", "seed 1")


def test_a_job_ends_with_its_first_failure_and_the_rest_goes_on(run):
    scheduler = Scheduler("ab", seeds=3)
    # Seed 1 of "a" fails while seed 0 runs: seed 2 is not begun, and reports of seed 0 are ignored from then on.
    assert run(Tuner(fails=(1,)), scheduler) == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)]
    assert ends(scheduler) == [("a", "it diverged"), ("b", [0, 1, 2])]
    assert ("a", "seed 0") not in scheduler.reports


def test_a_stopped_job_ends_with_all_its_runs_and_the_rest_goes_on(run):
    scheduler = Scheduler("ab", seeds=3, stops="a")
    assert run(Tuner(), scheduler) == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)]
    assert ends(scheduler) == [("a", "stopped after epoch 1"), ("b", [0, 1, 2])]
    assert ("a", "seed 0") not in scheduler.reports


def test_unfinished_runs_come_again_and_finished_ones_do_not(run):
    scheduler = Scheduler("ab")
    # Seed 1 of "a" had ended when memory was short.
    assert run(Tuner(cut=(0,)), scheduler) == [("a", 0), ("a", 1), ("a", 0), ("b", 0), ("b", 1)]
    assert ends(scheduler) == [("a", [0, 1]), ("b", [0, 1])]


def test_memory_that_stays_short_is_an_error_with_a_hint(run):
    with pytest.raises(RunError, match=r"memory was short 3 times.*resources\.concurrency"):
        run(Tuner(cut=tuple(range(9))), Scheduler("abcde"))


def stored(run: Run) -> bool:
    """Always true: the store has all results."""
    return True


class Nodes:
    """Blame a node for the first `blames` failures; `calls` holds the arguments of all calls."""

    def __init__(self, blames: int = 0, refuses: bool = False):
        self.blames, self.refuses = blames, refuses
        self.avoid: tuple[str, ...] = ()
        self.calls: list[tuple[str, str, bool]] = []

    def look(self) -> None:
        return None

    def blamed(self, node: str, reason: str, *, of_place: bool) -> bool:
        self.calls.append((node, reason, of_place))
        self.blames -= 1
        if self.blames >= 0:
            self.avoid = ("bad",)
        return self.blames >= 0

    def worked(self, node: str) -> None:
        return None

    def refuse_too_small(self, group: Any) -> None:
        if self.refuses:
            raise PlacementError("one run takes {CPU: 4}")


def test_a_run_that_fails_by_a_node_s_fault_is_done_again_and_its_job_does_not_fail(run):
    nodes, scheduler = Nodes(blames=1), Scheduler("ab")
    # Seed 1 of "a" fails, and is begun again while others are left.
    begun = run(Tuner(fails=(1,)), scheduler, nodes)
    assert begun == [("a", 0), ("a", 1), ("a", 1), ("b", 0), ("b", 1)]
    assert ends(scheduler) == [("a", [0, 1]), ("b", [0, 1])]
    assert nodes.calls == [("", "it diverged", False)]


def test_it_is_done_again_also_when_tune_has_nothing_else_to_begin(run):
    scheduler = Scheduler("a", seeds=1)
    assert run(Tuner(fails=(0,)), scheduler, Nodes(blames=1)) == [("a", 0), ("a", 0)]
    assert ends(scheduler) == [("a", [0])]


def test_a_run_that_no_node_is_to_blame_for_fails(run):
    scheduler = Scheduler("a", seeds=1)
    run(Tuner(fails=(0,)), scheduler, Nodes())
    assert ends(scheduler) == [("a", "it diverged")]


def test_a_run_whose_result_is_not_in_the_store_has_not_ended_well(run):
    """Seen: on a node a copy of the store had come into the store's place, and a run ended well in the copy."""
    nodes, scheduler = Nodes(blames=1), Scheduler("ab")
    begun = run(Tuner(loses=(1,)), scheduler, nodes)
    assert begun == [("a", 0), ("a", 1), ("a", 1), ("b", 0), ("b", 1)]
    assert ends(scheduler) == [("a", [0, 1]), ("b", [0, 1])]
    assert nodes.calls == [("", NOT_STORED, True)]


def test_it_is_done_once_more_where_no_node_is_to_blame(run):
    scheduler = Scheduler("a", seeds=1)
    assert run(Tuner(loses=(0,)), scheduler, Nodes()) == [("a", 0), ("a", 0)]
    assert ends(scheduler) == [("a", [0])]


def test_a_result_that_stays_lost_fails_its_job(run):
    scheduler = Scheduler("a", seeds=1)
    assert run(Tuner(loses=(0, 1)), scheduler, Nodes()) == [("a", 0), ("a", 0)]
    assert ends(scheduler) == [("a", NOT_STORED)]


def test_where_the_driver_cannot_reach_the_store_no_job_has_failed(run, monkeypatch):
    def gone(*_: Any) -> bool:
        raise StoreError("x", "cannot be looked up", "check the network", True)

    monkeypatch.setattr(tune_pool, "result_is_visible", gone)
    scheduler = Scheduler("ab", seeds=1)
    with pytest.raises(StoreError, match="cannot be looked up"):
        run(Tuner(), scheduler, Nodes())
    assert not ends(scheduler), "--resume finds the result"


def test_where_no_node_is_left_the_work_ends_and_no_job_has_failed(run):
    scheduler = Scheduler("ab", seeds=1)
    with pytest.raises(PlacementError, match="one run takes"):
        run(Tuner(fails=(0, 1)), scheduler, Nodes(blames=2, refuses=True))
    assert not ends(scheduler), "--resume begins it again"


def test_runs_are_placed_on_the_nodes_that_are_not_left_out(tmp_path):
    nodes = Nodes(blames=1)
    jobs = OpenJobs(Scheduler("ab", seeds=1), stored, nodes)  # type: ignore[arg-type]
    tune = tune_pool._Proposals(jobs)
    plain = {"resources": Resources().model_dump()}
    first = tune.suggest("one")
    assert slot.Slot.default_resource_request(plain | first)._kwargs == {}
    tune_pool._Reports(jobs)("one", {"run_end": {"result": None, "error": "no store"}, "node": "bad"})
    assert nodes.calls == [("bad", "no store", False)]
    tune.on_trial_complete("one")
    resumed = tune.suggest("two")
    assert resumed["run"] == first["run"]
    bundle = slot.Slot.default_resource_request(plain | resumed)
    assert bundle._kwargs == {"bundle_label_selector": [{"ray.io/node-id": "!in(bad)"}]}


def test_an_actor_that_dies_is_a_fault_of_its_place(monkeypatch):
    nodes = Nodes()
    jobs = OpenJobs(Scheduler("a", seeds=1), stored, nodes)  # type: ignore[arg-type]
    tune_pool._Proposals(jobs).suggest("one")
    text = "The actor died unexpectedly.\n\tactor_id: 0123456789abcdef0123\n\tits worker exited"
    trial = SimpleNamespace(trial_id="one", get_error=lambda: text)
    monkeypatch.setattr(tune_pool.ray, "is_initialized", lambda: True)
    monkeypatch.setattr(tune_pool.ray_state, "actors", lambda actor: {"Address": {"NodeID": f"of {actor}"}})
    tune_pool._Endings(jobs).on_trial_start(0, [], trial)
    tune_pool._Endings(jobs).on_trial_recover(0, [], trial)
    assert jobs.open, "Tune begins it again by itself"
    tune_pool._Endings(jobs).on_trial_error(0, [], trial)
    assert not jobs.open
    assert nodes.calls == [("of 0123456789abcdef0123", "its worker exited", True)] * 2


def test_other_errors_of_tune_are_not_swallowed(monkeypatch, tmp_path):
    def broken(*args: Any, **options: Any) -> Any:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(tune_pool.tune, "Tuner", broken)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        work(Scheduler("a"), store_uri=str(tmp_path), resources=Resources(), concurrent=1)


class Stopping:
    """Two jobs, of which it stops the first after an epoch."""

    def __init__(self, *runs: Run):
        self.todo = [Job(f"job {number}", (run,)) for number, run in enumerate(runs)]
        self.epochs: list[tuple[str, int]] = []
        self.outcomes: dict[str, Outcome] = {}

    def next(self) -> Job | None:
        return self.todo.pop(0) if self.todo else None

    def epoch(self, key: str, run_id: str, metrics: Mapping[str, Any]) -> Literal["continue", "stop"]:
        self.epochs.append((key, metrics["epoch"]))
        return "stop" if key == "job 0" else "continue"

    def ended(self, key: str, outcome: Outcome) -> None:
        self.outcomes[key] = outcome


def test_tune_stops_what_the_scheduler_stops(ray_cluster, tmp_path):
    gold = recipe(objective={"kind": "gold"}, schedule={"epochs": 3}, corpus={"unlabelled": 0})
    (run,) = student_runs(gold, prepare(gold, Storage(str(tmp_path))))
    runs = [with_seed_offset(run, seed) for seed in range(2)]
    scheduler = Stopping(*runs)
    work(scheduler, store_uri=str(tmp_path), resources=Resources(), concurrent=1)
    assert scheduler.outcomes["job 0"] == Outcome("PRUNED", message="stopped after epoch 1")
    assert scheduler.outcomes["job 1"].state == "COMPLETE"
    assert scheduler.epochs == [("job 0", 0), ("job 1", 0), ("job 1", 1), ("job 1", 2)]
    assert [find_result(Storage(str(tmp_path)), run) is None for run in runs] == [True, False]


def job_that(monkeypatch, *errors: Exception) -> tuple[list[dict[str, Any]], list[float]]:
    """Call the body of a Tune trial whose attempts raise the given errors in order, and then succeed.

    Returns:
        Reports of the trial and its waiting times in seconds.
    """
    reports: list[dict[str, Any]] = []
    waited: list[float] = []
    ends = iter(errors)

    def launch(store: str, run: Run, resources: Resources, report: Any, avoid: Any) -> Any:
        if (error := next(ends, None)) is not None:
            raise error
        return result_of(run, 0.5)

    monkeypatch.setattr(slot.LAUNCHER, "launch", launch)
    monkeypatch.setattr(slot.tune, "report", reports.append)
    monkeypatch.setattr(slot.time, "sleep", waited.append)
    run = run_of(SETTING, seed=0).to_plain()
    slot._job({"resources": Resources().model_dump(), "run": run, "store": "store"})
    return reports, waited


FULL = StoreError("x", "no space left on device", "free some space", True)


def test_a_fault_of_the_place_is_tried_again_after_a_pause(monkeypatch):
    (report,), waited = job_that(monkeypatch, FULL, FULL)
    assert report["run_end"]["error"] == ""
    assert waited == list(slot.PAUSES_S)


def test_a_fault_of_the_place_that_stays_is_left_to_tune(monkeypatch):
    with pytest.raises(StoreError, match="no space left on device"):
        job_that(monkeypatch, FULL, FULL, FULL)


@pytest.mark.parametrize(
    "error",
    [RunError("epoch 1, batch 3: the gradient is not finite"), StoreError("x", "is damaged", "remove it")],
)
def test_a_fault_of_the_run_is_not_tried_again(monkeypatch, error):
    (report,), waited = job_that(monkeypatch, error)
    assert report["run_end"] == {"result": None, "error": str(error)}
    assert not waited


FAULTS = [
    StoreError("sweeps/x/trials/00000.json", "cannot be written", "check the network", True),
    ValueError("a fault of raykd"),
]


class Broken(Scheduler):
    """A scheduler raising an error when the first job ends."""

    def __init__(self, fault: Exception):
        super().__init__("abcdef", seeds=1)
        self.fault = fault

    def ended(self, key: str, outcome: Outcome) -> None:
        super().ended(key, outcome)
        raise self.fault


@pytest.mark.parametrize("fault", FAULTS)
def test_what_the_scheduler_raises_ends_the_work_and_is_raised(run, fault):
    scheduler = Broken(fault)
    with pytest.raises(type(fault)) as raised:
        run(Tuner(), scheduler)
    assert raised.value is fault
    assert scheduler.names == list("cdef"), "nothing is proposed after it"


class Patient(Scheduler):
    """The second job waits for the first."""

    def next(self) -> Job | Wait | None:
        return "wait" if self.names == ["b"] and not ends(self) else super().next()


def test_a_job_that_has_to_wait_is_asked_for_again(run):
    scheduler = Patient("ab", seeds=1)
    assert run(Tuner(), scheduler) == [("a", 0), ("b", 0)]
    assert [key for key, _ in ends(scheduler)] == ["a", "b"]


class Last(Scheduler):
    """A scheduler with a last job waiting for all jobs before it."""

    def next(self) -> Job | Wait | None:
        return "wait" if len(self.names) == 1 and len(ends(self)) < 2 else super().next()


def test_a_slot_that_has_to_wait_keeps_its_actor_until_there_is_a_run(tmp_path):
    scheduler = Last("abc", seeds=1)
    jobs = OpenJobs(scheduler, stored)
    tune, reports = tune_pool._Proposals(jobs), tune_pool._Reports(jobs)

    def finish(trial: str) -> None:
        key, _ = jobs.places[trial]
        result = replace(result_of(jobs.open[key].job.runs[0], 0.5), run_id="0")
        reports(trial, {"run_end": {"result": result.to_plain(), "error": ""}})
        tune.on_trial_complete(trial)

    for trial in ("one", "two"):
        assert tune.suggest(trial)["run"]
    assert tune.suggest("more than there are actors") is None
    finish("one")
    assert tune.suggest("three") == {"run": None}
    assert reports("three", {slot.IDLE: True}) is False
    finish("two")
    assert reports("three", {slot.IDLE: True}) is True
    tune.on_trial_complete("three")
    tune_pool._Endings(jobs).on_trial_complete(0, [], SimpleNamespace(trial_id="three"))
    assert tune.suggest("four")["run"]
    finish("four")
    assert tune.suggest("five") == Searcher.FINISHED
    assert [key for key, _ in ends(scheduler)] == list("abc")


def test_a_run_whose_slot_died_before_it_is_given_to_another_slot_once():
    scheduler = Scheduler("ab", seeds=1)
    jobs = OpenJobs(scheduler, stored)
    tune, endings = tune_pool._Proposals(jobs), tune_pool._Endings(jobs)

    def fail(trial: str) -> None:
        tune.on_trial_complete(trial, error=True)
        endings.on_trial_error(0, [], SimpleNamespace(trial_id=trial, get_error=lambda: "it died"))

    def seed(trial: str) -> tuple[str, int]:
        assert tune.suggest(trial)["run"]
        return jobs.places[trial]

    assert seed("one") == ("a", 0)
    fail("one")
    assert not ends(scheduler)
    assert seed("two") == ("a", 0)
    fail("two")
    assert ends(scheduler) == [("a", "it died")]
    assert seed("three") == ("b", 0)
    endings.on_trial_start(0, [], SimpleNamespace(trial_id="three"))
    fail("three")
    assert ends(scheduler) == [("a", "it died"), ("b", "it died")]
    assert tune.suggest("four") == Searcher.FINISHED


def test_where_there_is_nothing_to_do_nothing_is_started(monkeypatch, tmp_path):
    monkeypatch.setattr(tune_pool.tune, "Tuner", None)
    work(Scheduler(""), store_uri=str(tmp_path), resources=Resources(), concurrent=1)


def processes(name: str) -> list[psutil.Process]:
    """Children of this process with a name starting with `ray::` and the given name."""
    results = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            results += [process] if (process.cmdline() or [""])[0].startswith(f"ray::{name}") else []
    return results


@pytest.mark.slow
def test_several_workers_take_run_after_run_whatever_becomes_of_one(ray_cluster, tmp_path):
    gold = recipe(objective={"kind": "gold"}, schedule={"epochs": 3}, corpus={"unlabelled": 0})
    (run,) = student_runs(gold, prepare(gold, Storage(str(tmp_path))))
    diverging = replace(run, training={**run.training, "learning_rate": 1e37})
    scheduler = Stopping(run, with_seed_offset(run, 1), diverging, with_seed_offset(run, 2))
    resources = Resources(workers=2, cpus_per_worker=0.5)
    work(scheduler, store_uri=str(tmp_path), resources=resources, concurrent=1)
    assert scheduler.outcomes["job 0"] == Outcome("PRUNED", message="stopped after epoch 1")
    assert scheduler.outcomes["job 2"].state == "FAILED"
    assert "is not finite" in scheduler.outcomes["job 2"].message
    for job in ("job 1", "job 3"):
        (result,) = scheduler.outcomes[job].results
        assert [epoch["epoch"] for epoch in result.epochs] == [0, 1, 2]
        assert result.workers == 2
    assert not processes("RayTrainWorker"), "they end with the work"


def test_what_a_slot_had_started_and_lost_is_left_to_tune(monkeypatch):
    with pytest.raises(RayActorError):
        job_that(monkeypatch, RayActorError())


@pytest.mark.parametrize(
    ("resources", "bundle"),
    [
        ({"cpus_per_worker": 2.0}, {"CPU": 2.0}),
        ({"cpus_per_worker": 2.0, "gpus_per_worker": 0.5}, {"CPU": 2.0, "GPU": 0.5}),
        ({"workers": 2, "gpus_per_worker": 1.0}, {"CPU": DRIVER_CPUS}),
        ({"ray_train": True, "gpus_per_worker": 1.0}, {"CPU": DRIVER_CPUS}),
    ],
)
def test_what_a_slot_takes_itself(resources, bundle):
    request = slot.Slot.default_resource_request({"resources": Resources(**resources).model_dump()})
    assert request.required_resources == bundle


class InTurn:
    """A scheduler of jobs in sequence; `between` is called before all jobs but the first, while no run is done."""

    def __init__(self, between: Callable[[int], None], *runs: Run):
        self.todo, self.between = list(enumerate(runs)), between
        self.states: list[str] = []

    def next(self) -> Job | Wait | None:
        if not self.todo:
            return None
        number, run = self.todo[0]
        if len(self.states) < number:
            return "wait"
        if number:
            self.between(number)
        self.todo.pop(0)
        return Job(str(number), (run,))

    def epoch(self, key: str, run_id: str, metrics: Mapping[str, Any]) -> Literal["continue", "stop"]:
        return "continue"

    def ended(self, key: str, outcome: Outcome) -> None:
        self.states.append(outcome.state)


@pytest.mark.slow
def test_a_slot_waits_while_the_scheduler_is_at_work_and_is_replaced_where_it_died(ray_cluster, tmp_path):
    gold = recipe(objective={"kind": "gold"}, schedule={"epochs": 1}, corpus={"unlabelled": 0})
    (run,) = student_runs(gold, prepare(gold, Storage(str(tmp_path))))
    slots: list[int] = []

    def between(number: int) -> None:
        (slot,) = processes("Slot")
        slots.append(slot.pid)
        if number == 2:
            slot.kill()
            slot.wait()

    scheduler = InTurn(between, *(with_seed_offset(run, seed) for seed in range(3)))
    work(scheduler, store_uri=str(tmp_path), resources=Resources(), concurrent=1)
    assert scheduler.states == ["COMPLETE"] * 3
    assert len(slots) == 2
    assert len(set(slots)) == 1
