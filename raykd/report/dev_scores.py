"""Dev scores of trials, which rank students."""

from __future__ import annotations

from raykd.figures.trial import Trial
from raykd.pluralise import pluralise


def dev_score(trial: Trial) -> float:
    """Return the dev score, the mean over seeds and languages; 0 if there is none."""
    return trial.scores.mean("dev") or 0.0


def dev_by_seed(trial: Trial) -> tuple[float, ...]:
    """Return the dev score of each seed; empty if there is none."""
    score = trial.scores.get("dev")
    return () if score is None else score.by_seed


def seeds_in_words(trial: Trial) -> str:
    """Return the number of seeds behind the dev score: `1 seed`, `5 seeds`."""
    return pluralise(len(dev_by_seed(trial)), "seed")
