"""How the executor hands out runs: seeds apart, a job's end with its last run, and again what short memory cut off."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import OutOfMemoryError
from ray.tune.search import Searcher

import raykd.runs.executor as executor
from raykd.errors import RunError
from raykd.runs.executor import Job, work
from raykd.runs.recipe import Resources
from tests.sweep.samples import run_of

SETTING = {
    "student": {"embedding_dim": 8, "decoder": "crf"}, "objective": {"kind": "structural"}, "schedule": {"epochs": 1}
}  # fmt: skip


class Scheduler:
    def __init__(self, names: str, seeds: int = 2):
        self.names, self.seeds = list(names), seeds
        self.heard: list[tuple[str, Any]] = []

    def next(self) -> Job | None:
        if not self.names:
            return None
        return Job(self.names.pop(0), tuple(run_of(SETTING, seed=seed) for seed in range(self.seeds)))

    def epoch(self, key: str, metrics: dict[str, Any]) -> None:
        self.heard.append((key, metrics["run_id"]))

    def ended(self, key: str, results: Any, error: str | None) -> None:
        self.heard.append((key, error or [result["seed"] for result in results]))


class Tuner:
    """Two trials at once, as Tune would do them; the later of the two ends first.

    `fails`: the numbers of the trials whose run fails; `cut`: of those with which memory is short.
    """

    def __init__(self, fails: tuple[int, ...] = (), cut: tuple[int, ...] = ()):
        self.fails, self.cut = fails, cut
        self.proposed: list[tuple[str, int]] = []

    def __call__(self, trainable: Any, *, param_space: Any, tune_config: Any, run_config: Any) -> Any:
        search, callback = tune_config.search_alg, run_config.callbacks[0]

        def begin() -> Any:
            trial = SimpleNamespace(trial_id=f"trial-{len(self.proposed)}", number=len(self.proposed))
            plain = search.suggest(trial.trial_id)
            if plain == Searcher.FINISHED:
                return None
            trial.seed = plain["run"]["training"]["seed"]
            self.proposed.append((callback.places[trial.trial_id][0], trial.seed))
            return trial

        def end(trial: Any) -> None:
            callback.on_trial_result(0, [], trial, {"run_id": f"seed {trial.seed}"})
            result, error = {"seed": trial.seed}, None
            if trial.number in self.fails:
                result, error = None, "it diverged"
            callback.on_trial_result(0, [], trial, {"ended": True, "result": result, "error": error})
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
    def run(tuner: Tuner, scheduler: Scheduler) -> list[tuple[str, int]]:
        monkeypatch.setattr(executor.tune, "Tuner", tuner)
        work(scheduler, store_uri=str(tmp_path), resources=Resources(max_failures=2), concurrent=2)
        return tuner.proposed

    return run


def ends(scheduler: Scheduler) -> list[tuple[str, Any]]:
    return [(key, told) for key, told in scheduler.heard if not str(told).startswith("seed ")]


def test_seeds_are_placed_by_themselves_and_told_together_in_order(run):
    scheduler = Scheduler("ab", seeds=3)
    assert run(Tuner(), scheduler) == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2)]
    assert ends(scheduler) == [("a", [0, 1, 2]), ("b", [0, 1, 2])]
    assert scheduler.heard[0] == ("a", "seed 1")


def test_a_job_ends_with_its_first_failure_and_the_rest_goes_on(run):
    scheduler = Scheduler("ab", seeds=3)
    # Seed 1 of "a" fails while seed 0 runs: seed 2 is not begun, and what seed 0 says is nobody's business any more.
    assert run(Tuner(fails=(1,)), scheduler) == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)]
    assert ends(scheduler) == [("a", "it diverged"), ("b", [0, 1, 2])]
    assert ("a", "seed 0") not in scheduler.heard


def test_unfinished_runs_come_again_and_finished_ones_do_not(run):
    scheduler = Scheduler("ab")
    # Seed 1 of "a" had ended when memory was short.
    assert run(Tuner(cut=(0,)), scheduler) == [("a", 0), ("a", 1), ("a", 0), ("b", 0), ("b", 1)]
    assert ends(scheduler) == [("a", [0, 1]), ("b", [0, 1])]


def test_memory_that_stays_short_is_told_with_the_mend(run):
    with pytest.raises(RunError, match=r"memory was short 3 times.*resources\.concurrency"):
        run(Tuner(cut=tuple(range(9))), Scheduler("abcde"))


def test_other_errors_of_tune_are_not_swallowed(monkeypatch, tmp_path):
    def broken(*args: Any, **options: Any) -> Any:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(executor.tune, "Tuner", broken)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        work(Scheduler(""), store_uri=str(tmp_path), resources=Resources(), concurrent=1)
