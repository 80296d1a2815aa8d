"""Trials stopped early or failed: the last epoch, the score then, and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from raykd.figures.trial import Trial
from raykd.pluralise import pluralise
from raykd.report.readable_numbers import NONE, percent

Epochs = Mapping[int, Mapping[str, Sequence[Mapping[str, Any]]]]
"""Trial → run → metrics of its epochs."""
WORDS = {"PRUNED": "stopped early", "FAILED": "failed"}
"""States of trials that were stopped early or failed, in words."""
STATES = {**WORDS, "RUNNING": "running"}
"""States of trials that are not complete."""


@dataclass(frozen=True)
class StoppedTrial:
    """A trial stopped early or failed."""

    trial: Trial
    reason: str
    epoch: int | None = None
    """Last epoch that ended, counted from 1; None if unknown."""
    dev: float | None = None
    """Score after that epoch, the mean over the trial's runs; not the score of a finished student."""

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of the trial's row: number, epoch, dev score then, reason, objective, the student's shape."""
        trial, pruned = self.trial, self.trial.state == "PRUNED"
        epoch = NONE if self.epoch is None else str(self.epoch)
        reason = self.reason if pruned else f"{WORDS[trial.state]}: {self.reason}"
        return f"{trial.number:02d}", epoch, percent(self.dev), reason, trial.method, trial.shape


def stopped_trials(trials: Iterable[Trial], epochs: Epochs) -> list[StoppedTrial]:
    """Return the trials stopped early or failed, by number.

    Args:
        trials: All trials of the sweep.
        epochs: Metrics of their epochs, as far as known.
    """
    ended = [trial for trial in trials if trial.state in WORDS]
    return [_stopped(trial, epochs.get(trial.number, {})) for trial in sorted(ended, key=lambda t: t.number)]


def stopped_in_words(stopped: Sequence[StoppedTrial]) -> str:
    """Return the number of stopped trials: `2 trials stopped early, 1 trial failed`; empty if there are none."""
    counts = {
        word: sum(stopped_trial.trial.state == state for stopped_trial in stopped)
        for state, word in WORDS.items()
    }
    return ", ".join(f"{pluralise(number, 'trial')} {word}" for word, number in counts.items() if number)


def _stopped(trial: Trial, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> StoppedTrial:
    last = [epochs[-1] for epochs in runs.values() if epochs]
    # `cluster/jobs.py` writes "stopped after epoch 3: " before the reason.
    reason = trial.message.partition(": ")[2] if trial.state == "PRUNED" else trial.message
    return StoppedTrial(
        trial,
        reason or trial.message,
        max((epoch["epoch"] + 1 for epoch in last), default=None),
        fmean(epoch["dev"] for epoch in last) if last else None,
    )
