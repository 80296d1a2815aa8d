"""The budget: the arithmetic of a trial that would be too much, on a clock that the test moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raykd.errors import SpecError
from raykd.sweep.budget import Budget
from raykd.sweep.forecast import forecast_sweep
from raykd.sweep.limits import refuse_short_budget, trials_within_budget
from raykd.sweep.spec import BudgetConfig
from tests.sweep.in_process import call, code_of, without_ray
from tests.sweep.samples import trial
from tests.sweep.test_forecast import TEXT, of
from tests.sweep.test_spec import GOOD, faults, written  # noqa: F401  (a fixture)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def ended(*seconds: float, runs: int = 1):
    ids = tuple(str(run) for run in range(runs))
    return [trial(number, wall_s=wall_s, run_ids=ids) for number, wall_s in enumerate(seconds)]


def test_time_ends_before_a_trial_that_would_last_too_long():
    clock = Clock()
    budget = Budget(BudgetConfig(hours=1), clock=clock)
    assert budget.reason_to_stop([]) == ""
    clock.now = 3000.0
    assert budget.reason_to_stop(ended(500, 700)) == ""
    # The baseline of one student takes as long again.
    assert budget.reason_to_stop(ended(500, 700), after=1) == (
        "the budget is spent (50 of 60 minutes, and 20 more would be needed)"
    )
    clock.now = 3001.0
    assert budget.reason_to_stop(ended(500, 700)).startswith("the budget is spent (50 of 60 minutes")
    clock.now = 3601.0
    assert budget.reason_to_stop([]) == "the budget is spent (60 of 60 minutes)"


def test_runs_side_by_side_shorten_a_trial():
    clock = Clock()
    clock.now = 0.0
    alone, both = (Budget(BudgetConfig(minutes=1), at_once=at_once, clock=clock) for at_once in (1, 2))
    assert alone.reason_to_stop(ended(100, runs=2))
    assert not both.reason_to_stop(ended(100, runs=2))


def test_gpu_hours_count_teachers_trials_and_what_runs():
    budget = Budget(BudgetConfig(gpu_hours=2), gpus=0.5, ended=[0])
    # Half an hour of a teacher; trial 0 was of an earlier driver.
    budget.charge(3600)
    trials = ended(3600, 3600)
    assert budget.reason_to_stop(trials) == ""
    running = [*trials, replace(trial(2), state="RUNNING", wall_s=None)]
    assert budget.reason_to_stop(running) == ""
    assert budget.reason_to_stop(running, after=1) == (
        "the budget is spent (1.5 of 2 GPU-hours, and 1 more would be needed)"
    )


def test_without_a_limit_nothing_is_spent():
    assert Budget(BudgetConfig()).reason_to_stop(ended(1e9)) == ""


def test_of_minutes_and_hours_one_is_given(written):  # noqa: F811
    (fault,) = faults(written(f"{GOOD}budget: {{minutes: 3, hours: 1}}\n"))
    assert "minutes and hours are both given; write one of them" in fault


def test_a_budget_that_holds_no_front_is_refused_with_the_arithmetic(tmp_path):
    expected, sweep = of(tmp_path, TEXT + "budget: {minutes: 0.5}\n")
    needed = sum(expected.phases.values()) - expected.phases["trials"] + expected.trial_s
    with pytest.raises(SpecError) as refused:
        refuse_short_budget(sweep, expected)
    message = str(refused.value)
    assert "budget.minutes: 0.5 minutes are too short for one trial: start 0.2 + teachers 0." in message
    assert (
        f"+ report 0.1 + models {expected.phases['models'] / 60:.1f} + one trial {expected.trial_s / 60:.1f} = "
        f"{needed / 60:.1f} minutes; raise the budget, or" in message
    )
    assert trials_within_budget(sweep, expected, 1) == 0


@pytest.mark.slow
def test_a_plan_says_how_many_trials_fit_and_the_budgets_most_are_made(tmp_path, capsys):
    _, sweep = of(tmp_path, TEXT + "budget: {hours: 1, trials: 1}\n")
    assert sweep.trials == 1
    with without_ray():
        assert trials_within_budget(sweep, forecast_sweep(sweep, 1), 1) == 1
        words = [str(tmp_path / "sweep.yaml"), "--set", f"store={tmp_path / 'store'}"]
        call("plan", *words)
        assert "budget: about 1 of 1 trial fit" in capsys.readouterr().out
        assert code_of("plan", *words, "--set", "budget.hours=0.001") == 2
        assert code_of("sweep", *words, "--set", "budget.hours=0.001") == 2
        assert "are too short for one trial: start 0.2 + " in capsys.readouterr().err
