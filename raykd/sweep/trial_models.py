"""The models of a trial for export: one, or one for each language."""

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
    """Subfolder for the export, below that of the trial: the language if each has its own model, else empty."""


def seeds_of(records: SweepRecords, trial: Trial) -> list[list[TrialModel]]:
    """Return the models of a complete trial, grouped by seed, the first seed first.

    Args:
        records: Records of the sweep.
        trial: The trial.
    """
    runs = records.runs(trial)
    seeds = dict.fromkeys(run.training["seed"] for run, _ in runs)
    by_seed = [[run for run in runs if run[0].training["seed"] == seed] for seed in seeds]
    return [
        [
            TrialModel(run, "+".join(result.scores.by_language("dev")) if len(seed_runs) > 1 else "")
            for run, result in seed_runs
        ]
        for seed_runs in by_seed
    ]
