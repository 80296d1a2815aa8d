"""The models of a trial, which are exported: one, or one for each language."""

from __future__ import annotations

from dataclasses import dataclass

from raykd.figures.trial import Trial
from raykd.recipes.run import Run
from raykd.sweep.records import SweepRecords


@dataclass(frozen=True)
class TrialModel:
    """One model of a trial."""

    run: Run
    folder: str
    """Of its export, below the trial's: its language where each language has a model of its own, else nothing."""


def seeds_of(records: SweepRecords, trial: Trial) -> list[list[TrialModel]]:
    """The models of each seed of a complete trial, the first seed first."""
    runs = records.runs(trial)
    seeds = dict.fromkeys(run.training["seed"] for run, _ in runs)
    every = [[each for each in runs if each[0].training["seed"] == seed] for seed in seeds]
    return [
        [
            TrialModel(run, "+".join(result.scores.by_language("dev")) if len(own) > 1 else "")
            for run, result in own
        ]
        for own in every
    ]
