"""A synthetic sweep of hundreds of trials."""

from __future__ import annotations

from raykd.figures.trial import Trial
from raykd.report.training_curves import training_curves
from tests.report.fake_epochs import run_of, trained
from tests.report.fake_sweep import fake_trials

SEEDS, EPOCHS = 3, 25


def big_sweep(count: int = 200) -> tuple[list[Trial], dict[int, tuple]]:
    """`count` searched trials with their baselines, and the curves of the complete ones: three stages, three seeds."""
    trials = fake_trials(count)
    stages = [run_of("representation", "logits", "gold", seed=seed) for seed in range(SEEDS)]
    curves_of_trial = training_curves([trained(run, epochs=EPOCHS) for run in stages])
    return trials, {trial.number: curves_of_trial for trial in trials if trial.state == "COMPLETE"}
