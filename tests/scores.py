"""Scores for tests of trials and teachers, but no runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from raykd.figures.results import Score, Scores


def score(*by_seed: float, languages: Mapping[str, float] | None = None, languages_sd: float = 0.0) -> Score:
    """The score of as many seeds as there are values."""
    return Score(fmean(by_seed), languages_sd, languages or {}, by_seed)


def scores(
    dev: float | Score | None = None, test: float | Score | None = None, target: float | Score | None = None
) -> Scores:
    """The scores of a trial or teacher; a number is one of one seed, and its languages do not matter."""
    parts = {"dev": {"source": dev}, "test": {"source": test, "target": target}}
    return Scores(
        {
            part: {group: _score(value) for group, value in groups.items() if value is not None}
            for part, groups in parts.items()
            if any(value is not None for value in groups.values())
        }
    )


def _score(value: float | Score) -> Score:
    return value if isinstance(value, Score) else score(value)


def split(by_language: Mapping[str, float], targets: Sequence[str]) -> tuple[Score, Score]:
    """The scores of source and of target languages."""
    source = {name: value for name, value in by_language.items() if name not in targets}
    return Score.from_languages(source), Score.from_languages({name: by_language[name] for name in targets})
