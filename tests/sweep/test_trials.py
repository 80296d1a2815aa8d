"""The scheduler of trials: interrupted trials first, no setting twice, every end recorded and logged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from raykd.cluster.jobs import Job, Outcome
from raykd.figures.table import OBJECTIVES
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.sweep.bookkeeping import Recorder
from raykd.sweep.records import Record, SweepRecords
from raykd.sweep.scheduler import MOST_REPEATS, InTurn, Trials
from raykd.sweep.settings import Setting
from raykd.sweep.spec import SearchConfig
from raykd.sweep.study import Study
from raykd.tasks import TASKS
from tests.long import mostly_slow
from tests.silent import Silent
from tests.sweep.samples import COST, TREE, result_of, run_of

EPOCH = {"epoch": 0, "dev": 0.1, "tokens": 100, "tokens_per_second": 10.0}


class Tracked:
    """A tracker keeping all logged epochs and ended trials."""

    def __init__(self) -> None:
        self.epochs: list[tuple[int, int, str]] = []
        self.ended: list[int] = []

    def log_epoch(self, number, epoch, metrics, *, run="", stages=()):
        self.epochs.append((number, epoch, run))

    def end_trial(self, number):
        self.ended.append(number)


class Fixed:
    """A search with a fixed list of proposals; `calls` holds the arguments of all requests."""

    exhaustive = False

    def __init__(self, *trees: dict[str, Any], forever: bool = False, learns: bool = False):
        self._study = Study(TREE, SearchConfig())
        self.trees, self.forever, self.learns, self.calls = list(trees), forever, learns, []

    def ask(self, number, attempt, earlier):
        self.calls.append(
            (number, attempt, [(record.trial.number, record.trial.state) for record in earlier])
        )
        if not self.trees:
            return None
        tree = self.trees[0] if self.forever else self.trees.pop(0)
        suggestion = self._study.ask(number, attempt, ())
        assert suggestion is not None
        return replace(suggestion, tree=tree)


@pytest.fixture
def tracked():
    return Tracked()


@pytest.fixture
def records(tmp_path):
    return SweepRecords(Storage(str(tmp_path)), "sweep")


def setting(kind: str = "structural", *, rate: float = 1.0, dim: int = 8) -> dict[str, Any]:
    return {
        "student": {"embedding_dim": dim, "decoder": "crf"}, "objective": {"kind": kind},
        "schedule": {"epochs": 2, "anneal_rate": rate},
    }  # fmt: skip


def scheduler(
    records,
    tracked,
    search,
    *,
    earlier_records=(),
    limit=10,
    at_once: int = 1,
    spent=lambda trials: "",
    seeds: int = 1,
    resolve=None,
) -> Trials:
    recorder = Recorder(records, tracked, Silent(), OBJECTIVES, cost_of=lambda _: COST)
    return Trials(
        recorder, search, resolve or (lambda tree: setting_of(tree, seeds)), role="search",
        earlier_records=earlier_records, limit=limit, at_once=at_once, spent=spent,
    )  # fmt: skip


def setting_of(tree: Mapping[str, Any], seeds: int) -> Setting:
    prepared: Any = SimpleNamespace(differences={"corpus.cap": 500})
    recipe: Any = SimpleNamespace(task_entry=TASKS["ner"], method=tree["objective"]["kind"], strategy=None)
    return Setting(tree, recipe, prepared, tuple((run_of(dict(tree), seed=seed),) for seed in range(seeds)))


def complete(runs: tuple[Run, ...], *f1: float) -> Outcome:
    return Outcome("COMPLETE", tuple(result_of(run, score) for run, score in zip(runs, f1, strict=True)))


def states(records) -> list[str]:
    return [record.trial.state for record in records.load()]


def test_trials_are_recorded_as_they_begin_and_as_they_end(records, tracked):
    search = Fixed(setting(), setting("gold"))
    trials = scheduler(records, tracked, search)
    first, second = trials.next(), trials.next()
    assert trials.next() is None
    assert states(records) == ["RUNNING", "RUNNING"]
    trials.ended(second.key, Outcome("FAILED", message="its process died"))
    trials.ended(first.key, complete(first.runs, 0.5))
    complete_trial, failed = (record.trial for record in records.load())
    assert (
        complete_trial.state,
        complete_trial.scores.mean("dev"),
        complete_trial.cost,
        complete_trial.wall_s,
    ) == (
        "COMPLETE",
        0.5,
        COST.figures,
        2.0,
    )
    assert complete_trial.scores.by_language("dev") == pytest.approx({"en": 0.4, "de": 0.6})
    assert (complete_trial.settings["student.embedding_dim"], complete_trial.settings["corpus.cap"]) == (
        8,
        500,
    )
    assert (failed.state, failed.message, failed.scores.mean("dev")) == ("FAILED", "its process died", None)
    assert tracked.ended == [1, 0]


def test_one_run_asked_for_twice_is_done_once(records, tracked):
    # Annealing has no effect on gold: the three gold settings are one run.
    search = Fixed(setting("gold"), setting("gold", rate=0.5), setting(), setting("gold", rate=2.0))
    trials = scheduler(records, tracked, search)
    gold, structural = trials.next(), trials.next()
    assert [job.runs[0].stages[0]["objective"]["kind"] for job in (gold, structural)] == [
        "gold",
        "structural",
    ]
    trials.ended(gold.key, complete(gold.runs, 0.4))
    assert trials.next() is None
    assert [call[:2] for call in search.calls] == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert len(records.load()) == 2


def test_a_sampler_that_only_repeats_itself_comes_to_an_end(records, tracked):
    search = Fixed(setting(), forever=True)
    trials = scheduler(records, tracked, search)
    assert trials.next() is not None
    assert trials.next() is None
    assert len(search.calls) == 1 + MOST_REPEATS
    assert re.match(
        r"the sampler found no new setting in 100 proposals .*; set search.sampler: grid", trials.ended_by
    )


def test_a_list_that_is_through_needs_no_reason(records, tracked):
    trials = scheduler(records, tracked, Fixed(setting()))
    assert trials.next() is not None
    assert trials.next() is None
    assert trials.ended_by == ""


def test_interrupted_trials_come_first_and_keep_their_number(records, tracked):
    before = scheduler(records, tracked, Fixed(setting(), setting("gold")))
    finished, open_ = before.next(), before.next()
    before.ended(finished.key, complete(finished.runs, 0.5))
    earlier = records.load()
    search = Fixed(setting(), setting("gold"), setting("posterior"))
    trials = scheduler(records, tracked, search, earlier_records=earlier, limit=1)
    resumed, new = trials.next(), trials.next()
    assert (resumed.key, resumed.runs) == (open_.key, open_.runs)
    assert new.runs[0].stages[0]["objective"]["kind"] == "posterior"
    assert trials.next() is None, "one trial was left to do beside the interrupted one"
    trials.ended(resumed.key, complete(resumed.runs, 0.3))
    trials.ended(new.key, complete(new.runs, 0.3))
    assert states(records) == ["COMPLETE"] * 3


def test_failed_trials_are_tried_again_by_the_next_driver(records, tracked):
    first = scheduler(records, tracked, Fixed(setting(), setting("gold")))
    failing, fine = first.next(), first.next()
    first.ended(failing.key, Outcome("FAILED", message="no space left on device"))
    first.ended(fine.key, complete(fine.runs, 0.5))
    assert first.next() is None, "not by the same driver"

    search = Fixed()
    second = scheduler(records, tracked, search, earlier_records=records.load(), limit=0)
    job = second.next()
    assert (job.key, job.runs) == (failing.key, failing.runs)
    (trial, _) = (record.trial for record in records.load())
    assert (trial.number, trial.state, trial.message) == (0, "RUNNING", "")
    second.ended(job.key, complete(job.runs, 0.4))
    assert second.next() is None
    assert states(records) == ["COMPLETE", "COMPLETE"]


def test_no_trial_begins_when_most_fail_and_the_next_driver_judges_anew(records, tracked):
    first = scheduler(records, tracked, Fixed(*dims(8)))
    for _ in range(4):
        first.ended(first.next().key, Outcome("FAILED", message="no file"))
    assert first.next() is None
    assert "4 of 4 trials failed" in first.given_up
    assert states(records) == ["FAILED"] * 4

    # Corrected: what the first left failed does not count against the ones that are tried again.
    second = scheduler(records, tracked, Fixed(*dims(8)[4:]), earlier_records=records.load(), limit=4)
    job = second.next()
    second.ended(job.key, Outcome("FAILED", message="no file"))
    for _ in range(7):
        job = second.next()
        second.ended(job.key, complete(job.runs, 0.5))
    assert second.next() is None
    assert not second.given_up
    assert states(records) == ["FAILED"] + ["COMPLETE"] * 7


def test_a_trial_that_is_stopped_is_pruned(records, tracked):
    search = Fixed(setting())
    trials = scheduler(records, tracked, search)
    job = trials.next()
    trials.ended(job.key, Outcome("PRUNED", message="stopped after epoch 1"))
    (record,) = records.load()
    assert (record.trial.state, record.trial.message) == ("PRUNED", "stopped after epoch 1")
    assert (record.trial.scores.mean("dev"), record.trial.cost) == (None, COST.figures)


def test_no_trial_starts_when_the_budget_is_spent(records, tracked):
    def spent(all_trials):
        return "the budget is spent" * (len(list(all_trials)) > 1)

    trials = scheduler(records, tracked, Fixed(setting(), setting("gold"), setting(dim=16)), spent=spent)
    jobs = [trials.next() for _ in range(3)]
    assert jobs[2] is None
    assert trials.ended_by == "the budget is spent"
    assert states(records) == ["RUNNING"] * 2, "those that run are finished"


def test_several_seeds_are_one_trial_with_mean_and_spread(records, tracked):
    trials = scheduler(records, tracked, Fixed(setting()), seeds=3)
    job = trials.next()
    assert len({run.id for run in job.runs}) == 3
    assert trials.epoch(job.key, job.runs[1].id, EPOCH) == "continue"
    trials.ended(job.key, complete(job.runs, 0.2, 0.4, 0.9))
    (record,) = records.load()
    assert record.trial.run_ids == tuple(run.id for run in job.runs)
    dev = record.trial.scores.get("dev")
    assert dev is not None
    assert (dev.mean, dev.sd) == (pytest.approx(0.5), pytest.approx(0.13**0.5))
    assert dev.by_seed == pytest.approx((0.2, 0.4, 0.9))
    assert record.trial.scores.mean("test") == pytest.approx(0.5)
    assert record.trial.wall_s == 6.0
    # Each epoch of each seed is logged once, also what was logged while it ran.
    assert sorted(tracked.epochs) == [(0, epoch, f"seed {seed}") for epoch in range(2) for seed in range(3)]


def test_a_path_that_names_the_seed_shows_as_it_was_written_and_without_a_checksum(records, tracked):
    """The path of the first seed would name only one student, and two settings may differ in their paths alone."""
    resolved = {"kind": "pretrained", "path": "encoders/small_0", "checksum": "ab" * 32}
    written = {**setting(), "student": {"kind": "pretrained", "path": "encoders/small_{seed}"}}

    def resolve(tree):
        (run,) = setting_of(tree, 1).runs
        return replace(setting_of(tree, 1), seeds=((replace(run, model=resolved),),))

    scheduler(records, tracked, Fixed(written), resolve=resolve).next()
    (record,) = records.load()
    student_settings = {
        path: value for path, value in record.trial.settings.items() if path.startswith("student.")
    }
    assert student_settings == {"student.kind": "pretrained", "student.path": "encoders/small_{seed}"}


def test_what_the_search_must_know_survives_the_store(records, tracked):
    job = scheduler(records, tracked, Study(TREE, SearchConfig()), limit=1).next()
    (record,) = records.load()
    assert run_of(dict(record.resolved)).id == job.runs[0].id
    assert set(record.params) == set(record.distributions)
    assert Record.from_plain(json.loads(json.dumps(record.to_plain()))) == record


def dims(count: int) -> list[dict[str, Any]]:
    return [setting(dim=8 * (1 + number)) for number in range(count)]


def test_a_search_that_learns_sees_the_same_trials_whichever_end_first(records, tracked):
    search = Fixed(*dims(6), learns=True)
    trials = scheduler(records, tracked, search, at_once=2)
    jobs = [trials.next() for _ in range(2)]
    trials.ended(jobs[1].key, complete(jobs[1].runs, 0.5))
    jobs.append(trials.next())
    trials.ended(jobs[2].key, complete(jobs[2].runs, 0.5))
    assert trials.next() == "wait", "trial 3 depends on trial 0, which runs"
    trials.ended(jobs[0].key, Outcome("FAILED", message="no space"))
    assert isinstance(trials.next(), Job)
    assert search.calls == [(0, 0, []), (1, 0, []), (2, 0, []), (3, 0, [(0, "FAILED")])]


@pytest.mark.parametrize("sampler", mostly_slow(["tpe", "nsga2", "random"], quick=["random"]))
@pytest.mark.parametrize("at_once", mostly_slow([1, 4], quick=[4]))
def test_a_search_is_the_same_in_whatever_order_its_trials_end_and_wherever_it_is_killed(
    tmp_path, sampler, at_once
):
    # Each draw is a new setting, wherever chance has the search look: on gold labels alone nothing is annealed.
    annealed = {"choice": [{"kind": "top_wk", "k": {"int": [1, 10]}}, {"kind": "posterior"}]}
    schedule = {"epochs": 2, "anneal_rate": {"float": [0.0, 2.0]}}
    tree = {**TREE, "objective": annealed, "schedule": schedule}

    def search(name: str, order: Random, killed_at: Sequence[int] = ()) -> list[Any]:
        records, kills = SweepRecords(Storage(str(tmp_path)), name), list(killed_at)
        while True:
            earlier, ended = records.load(), 0
            trials = scheduler(
                records, Tracked(), Study(tree, SearchConfig(sampler=sampler)),
                earlier_records=earlier, limit=30 - len(earlier), at_once=at_once,
            )  # fmt: skip
            running: list[Job] = []
            while True:
                while len(running) < at_once and isinstance(job := trials.next(), Job):
                    running.append(job)
                if not running or (kills and ended == kills[0]):
                    break
                job = running.pop(order.randrange(len(running)))
                trials.ended(job.key, complete(job.runs, 0.2 + int(job.runs[0].id[-4:], 16) / 2**17))
                ended += 1
            if not kills:
                return [dict(record.params) for record in records.load()]
            kills.pop(0)

    whole = search("whole", Random(0))
    assert len(whole) == 30
    assert search("other", Random(1)) == whole
    assert search("killed", Random(2), [3, 5, 11]) == whole


def test_schedulers_take_their_turns_and_a_later_one_sees_how_the_earlier_ones_ended(records, tracked):
    after: list[list[str]] = []

    def phases():
        yield scheduler(records, tracked, Fixed(setting(dim=8), setting(dim=16)))
        after.append(states(records))
        yield scheduler(records, tracked, Fixed(setting("posterior", dim=8)))
        after.append(states(records))

    both = InTurn(phases())
    first, second = both.next(), both.next()
    assert isinstance(first, Job)
    assert isinstance(second, Job)
    assert both.next() == "wait"
    both.ended(second.key, complete(second.runs, 0.5))
    assert both.next() == "wait"
    assert after == []
    both.ended(first.key, complete(first.runs, 0.5))
    third = both.next()
    assert isinstance(third, Job)
    assert after == [["COMPLETE"] * 2]
    assert both.epoch(third.key, third.runs[0].id, EPOCH) == "continue"
    both.ended(third.key, complete(third.runs, 0.5))
    assert both.next() is None
    assert both.next() is None
    assert after == [["COMPLETE"] * 2, ["COMPLETE"] * 3]


def test_without_anything_to_do_there_is_no_job():
    assert InTurn(iter(())).next() is None
