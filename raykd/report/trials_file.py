"""All trials of a sweep as one table for programs: CSV and Parquet, with `on_front` to filter by."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from raykd.figures.figure_values import has_values, language_values, score_values
from raykd.figures.front import pareto_front
from raykd.figures.table import COSTS, OBJECTIVES, TARGET_DEV, Directions, score_figures
from raykd.figures.trial import Trial, common_score_name, target_languages
from raykd.report.student_columns import source_languages

TEXT = ("state", "role", "objective", "message")
"""Attributes of a trial that are columns of text."""
WHOLE = ("count", "bytes")
"""Forms of figures that are whole numbers."""


def trials_table(trials: Iterable[Trial], *, objectives: Directions = OBJECTIVES) -> pa.Table:
    """Return one row per trial, by number: its origin, figures, scores by language and settings.

    Scores are fractions, in columns named after the task's score (`dev_f1`); `metric` is the score's name for people.
    Columns of settings have the dotted path as their name. If a setting has several types, its values are written as
    JSON.

    Args:
        trials: All trials of the sweep.
        objectives: Objectives of the front.
    """
    trials = sorted(trials, key=lambda trial: trial.number)
    on_front = {trial.number for trial in pareto_front(trials, objectives)}
    columns: dict[str, pa.Array] = {
        "number": pa.array([t.number for t in trials], pa.int64()),
        "name": pa.array([t.name for t in trials], pa.string()),
        "on_front": pa.array([t.number in on_front for t in trials], pa.bool_()),
        "feasible": pa.array([t.feasible for t in trials], pa.bool_()),
        **{name: pa.array([getattr(t, name) for t in trials], pa.string()) for name in TEXT},
        "metric": pa.array([t.score_label for t in trials], pa.string()),
        **_figures(trials),
        **_by_language(trials),
        "run_ids": pa.array([" ".join(t.run_ids) for t in trials], pa.string()),
    }
    for path in dict.fromkeys(path for t in trials for path in t.settings):
        columns[path] = _setting([t.settings.get(path) for t in trials])
    return pa.table(columns)


def trials_csv(trials: Iterable[Trial], *, objectives: Directions = OBJECTIVES) -> bytes:
    """Return `trials_table` as CSV with a heading line, UTF-8.

    Args:
        trials: All trials of the sweep.
        objectives: Objectives of the front.
    """
    sink = io.BytesIO()
    pa_csv.write_csv(trials_table(trials, objectives=objectives), sink)
    return sink.getvalue()


def trials_parquet(trials: Iterable[Trial], *, objectives: Directions = OBJECTIVES) -> bytes:
    """Return `trials_table` as a Parquet file.

    Args:
        trials: All trials of the sweep.
        objectives: Objectives of the front.
    """
    sink = io.BytesIO()
    pq.write_table(trials_table(trials, objectives=objectives), sink)
    return sink.getvalue()


def _figures(trials: Sequence[Trial]) -> dict[str, pa.Array]:
    """Scores with spreads, then costs; target languages only if there are any."""
    columns: dict[str, pa.Array] = {}
    figures = score_figures(common_score_name(trials), targets=bool(target_languages(trials)), among=trials)
    if has_values(TARGET_DEV, trials):
        figures = (*figures, TARGET_DEV)
    for figure in figures:
        rows = [score_values(figure, trial) for trial in trials]
        # Without trials the headings are needed all the same.
        for name in rows[0] if rows else score_values(figure, Trial(0, "RUNNING")):
            columns[name] = pa.array([row[name] for row in rows], pa.float64())
    for figure in COSTS:
        kind = pa.int64() if figure.form in WHOLE else pa.float64()
        columns[figure.name] = pa.array([figure.read(trial) for trial in trials], kind)
    return columns


def _by_language(trials: Sequence[Trial]) -> dict[str, pa.Array]:
    sources, targets = source_languages(trials), target_languages(trials)
    columns: dict[str, pa.Array] = {}
    for figure in score_figures(common_score_name(trials), targets=False, among=trials):
        languages = sources if figure.part == "dev" else [*sources, *targets]
        values = [language_values(figure, trial) for trial in trials]
        for language in languages:
            name = f"{figure.full_name(common_score_name(trials))}_{language}"
            columns[name] = pa.array([scores.get(language) for scores in values], pa.float64())
    return columns


def _setting(values: Sequence[Any]) -> pa.Array:
    """Numbers or text if all trials agree on the type, otherwise JSON text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and kinds:
        return pa.array(values, pa.float64() if float in kinds else pa.int64())
    if kinds in ({str}, {bool}):
        return pa.array(values)
    return pa.array([None if value is None else json.dumps(value) for value in values], pa.string())
