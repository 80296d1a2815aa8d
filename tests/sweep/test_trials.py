"""What the scheduler of trials does: interrupted trials first, no setting twice, every end recorded and told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from raykd.runs.progress import Silent
from raykd.runs.run import Run
from raykd.storage import Storage
from raykd.sweep.records import Record, SweepRecords
from raykd.sweep.scheduler import MOST_REPEATS, Recorder, Trials
from raykd.sweep.spec import SearchConfig
from raykd.sweep.study import Study
from tests.sweep.samples import COST, TREE, result_of, run_of


class Told:
    """A tracking server that writes down what it hears."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.finished: list[tuple[int, str]] = []
        self.epochs: list[tuple[int, int, int | None]] = []

    def start_trial(self, trial):
        self.started.append(trial.number)

    def finish_trial(self, trial):
        self.finished.append((trial.number, trial.state))

    def log_epoch(self, number, epoch, metrics, *, seed=None):
        self.epochs.append((number, epoch, seed))

    def log_front(self, count, *, hypervolume, students):
        pass


class Fixed:
    """A search that proposes a list of settings, and writes down what it is told of them."""

    exhaustive = False

    def __init__(self, *trees: dict[str, Any], forever: bool = False):
        self._study = Study(TREE, SearchConfig(), [])
        self.trees, self.forever, self.heard, self.added = list(trees), forever, [], []

    def suggest(self):
        if not self.trees:
            return None
        tree = self.trees[0] if self.forever else self.trees.pop(0)
        suggestion = self._study.ask()
        assert suggestion is not None
        return suggestion, tree

    def tell(self, suggestion, trial):
        self.heard.append((trial.number, trial.state))

    def add(self, record):
        self.added.append(record.trial.number)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def records(tmp_path):
    return SweepRecords(Storage(str(tmp_path)), "sweep")


def setting(kind: str = "structural", *, rate: float = 1.0, dim: int = 8) -> dict[str, Any]:
    return {
        "student": {"embedding_dim": dim, "decoder": "crf"}, "objective": {"kind": kind},
        "schedule": {"epochs": 2, "anneal_rate": rate},
    }  # fmt: skip


def scheduler(
    records, told, search, *, resumed=(), known=None, most=10, deadline=None, seeds: int = 1
) -> Trials:
    recorder = Recorder(records, told, Silent(), cost_of=lambda _: COST, grown=lambda: (0, 0.0, 0))
    return Trials(
        recorder, role="search", resumed=resumed, study=search, suggest=search.suggest,
        runs_of=lambda tree: tuple(run_of(tree, seed=seed) for seed in range(seeds)),
        first=len(records.load()), known=known or {}, most=most, deadline=deadline,
    )  # fmt: skip


def results_of(runs: tuple[Run, ...], *f1: float) -> list[dict[str, Any]]:
    return [result_of(run, score) for run, score in zip(runs, f1, strict=True)]


def states(records) -> list[str]:
    return [record.trial.state for record in records.load()]


def test_trials_are_recorded_as_they_begin_and_as_they_end(records, told):
    search = Fixed(setting(), setting("gold"))
    trials = scheduler(records, told, search)
    first, second = trials.next(), trials.next()
    assert trials.next() is None
    assert states(records) == ["RUNNING", "RUNNING"]
    trials.ended(second.key, None, "its process died")
    trials.ended(first.key, results_of(first.runs, 0.5), None)
    complete, failed = (record.trial for record in records.load())
    assert (complete.state, complete.dev_f1, complete.latency_ms, complete.wall_s) == (
        "COMPLETE",
        0.5,
        1.5,
        2.0,
    )
    assert complete.dev_f1_by_language == pytest.approx({"en": 0.4, "de": 0.6})
    assert complete.settings["student.embedding_dim"] == 8
    assert (failed.state, failed.message, failed.dev_f1) == ("FAILED", "its process died", None)
    assert search.heard == [(1, "FAILED"), (0, "COMPLETE")]
    assert told.started == [0, 1]
    assert told.finished == [(1, "FAILED"), (0, "COMPLETE")]


def test_one_run_asked_for_twice_is_done_once(records, told):
    # Gold does not know annealing: the three gold settings are one run.
    search = Fixed(setting("gold"), setting("gold", rate=0.5), setting(), setting("gold", rate=2.0))
    trials = scheduler(records, told, search)
    gold, other = trials.next(), trials.next()
    assert [job.runs[0].objective["kind"] for job in (gold, other)] == ["gold", "structural"]
    assert search.heard == [(0, "PRUNED")], "a setting that is being tried has no figures yet"
    trials.ended(gold.key, results_of(gold.runs, 0.4), None)
    assert trials.next() is None
    assert search.heard == [(0, "PRUNED"), (0, "COMPLETE"), (0, "COMPLETE")]
    assert len(records.load()) == 2


def test_a_sampler_that_only_repeats_itself_comes_to_an_end(records, told):
    search = Fixed(setting(), forever=True)
    trials = scheduler(records, told, search)
    assert trials.next() is not None
    assert trials.next() is None
    assert len(search.heard) == MOST_REPEATS


def test_interrupted_trials_come_first_and_keep_their_number(records, told):
    before = scheduler(records, told, Fixed(setting(), setting("gold")))
    done, open_ = before.next(), before.next()
    before.ended(done.key, results_of(done.runs, 0.5), None)
    own = records.load()
    again = Fixed(setting(), setting("gold"), setting("posterior"))
    trials = scheduler(
        records, told, again, resumed=[record for record in own if record.trial.state == "RUNNING"],
        known={record.trial.run_ids: record for record in own}, most=1,
    )  # fmt: skip
    resumed, new = trials.next(), trials.next()
    assert (resumed.key, resumed.runs) == (open_.key, open_.runs)
    assert new.runs[0].objective["kind"] == "posterior"
    assert trials.next() is None, "one trial was left to do beside the interrupted one"
    trials.ended(resumed.key, results_of(resumed.runs, 0.3), None)
    assert again.added == [1], "the search hears of a trial that an earlier driver proposed"
    trials.ended(new.key, results_of(new.runs, 0.3), None)
    assert states(records) == ["COMPLETE"] * 3


def test_no_trial_starts_after_the_deadline(records, told):
    search = Fixed(setting(), setting("gold"))
    trials = scheduler(records, told, search, deadline=0.0)
    assert trials.next() is None
    assert trials.out_of_time
    assert records.load() == []


def test_several_seeds_are_one_trial_with_mean_and_spread(records, told):
    trials = scheduler(records, told, Fixed(setting()), seeds=3)
    job = trials.next()
    assert len({run.id for run in job.runs}) == 3
    trials.epoch(job.key, {"epoch": 0, "dev_f1": 0.1, "run_id": job.runs[1].id})
    trials.ended(job.key, results_of(job.runs, 0.2, 0.4, 0.9), None)
    (record,) = records.load()
    assert record.trial.run_ids == tuple(run.id for run in job.runs)
    assert record.trial.dev_f1 == pytest.approx(0.5)
    assert record.trial.dev_f1_sd == pytest.approx(0.13**0.5)
    assert record.trial.test_f1 == pytest.approx(0.5)
    assert record.trial.wall_s == 6.0
    # Each epoch of each seed is told once, also what was told while it ran.
    assert sorted(told.epochs) == [(0, epoch, seed) for epoch in range(2) for seed in range(3)]


def test_what_the_search_must_know_survives_the_store(records, told):
    search = Study(TREE, SearchConfig(), [])

    def suggest():
        suggestion = search.ask()
        return suggestion and (suggestion, suggestion.tree)

    search.suggest = suggest  # type: ignore[attr-defined]
    job = scheduler(records, told, search, most=1).next()
    (record,) = records.load()
    assert run_of(dict(record.resolved)).id == job.runs[0].id
    assert set(record.params) == set(record.distributions)
    assert Record.from_plain(json.loads(json.dumps(record.to_plain()))) == record
