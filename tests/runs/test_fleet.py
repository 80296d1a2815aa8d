"""What the fleet does when memory is short: unfinished jobs are proposed again, and only those."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import OutOfMemoryError
from ray.tune.search import Searcher

import raykd.runs.fleet as fleet
from raykd.errors import RunError
from raykd.runs.fleet import Job, work
from raykd.runs.recipe import Resources


class Foreman:
    def __init__(self, names: list[str]):
        self.names, self.ended_keys = list(names), []

    def next(self) -> Job | None:
        return Job(self.names.pop(0), ()) if self.names else None

    def epoch(self, key: str, metrics: dict[str, Any]) -> None: ...

    def ended(self, key: str, results: Any, error: str | None) -> None:
        self.ended_keys.append(key)


class ShortOfMemory:
    """A Tuner that does one job a call and then dies as Tune does, `times` times."""

    def __init__(self, times: int):
        self.times, self.proposed = times, []

    def __call__(self, trainable: Any, *, param_space: Any, tune_config: Any, run_config: Any) -> Any:
        search, bridge = tune_config.search_alg, run_config.callbacks[0]

        def fit() -> None:
            for n in range(100):
                name = f"{len(self.proposed)}-{n}"
                if search.suggest(name) == Searcher.FINISHED:
                    return
                self.proposed.append(bridge.keys[name])
                if n == 1 and self.times:
                    # Two run at once; the first ended, the second is cut off.
                    self.times -= 1
                    raise RuntimeError("Caught unexpected exception") from OutOfMemoryError("killed")
                result = {"ended": True, "results": [], "error": None}
                bridge.on_trial_result(0, [], SimpleNamespace(trial_id=name), result)

        return SimpleNamespace(fit=fit)


@pytest.fixture
def run(monkeypatch, tmp_path):
    def run(times: int, foreman: Foreman) -> list[str]:
        tuner = ShortOfMemory(times)
        monkeypatch.setattr(fleet.tune, "Tuner", tuner)
        work(foreman, store_uri=str(tmp_path), resources=Resources(max_failures=2), concurrent=2)
        return tuner.proposed

    return run


def test_unfinished_jobs_come_again_and_finished_ones_do_not(run):
    foreman = Foreman(["a", "b", "c"])
    assert run(1, foreman) == ["a", "b", "b", "c"]
    assert foreman.ended_keys == ["a", "b", "c"]


def test_memory_that_stays_short_is_told_with_the_mend(run):
    with pytest.raises(RunError, match=r"memory was short 3 times.*resources\.concurrency"):
        run(9, Foreman(["a", "b", "c", "d", "e"]))


def test_other_errors_of_tune_are_not_swallowed(monkeypatch, tmp_path):
    def broken(*args: Any, **options: Any) -> Any:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(fleet.tune, "Tuner", broken)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        work(Foreman([]), store_uri=str(tmp_path), resources=Resources(), concurrent=1)
