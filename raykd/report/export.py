"""All trials of a sweep as one table for other programs: CSV and Parquet, with `on_front` to filter by."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from raykd.front import OBJECTIVES, Directions
from raykd.report.front_rows import front
from raykd.report.table import languages_of
from raykd.trial import Trial, targets_of

TEXT = ("state", "role", "objective", "metric", "message")
WHOLE = ("parameters", "bytes")
REAL = (
    *("dev_f1", "dev_f1_sd", "dev_f1_languages_sd", "test_f1", "test_f1_sd", "test_f1_languages_sd"),
    *("latency_ms", "latency_ms_p90", "latency_ms_batch32", "compression", "speedup", "wall_s"),
)


APART = ("test_f1_target", "test_f1_target_sd", "test_f1_target_languages_sd")
"""Means over target languages, where a corpus has any."""


def trials_table(trials: Iterable[Trial], *, objectives: Directions = OBJECTIVES) -> pa.Table:
    """One row per trial, in the order of their numbers; columns: what it was, its figures, F1 by language,
    its settings. `*_f1` is the score that `metric` names.

    Settings stand below their dotted path. Where trials differ in a setting's type its values are written
    as JSON.
    """
    trials = sorted(trials, key=lambda trial: trial.number)
    standing = {trial.number for trial in front(trials, objectives=objectives)}
    columns: dict[str, pa.Array] = {
        "number": pa.array([t.number for t in trials], pa.int64()),
        "name": pa.array([t.name for t in trials], pa.string()),
        "on_front": pa.array([t.number in standing for t in trials], pa.bool_()),
    }
    sources, targets = languages_of(trials), targets_of(trials)
    real = (*REAL, *APART) if targets else REAL
    for names, kind in ((TEXT, pa.string()), (WHOLE, pa.int64()), (real, pa.float64())):
        columns |= {name: pa.array([getattr(t, name) for t in trials], kind) for name in names}
    for part, languages in (("dev_f1", sources), ("test_f1", [*sources, *targets])):
        for language in languages:
            scores = [getattr(t, f"{part}_by_language").get(language) for t in trials]
            columns[f"{part}_{language}"] = pa.array(scores, pa.float64())
    columns["run_ids"] = pa.array([" ".join(t.run_ids) for t in trials], pa.string())
    for path in dict.fromkeys(path for t in trials for path in t.settings):
        columns[path] = _setting([t.settings.get(path) for t in trials])
    return pa.table(columns)


def trials_csv(trials: Iterable[Trial], *, objectives: Directions = OBJECTIVES) -> bytes:
    """`trials_table` as CSV with a heading line, UTF-8."""
    sink = io.BytesIO()
    pa_csv.write_csv(trials_table(trials, objectives=objectives), sink)
    return sink.getvalue()


def trials_parquet(trials: Iterable[Trial], *, objectives: Directions = OBJECTIVES) -> bytes:
    """`trials_table` as a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(trials_table(trials, objectives=objectives), sink)
    return sink.getvalue()


def _setting(values: Sequence[Any]) -> pa.Array:
    """Numbers as numbers and text as text where all trials agree; JSON text where they do not."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and kinds:
        return pa.array(values, pa.float64() if float in kinds else pa.int64())
    if kinds in ({str}, {bool}):
        return pa.array(values)
    return pa.array([None if value is None else json.dumps(value) for value in values], pa.string())
