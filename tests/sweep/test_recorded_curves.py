"""Early stopping on the curves of a complete real sweep: epochs saved, hypervolume kept, trials stopped wrongly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from raykd.figures.front import front_hypervolume, pareto_front
from raykd.figures.results import RunResult
from raykd.figures.trial import Teacher, Trial
from raykd.recipes.run import Run
from raykd.sweep.early_stopping import EarlyStopper, StoppingConfig
from tests.scores import scores
from tests.sweep.samples import run_of

RECORDED = json.loads(Path(__file__).with_name("recorded_curves.json").read_text())
OBJECTIVES: Any = {"f1": "max", "latency_ms": "min", "parameters": "min"}
TEACHER = Teacher("teacher", cost=RECORDED["teacher"])
ON = StoppingConfig(kind="mo_asha")
Curve = tuple[Trial, Run, list[dict[str, Any]]]


def recorded() -> list[Curve]:
    curves = []
    for number, record in enumerate(RECORDED["trials"]):
        tree = {
            "student": {"embedding_dim": number},
            "objective": {"kind": "gold"},
            "schedule": {"epochs": len(record["dev"])},
        }
        cost = {name: record[name] for name in RECORDED["teacher"]}
        trial = Trial(number, "COMPLETE", cost=cost, scores=scores(max(record["dev"])))
        epochs = [
            {"epoch": n, "steps": n + 1, "stage": 0, "step": 0, "dev": dev}
            for n, dev in enumerate(record["dev"])
        ]
        curves.append((trial, run_of(tree), epochs))
    return curves


WHOLE = recorded()


def replayed(
    curves: Sequence[Curve], config: StoppingConfig, *, killed: bool = False
) -> tuple[int, list[Trial]]:
    """Return the number of trained epochs and the complete trials of a sweep that trains trials one by one.

    Args:
        curves: Recorded trials, in the order of training.
        config: Settings of early stopping.
        killed: If true, the driver dies after each epoch, and the next driver starts from the records.
    """
    epochs, ended = 0, list[tuple[Trial, Run, list[dict[str, Any]]]]()
    stopper = EarlyStopper(config, OBJECTIVES, TEACHER.cost)
    for trial, run, reports in curves:
        stopper.begin(trial, [[run]])
        state: Any = "COMPLETE"
        for count, metrics in enumerate(reports, 1):
            epochs += 1
            if killed:
                stopper = EarlyStopper(config, OBJECTIVES, TEACHER.cost)
                for past_trial, its_run, its_reports in ended:
                    stopper.begin(past_trial, [[its_run]], {its_run.id: its_reports})
                    stopper.ended(past_trial, results(past_trial, its_run, its_reports))
                stop_reason = stopper.begin(trial, [[run]], {run.id: reports[:count]})
            else:
                stop_reason = stopper.epoch(trial.number, run.id, metrics)
            if stop_reason:
                state, reports = "PRUNED", reports[:count]
                break
        ended_trial = replace(trial, state=state)
        stopper.ended(ended_trial, results(ended_trial, run, reports))
        ended.append((ended_trial, run, reports))
    return epochs, [trial for trial, _, _ in ended if trial.state == "COMPLETE"]


def results(trial: Trial, run: Run, reports: Sequence[dict[str, Any]]) -> list[RunResult]:
    if trial.state != "COMPLETE":
        return []
    return [RunResult(run.id, trial.scores, 0, tuple(reports), wall_s=1.0, workers=1, parameters=1, bytes=1)]


def orders(count: int) -> list[list[Curve]]:
    """Return random orders of the trials, with new numbers."""
    shuffled = [Random(seed).sample(WHOLE, len(WHOLE)) for seed in range(count)]
    return [
        [(replace(trial, number=n), run, reports) for n, (trial, run, reports) in enumerate(order)]
        for order in shuffled
    ]


def volume(trials: Sequence[Trial]) -> float:
    return front_hypervolume(trials, [TEACHER], OBJECTIVES) / front_hypervolume(
        [trial for trial, _, _ in WHOLE], [TEACHER], OBJECTIVES
    )


def test_it_trains_two_fifths_of_the_epochs_and_keeps_the_volume():
    all_epochs = sum(len(reports) for _, _, reports in WHOLE)
    outcomes = [replayed(order, ON) for order in [WHOLE, *orders(4)]]
    shares = [epochs / all_epochs for epochs, _ in outcomes]
    volumes = [volume(completed) for _, completed in outcomes]
    assert shares[0] < 0.40
    assert volumes[0] > 0.99
    assert np.mean(shares) < 0.37
    assert np.mean(volumes) > 0.985
    assert min(volumes) > 0.97


def test_what_can_be_reached_is_exceeded_by_few_of_the_front():
    """At most a tenth of the front is stopped wrongly, as nine in ten trials gain no more than allowed."""
    alone = StoppingConfig(kind="mo_asha", first_rung=0.999, worth=0.0)
    wrong = of = 0
    for order in orders(4):
        completed = {trial.number for trial in replayed(order, alone)[1]}
        front = pareto_front([trial for trial, _, _ in order], OBJECTIVES)
        wrong, of = wrong + sum(trial.number not in completed for trial in front), of + len(front)
    assert wrong <= 0.1 * of


def test_nothing_is_stopped_where_nothing_is_said():
    epochs, completed = replayed(WHOLE, StoppingConfig())
    assert epochs == sum(len(reports) for _, _, reports in WHOLE)
    assert len(completed) == len(WHOLE)


def test_a_driver_that_dies_after_every_epoch_stops_the_same_trials():
    some = orders(1)[0][:14]
    epochs, completed = replayed(some, ON)
    assert len(completed) < len(some)
    assert replayed(some, ON, killed=True) == (epochs, completed)


def test_a_trial_that_failed_counts_for_no_other():
    (trial, run, reports), (later_trial, its_run, its_reports) = WHOLE[3], WHOLE[4]
    stopper = EarlyStopper(StoppingConfig(kind="mo_asha", complete_first=1), OBJECTIVES, TEACHER.cost)
    stopper.begin(trial, [[run]], {run.id: reports})
    assert stopper.ended(replace(trial, state="FAILED")) == {}
    stopper.begin(later_trial, [[its_run]])
    assert not any(stopper.epoch(later_trial.number, its_run.id, metrics) for metrics in its_reports)


def test_a_trial_that_lacks_a_figure_is_neither_stopped_nor_compared_with():
    (trial, run, reports), (later_trial, its_run, its_reports) = WHOLE[3], WHOLE[4]
    less, more = replace(trial, cost={"parameters": 1}), replace(later_trial, cost={"parameters": 1})
    for first, second in ((trial, more), (less, later_trial)):
        stopper = EarlyStopper(StoppingConfig(kind="mo_asha", complete_first=1), OBJECTIVES, TEACHER.cost)
        stopper.begin(first, [[run]])
        stopper.ended(first, results(first, run, reports))
        stopper.begin(second, [[its_run]])
        assert not any(stopper.epoch(second.number, its_run.id, metrics) for metrics in its_reports)
