"""What one MLflow run should show, and how values are named there.

Plain data: nothing here talks to a server. Names in MLflow: results have the names of `raykd/figures/table.py`
(`dev_f1`, `latency_ms`), results by language are below them (`dev_f1/en`), curves over epochs below `epoch/`, there the
losses of each of several stages below its own name (`epoch/stage2_logits/loss`), the growth of the front below
`front/`.
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

from raykd.figures.table import COSTS, DEV, TARGET_DEV, language_values, score_figures, score_values
from raykd.figures.trial import Trial, TrialOrTeacher
from raykd.identity import PlainObject

# MLflow's limits of one key and one value.
KEY_LENGTH, VALUE_LENGTH = 250, 6000
NAME_LENGTH, DIGEST_LENGTH = 500, 36
"""MLflow's limits of a dataset."""
CURVES = ("epoch/", "front/")
"""Metrics below these names are curves: one point per step. All others are results: the last value counts."""
STAGE_LOSSES, COUNTERS = ("loss", "held_out_loss"), ("stage", "step")
"""Of an epoch: what differs in kind between stages, and what is a number counted from 0."""
SWEEP_TAG, TRIAL_TAG, TEACHER_TAG = "raykd.sweep_id", "raykd.trial", "raykd.teacher"
_REFUSED = re.compile(r"[^\w./: -]|_(?=u[0-9a-f]+_)")
Key = tuple[str, str]
"""Tag and value that find a run again."""


def now_ms() -> int:
    """Return the time as MLflow notes it."""
    return int(time.time() * 1000)


@dataclass(frozen=True)
class StudentModel:
    """A student as it should be in MLflow."""

    name: str
    """Of the model within its experiment."""
    export: Path | None
    """What `raykd export` wrote; None: MLflow has the model already."""
    registered_as: str
    score_name: str
    """Of its task."""
    ship: str = ""
    """Why this is the one to ship; empty: it is not."""


@dataclass
class Page:
    """One MLflow run as it should be."""

    name: str
    key: Key
    status: str = "RUNNING"
    moment_ms: int = field(default_factory=now_ms)
    """When it came to be as it is."""
    duration_s: float = 0.0
    """For so long the run had been going on then, where it is shown for the first time."""
    first_tags: Mapping[str, str] = field(default_factory=dict)
    """Of a new run; another driver leaves them as they are."""
    tags: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    """Parameters cannot change in MLflow: the first value stays."""
    results: Mapping[str, float] = field(default_factory=dict)
    points: list[Metric] = field(default_factory=list)
    """Of its curves, the steps of each in their order. Those that MLflow shows are taken out."""
    datasets: Sequence[Dataset] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    model: StudentModel | None = None


def flatten(metrics: PlainObject, prefix: str = "") -> dict[str, float]:
    """Nested numbers by name, `dev_f1_by_language: {en: …}` as `dev_f1/en`.

    What is not a finite number is left out: MLflow's databases handle NaN in different ways.
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
    """Return a point of each curve."""
    moment_ms = now_ms()
    return [Metric(key, value, moment_ms, step) for key, value in values.items()]


def curve_prefix(run: str = "") -> str:
    """What the curves of a run are below: `epoch/`, or where a trial has several runs `epoch/seed 1/`."""
    return f"epoch/{run}/" if run else "epoch/"


def loss_prefixes(stages: Sequence[str]) -> tuple[str, ...]:
    """What the losses of each stage are below: each trains on its own, and `stage1_representation/loss` and
    `stage2_logits/loss` are no one curve. Of a single stage nothing. `stages`: what each is called.
    """
    if len(stages) == 1:
        return ("",)
    return tuple(f"stage{number}_{name.replace('+', '_')}/" for number, name in enumerate(stages, 1))


def epoch_values(
    metrics: PlainObject, score_name: str, prefix: str, stages: Sequence[str] = ("",)
) -> dict[str, float]:
    """The numbers of one epoch by their names in MLflow, below `prefix`; `stages`: see `loss_prefixes`.

    `dev`, `dev_languages_sd` and `dev_by_language` are named after the score (`dev_f1`, `dev_f1_languages_sd`,
    `dev_f1/en`), the parts of the loss are below it (`loss/structural`). Stages and their steps count from 1.
    """
    own = loss_prefixes(stages)[metrics.get("stage", 0)]
    values = {f"{own}loss/{kind}": value for kind, value in metrics.get("losses", {}).items()}
    values |= {
        key: value
        for key, value in metrics.items()
        if key not in ("epoch", "losses", "tokens", *STAGE_LOSSES, *COUNTERS)
    }
    values |= {f"{own}{key}": metrics[key] for key in STAGE_LOSSES if key in metrics}
    values |= {key: metrics[key] + 1 for key in COUNTERS if key in metrics}
    dev = DEV.full_name(score_name)
    return flatten({re.sub(r"^dev(?=_|$)", dev, key): value for key, value in values.items()}, prefix)


def charted_curves(score: str, run: str, stages: Iterable[Sequence[str]]) -> list[str]:
    """The curves to look at first: the score and the loss of each stage, of every way of training in `stages`."""
    below = dict.fromkeys(own for each in stages for own in loss_prefixes(each))
    return [clean_key(f"{curve_prefix(run)}{name}") for name in (score, *(f"{own}loss" for own in below))]


def clean_key(key: str) -> str:
    """Return `key` as MLflow takes it: a sign that it refuses becomes its number, `a+b` `a_u2b_b`, and two keys never
    one name. It takes letters and digits of all scripts; vowel signs and accents that stand alone it refuses.
    """
    name = _REFUSED.sub(lambda sign: f"_u{ord(sign[0]):x}_", key)
    if len(name) <= KEY_LENGTH:
        return name
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{name[: KEY_LENGTH - len(digest) - 1]}-{digest}"


def text(value: object) -> str:
    """`value` as parameters and tags take it: plain text of limited length."""
    plain = "" if value is None else str(value)
    return plain if len(plain) <= VALUE_LENGTH else plain[: VALUE_LENGTH - 1] + "…"


def texts(values: Mapping[str, object]) -> dict[str, str]:
    """Return values as parameters and tags, by keys that MLflow takes."""
    return {clean_key(key): text(value) for key, value in values.items()}


def results(trial: TrialOrTeacher) -> dict[str, float]:
    """The final metrics of a trial or a teacher by their names in MLflow, to five digits: its pages show all digits.

    The store and the reports keep what was measured.
    """
    known: dict[str, object] = {figure.name: figure.read(trial) for figure in COSTS}
    for figure in (*score_figures(trial.score_name, targets=True), TARGET_DEV):
        known |= score_values(figure, trial)
    for figure in score_figures(trial.score_name, targets=False):
        known[f"{figure.full_name(trial.score_name)}_by_language"] = language_values(figure, trial)
    return rounded(flatten(known))


def rounded(exact: Mapping[str, float]) -> dict[str, float]:
    """To five digits."""
    return {name: value if value.is_integer() else float(f"{value:.5g}") for name, value in exact.items()}


def searched_params(tree: PlainObject) -> dict[str, str]:
    """A sweep file's values by their dotted paths; what is searched is one value, as JSON."""
    return texts(dict(_values(tree)))


def _values(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and not {"choice", "int", "float"} & value.keys():
            yield from ((f"{key}.{name}", inner) for name, inner in _values(value))
        else:
            yield key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def trial_tags(trial: Trial) -> dict[str, str]:
    """What trials are filtered by in MLflow: `tags.on_front = 'true'`, `tags.objective = 'top_wk'`."""
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
    """Return the dataset that a corpus is in MLflow.

    Args:
        name: what it is called.
        corpus_id: its digest.
        source: where it came from: a URI, "builtin".
        schema: JSON-able, its tags.
        profile: JSON-able, its sentences by language and part.
    """
    return Dataset(
        name[:NAME_LENGTH], corpus_id[:DIGEST_LENGTH], "raykd", json.dumps({"uri": source}),
        None if schema is None else json.dumps(schema), None if profile is None else json.dumps(profile),
    )  # fmt: skip
