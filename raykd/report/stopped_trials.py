"""The trials that did not come to their end: after which epoch, with which score, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from raykd.figures.trial import Trial
from raykd.pluralise import pluralise
from raykd.report.readable_numbers import NONE, percent

Epochs = Mapping[int, Mapping[str, Sequence[Mapping[str, Any]]]]
"""Trial → run → the metrics of its epochs."""
WORDS = {"PRUNED": "stopped early", "FAILED": "failed"}
"""The states of trials that did not come to their end, in words."""
STATES = {**WORDS, "RUNNING": "running"}
"""The states of those that are not complete."""


@dataclass(frozen=True)
class StoppedTrial:
    """A trial that was stopped early, or failed."""

    trial: Trial
    reason: str
    epoch: int | None = None
    """The last one that ended, counted from 1; None where that is not known."""
    dev: float | None = None
    """The score after it, which is not that of a finished student; the mean over its runs."""

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of a table: number, epoch, dev score then, why, how it learnt, the student's shape."""
        trial, pruned = self.trial, self.trial.state == "PRUNED"
        epoch = NONE if self.epoch is None else str(self.epoch)
        why = self.reason if pruned else f"{WORDS[trial.state]}: {self.reason}"
        return f"{trial.number:02d}", epoch, percent(self.dev), why, trial.method, trial.shape


def stopped_trials(trials: Iterable[Trial], epochs: Epochs) -> list[StoppedTrial]:
    """The trials of the search that were stopped early or failed, by their numbers."""
    ended = [trial for trial in trials if trial.state in WORDS]
    return [_stopped(trial, epochs.get(trial.number, {})) for trial in sorted(ended, key=lambda t: t.number)]


def stopped_in_words(stopped: Sequence[StoppedTrial]) -> str:
    """How many there are: `2 trials stopped early, 1 trial failed`; empty where there are none."""
    counts = {word: sum(each.trial.state == state for each in stopped) for state, word in WORDS.items()}
    return ", ".join(f"{pluralise(number, 'trial')} {word}" for word, number in counts.items() if number)


def _stopped(trial: Trial, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> StoppedTrial:
    last = [epochs[-1] for epochs in runs.values() if epochs]
    # What `cluster/jobs.py` writes before the reason of the rule: "stopped after epoch 3: …".
    reason = trial.message.partition(": ")[2] if trial.state == "PRUNED" else trial.message
    return StoppedTrial(
        trial,
        reason or trial.message,
        max((epoch["epoch"] + 1 for epoch in last), default=None),
        fmean(epoch["dev"] for epoch in last) if last else None,
    )
