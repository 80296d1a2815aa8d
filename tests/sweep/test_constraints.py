"""Constraints: they keep trials from being trained, lead the sampler, and keep students off the front."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from raykd.figures.front import pareto_front
from raykd.figures.table import OBJECTIVES
from raykd.report.findings import judge
from raykd.report.terminal_table import front_table, headline
from raykd.storage.store import Storage
from raykd.sweep.bookkeeping import Recorder
from raykd.sweep.constraints import Constraints
from raykd.sweep.phases.baseline import worth_a_baseline
from raykd.sweep.records import Record, SweepRecords
from raykd.sweep.scheduler import MOST_REPEATS, Trials
from raykd.sweep.spec import SearchConfig
from raykd.sweep.study import Study
from raykd.sweep.sweep_faults import check_sweep
from tests.silent import Silent
from tests.sweep.samples import COST, TREE, trial
from tests.sweep.test_spec import GOOD, faults, written  # noqa: F401  (a fixture)
from tests.sweep.test_study import record_of, suggest
from tests.sweep.test_trials import Fixed, Tracked, complete, setting, setting_of

SMALL = Constraints.from_sources(["parameters <= 1000", "f1 >= 0.9 * teacher"], "f1", 0.8)


def scheduler(folder, search, *, limit: int = 10) -> Trials:
    """Trials of students with 125 parameters per `embedding_dim`."""
    records = SweepRecords(Storage(str(folder)), "sweep")

    def cost_of(student):
        return replace(
            COST, figures={**COST.figures, "parameters": 125 * student.tree["student"]["embedding_dim"]}
        )

    recorder = Recorder(records, Tracked(), Silent(), OBJECTIVES, cost_of, SMALL)  # type: ignore[arg-type]
    return Trials(
        recorder, search, lambda tree: setting_of(tree, 1), role="search", earlier_records=(), limit=limit
    )


def done(trials: Trials, *f1: float) -> Iterator[Record]:
    for dev in f1:
        job = trials.next()
        assert job is not None
        assert job != "wait"
        trials.ended(job.key, complete(job.runs, dev))
    yield from trials._recorder.records.load()


def test_a_setting_that_costs_too_much_is_no_trial_and_one_that_scores_too_low_is_not_on_the_front(tmp_path):
    search = Fixed(setting(dim=16), setting(dim=8), setting("gold", dim=16), setting("gold", dim=8))
    low, high = done(scheduler(tmp_path, search), 0.7, 0.75)
    assert [stored.trial.number for stored in (low, high)] == [0, 1]
    assert low.trial.violations == {
        "parameters <= 1000": 0,
        "f1 >= 0.9 * teacher": pytest.approx(0.02 / 0.72),
    }
    assert not low.trial.feasible
    assert high.trial.feasible
    assert pareto_front([low.trial, high.trial], OBJECTIVES) == [high.trial]
    assert [
        stored.trial.number for stored in worth_a_baseline([low, replace(high, trial=low.trial)], OBJECTIVES)
    ] == []


def test_a_search_in_which_nothing_is_allowed_ends(tmp_path):
    search = Fixed(setting(dim=16), forever=True)
    assert scheduler(tmp_path, search).next() is None
    assert len(search.calls) == MOST_REPEATS


MISSED = [trial(n, dev, violations={"f1 >= 0.9": 0.9 - dev}) for n, dev in ((0, 0.5), (1, 0.8))]


def test_the_table_says_how_many_are_left_out_and_the_verdict_which_comes_closest():
    counted = "0 of 2 students on the front, 2 left out by the constraints"
    assert headline(MISSED, []) == f"{counted}, most by f1 >= 0.9 (2)"
    assert front_table(MISSED).rows == []
    assert front_table(MISSED).none == "none of 2 students meets search.constraints"
    both = [
        trial(n, 0.5, violations={"a": margin, "b": 0.1}) for n, margin in ((0, -0.3), (1, 0.3), (2, 0.3))
    ]
    assert headline(both, []).endswith("3 left out by the constraints, most by b (3)")
    assert headline(both[1:], []).endswith("2 left out by the constraints, most by a (2)")
    assert judge(MISSED, []).verdict.text == (
        "Do not ship yet: no student meets search.constraints; the closest, #01, misses f1 >= 0.9 by 10.0 %. "
        "Relax it, or search other students"
    )


@pytest.mark.parametrize("sampler", ["tpe", "nsga2", "gp"])
def test_samplers_that_learn_are_led_by_the_constraints(sampler):
    """CRF students are better in all objectives, but miss a constraint."""
    study, allowed = Study(TREE, SearchConfig(sampler=sampler)), 0
    random, decoders = Study(TREE, SearchConfig(sampler="random", seed=3)), []
    for number in range(36):
        suggestion = suggest(random, number)
        crf = suggestion.tree["student"]["decoder"] == "crf"
        dev = 0.9 if crf else 0.5 + 0.01 * number
        fresh = record_of(suggestion, number)
        ended = trial(number, dev, violations={"a": 0.5 if crf else -0.5}, cost=COST.figures)
        decoders.append(replace(fresh, trial=ended, sampler={"NSGAIISampler:generation": number // 12}))
    draws = 12 if sampler == "gp" else 40
    for attempt in range(draws):
        allowed += suggest(study, 36, attempt, decoders).tree["student"]["decoder"] == "maxent"
    assert allowed > 0.7 * draws


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ("f1 >= 0.95 * teacher", None),
        ("bytes <= 10e6", None),
        ("f1[en] > 0.5", None),
        ("f1[nl] > 0.5", "f1[nl] is not known: only languages with labels have a dev_f1 (f1[en])"),
        (
            "over_gold > 0",
            "over_gold is known after the search, when the baseline is trained; ask --where for it",
        ),
        ("test_f1 > 0.5", "'test_f1' cannot select"),
        ("byte <= 10e6", "unknown name 'byte'; did you mean 'bytes'?"),
        ("bytes", "is a number, not a condition"),
        ("speedup_int8 > 3", "the teacher has none: it is an ensemble; search latency_ms_int8"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(written, constraint, message):  # noqa: F811
    text = (
        GOOD.replace("builtin", "builtin, languages: [en]") + f'search: {{constraints: ["{constraint}"]}}\n'
    )
    if message is None:
        check_sweep(written(text))
        return
    if constraint.startswith("speedup"):
        text = text.replace("bilstm_crf", "bilstm_crf, count: 2")
    (fault,) = faults(written(text))
    assert fault.startswith("6 search.constraints: ")
    assert message in fault
