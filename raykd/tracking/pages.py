"""The content of one MLflow run, and the names of its values.

Plain data: nothing here talks to a server. Names in MLflow: results have the names of `raykd/figures/table.py`
(`dev_f1`, `latency_ms`), with a suffix for a language (`dev_f1/en`). Curves over epochs begin with `epoch/`; with
several stages, the losses of each stage have its name too (`epoch/stage2_logits/loss`). The growth of the front begins
with `front/`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlflow.entities import Dataset, Metric

from raykd.figures.figure_values import language_values, score_values
from raykd.figures.table import COSTS, DEV, TARGET_DEV, score_figures
from raykd.figures.trial import Trial, TrialOrTeacher
from raykd.identity import PlainObject

# MLflow's limits of one key and one value.
KEY_LENGTH, VALUE_LENGTH = 250, 6000
NAME_LENGTH, DIGEST_LENGTH = 500, 36
"""MLflow's limits for the name and the digest of a dataset."""
CURVES = ("epoch/", "front/")
"""Prefixes of curves, which have one point per step. Of all other metrics the last value counts."""
STAGE_LOSSES, COUNTERS = ("loss", "held_out_loss"), ("stage", "step")
"""Keys of an epoch: the losses, which differ in kind between stages, and the numbers counted from 0."""
SWEEP_TAG, TRIAL_TAG, TEACHER_TAG = "raykd.sweep_id", "raykd.trial", "raykd.teacher"
_REFUSED = re.compile(r"[^\w./: -]|_(?=u[0-9a-f]+_)")
Key = tuple[str, str]
"""Tag and value by which a run is found again."""


def now_ms() -> int:
    """Return the time in the unit of MLflow: milliseconds since 1970."""
    return int(time.time() * 1000)


@dataclass(frozen=True)
class StudentModel:
    """A student to be logged in MLflow as a model."""

    name: str
    """Name of the model within its experiment."""
    export: Path | None
    """Folder written by `raykd export`; None if MLflow has the model already."""
    registered_as: str
    score_name: str
    """Score of the student's task."""
    ship: str = ""
    """Reason to ship this student; empty if it is not the one to ship."""


@dataclass
class Page:
    """The intended content of one MLflow run."""

    name: str
    key: Key
    status: str = "RUNNING"
    moment_ms: int = field(default_factory=now_ms)
    """Time of the page's last change."""
    duration_s: float = 0.0
    """Seconds between the start of the run and `moment_ms`, for a run that MLflow does not have yet."""
    first_tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of a new run; another driver leaves them as they are."""
    tags: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    """Parameters. MLflow never changes one: the first value stays."""
    results: Mapping[str, float] = field(default_factory=dict)
    points: list[Metric] = field(default_factory=list)
    """Points of its curves, in the order of their steps. Points that MLflow shows are removed."""
    datasets: Sequence[Dataset] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    model: StudentModel | None = None


def flatten(metrics: PlainObject, prefix: str = "") -> dict[str, float]:
    """Flatten nested numbers: `dev_f1_by_language: {en: …}` becomes `dev_f1/en`.

    Values other than finite numbers are left out: MLflow's databases handle NaN in different ways.
    """
    return {clean_key(name): value for name, value in _finite(metrics, prefix)}


def _finite(metrics: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, float]]:
    for key, value in metrics.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _finite(value, f"{name.removesuffix('_by_language')}/")
        elif isinstance(value, int | float) and math.isfinite(value):
            yield name, float(value)


def points(values: Mapping[str, float], step: int) -> list[Metric]:
    """Return a point of `step` for all curves.

    Args:
        values: Curve → value.
        step: Step of the points.
    """
    moment_ms = now_ms()
    return [Metric(key, value, moment_ms, step) for key, value in values.items()]


def curve_prefix(run: str = "") -> str:
    """Return the prefix of a run's curves: `epoch/`, or `epoch/seed 1/` if a trial has several runs."""
    return f"epoch/{run}/" if run else "epoch/"


def loss_prefixes(stages: Sequence[str]) -> tuple[str, ...]:
    """Return the prefixes of the losses, one per stage; empty for a single stage.

    Each stage has its own loss, so `stage1_representation/loss` and `stage2_logits/loss` must not form one curve.

    Args:
        stages: Names of the stages.
    """
    if len(stages) == 1:
        return ("",)
    return tuple(f"stage{number}_{name.replace('+', '_')}/" for number, name in enumerate(stages, 1))


def epoch_values(
    metrics: PlainObject, score_name: str, prefix: str, stages: Sequence[str] = ("",)
) -> dict[str, float]:
    """Return the numbers of one epoch under the names for MLflow.

    `dev`, `dev_languages_sd` and `dev_by_language` get the name of the score (`dev_f1`, `dev_f1_languages_sd`,
    `dev_f1/en`). The parts of the loss follow its name (`loss/structural`). Stages and steps count from 1.

    Args:
        metrics: One entry of a run's epochs (`RunResult.epochs`).
        score_name: Score of the task.
        prefix: Put before each name, see `curve_prefix`.
        stages: Names of the stages, see `loss_prefixes`.
    """
    loss_prefix = loss_prefixes(stages)[metrics.get("stage", 0)]
    values = {f"{loss_prefix}loss/{kind}": value for kind, value in metrics.get("losses", {}).items()}
    values |= {
        key: value
        for key, value in metrics.items()
        if key not in ("epoch", "losses", "tokens", *STAGE_LOSSES, *COUNTERS)
    }
    values |= {f"{loss_prefix}{key}": metrics[key] for key in STAGE_LOSSES if key in metrics}
    values |= {key: metrics[key] + 1 for key in COUNTERS if key in metrics}
    dev = DEV.full_name(score_name)
    return flatten({re.sub(r"^dev(?=_|$)", dev, key): value for key, value in values.items()}, prefix)


def charted_curves(score: str, run: str, stages: Iterable[Sequence[str]]) -> list[str]:
    """Return the curves to look at first: the score, and the loss of each stage for each way of training.

    Args:
        score: Name of the score's metric.
        run: Name of the run, see `curve_prefix`.
        stages: Names of the stages for each way of training.
    """
    prefixes = dict.fromkeys(
        loss_prefix for stage_names in stages for loss_prefix in loss_prefixes(stage_names)
    )
    return [
        clean_key(f"{curve_prefix(run)}{name}")
        for name in (score, *(f"{loss_prefix}loss" for loss_prefix in prefixes))
    ]


def clean_key(key: str) -> str:
    """Return `key` with all characters accepted by MLflow; different keys stay different.

    A refused character is replaced by its number: `a+b` becomes `a_u2b_b`. MLflow accepts the letters and digits of all
    scripts, but not vowel signs and accents that stand alone.
    """
    name = _REFUSED.sub(lambda sign: f"_u{ord(sign[0]):x}_", key)
    if len(name) <= KEY_LENGTH:
        return name
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{name[: KEY_LENGTH - len(digest) - 1]}-{digest}"


def text(value: object) -> str:
    """Return `value` as plain text of limited length, for parameters and tags."""
    plain = "" if value is None else str(value)
    return plain if len(plain) <= VALUE_LENGTH else plain[: VALUE_LENGTH - 1] + "…"


def texts(values: Mapping[str, object]) -> dict[str, str]:
    """Return values as parameters or tags, with keys that MLflow accepts.

    Args:
        values: Key → any value; None becomes an empty text.
    """
    return {clean_key(key): text(value) for key, value in values.items()}


def results(trial: TrialOrTeacher) -> dict[str, float]:
    """Return the final metrics of a trial or a teacher under the names for MLflow, rounded to five digits.

    MLflow's pages show all digits of a value. The store and the reports keep the exact values.
    """
    values: dict[str, object] = {figure.name: figure.read(trial) for figure in COSTS}
    for figure in (*score_figures(trial.score_name, targets=True, among=[trial]), TARGET_DEV):
        values |= score_values(figure, trial)
    for figure in score_figures(trial.score_name, targets=False, among=[trial]):
        values[f"{figure.full_name(trial.score_name)}_by_language"] = language_values(figure, trial)
    return rounded(flatten(values))


def rounded(exact: Mapping[str, float]) -> dict[str, float]:
    """Round to five significant digits; whole numbers stay."""
    return {name: value if value.is_integer() else float(f"{value:.5g}") for name, value in exact.items()}


def searched_params(tree: PlainObject) -> dict[str, str]:
    """Return the settings of a sweep file as parameters: dotted path → value, a search as JSON.

    Args:
        tree: The sections of the file that are searched.
    """
    return texts(dict(_values(tree)))


def _values(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and not {"choice", "int", "float"} & value.keys():
            yield from ((f"{key}.{name}", inner) for name, inner in _values(value))
        else:
            yield key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def trial_tags(trial: Trial) -> dict[str, str]:
    """Return the tags for filtering trials in MLflow: `tags.on_front = 'true'`, `tags.objective = 'top_wk'`."""
    tags = {
        "state": trial.state,
        "role": trial.role,
        "objective": trial.objective,
        "shape": trial.shape,
        "run_id": ", ".join(trial.run_ids),
        "message": text(trial.message),
        "cost_notes": text("; ".join(trial.cost_notes)),
    }
    return {key: value for key, value in tags.items() if value}


def dataset(
    name: str, corpus_id: str, *, source: str, schema: object = None, profile: object = None
) -> Dataset:
    """Return a corpus as MLflow's dataset.

    Args:
        name: Name to show.
        corpus_id: Digest of the corpus.
        source: Origin of the corpus: a URI, or "builtin".
        schema: The tags of the corpus, JSON-able.
        profile: Sentences by language and part, JSON-able.
    """
    return Dataset(
        name[:NAME_LENGTH], corpus_id[:DIGEST_LENGTH], "raykd", json.dumps({"uri": source}),
        None if schema is None else json.dumps(schema), None if profile is None else json.dumps(profile),
    )  # fmt: skip
