"""What one MLflow run should show, and how values are named there.

Plain data: nothing here talks to a server.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mlflow.entities import Dataset, Metric

from raykd.figures.table import COSTS, DEV, TARGET_DEV, language_values, score_values, scores_of
from raykd.figures.trial import Scored, Trial
from raykd.tracking.registry import StudentModel

# MLflow's limits of one key and one value.
KEY_LENGTH, VALUE_LENGTH = 250, 6000
CURVES = ("epoch/", "front/")
"""Metrics below these names are curves: one point per step. All others are results: the last value counts."""
OF_STAGE, COUNTED = ("loss", "held_out_loss"), ("stage", "step")
"""Of an epoch: what differs in kind between stages, and what is a number counted from 0."""

# MLflow's list of states is fixed: a trial stopped early is KILLED there, and its tag `state` is PRUNED.
STATUS = MappingProxyType(
    {"COMPLETE": "FINISHED", "PRUNED": "KILLED", "FAILED": "FAILED", "RUNNING": "RUNNING"}
)


@dataclass
class Record:
    """One MLflow run as it should be, and what the server shows of it; metrics and artifacts that are written are
    removed."""

    name: str
    found_by: tuple[str, str]
    """Tag and value that find the run again."""
    run_id: str | None = None
    inherited: bool = False
    """Whether an earlier driver made the run: points may be there already."""
    started_ms: int = 0
    ended_ms: int | None = None
    status: str = "RUNNING"
    shown_status: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    shown_tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    shown_params: dict[str, str] = field(default_factory=dict)
    metrics: list[Metric] = field(default_factory=list)
    datasets: list[Dataset] = field(default_factory=list)
    shown_datasets: set[tuple[str, str]] = field(default_factory=set)
    """Name and digest of each."""
    artifacts: dict[str, bytes] = field(default_factory=dict)
    model: StudentModel | None = None
    model_id: str | None = None
    """Of the run's model, where MLflow has it, whole or in part."""
    model_is_whole: bool = False
    results: dict[str, float] = field(default_factory=dict)
    """Results added last: the same figure added twice is one point."""
    shown_points: dict[str, set[tuple[int, float | None]]] = field(default_factory=dict)
    """Of an inherited run, the points that it shows of each metric that was looked up."""

    def add(self, results: Mapping[str, float], moment_ms: int) -> None:
        """Add results that are new or have changed."""
        new = {key: value for key, value in results.items() if self.results.get(key) != value}
        self.metrics += [Metric(key, value, moment_ms, 0) for key, value in new.items()]
        self.results |= new

    @property
    def waiting(self) -> int:
        """How many values, files and changes of state are still to be written."""
        parts: Iterable[Any] = (
            self.new_params,
            self.metrics,
            self.new_datasets,
            self.artifacts,
            self.new_tags,
        )
        return (
            sum(len(part) for part in parts) + (self.status != self.shown_status) + (self.model is not None)
        )

    @property
    def new_tags(self) -> dict[str, str]:
        """Tags that the server does not show yet."""
        return {key: value for key, value in self.tags.items() if self.shown_tags.get(key) != value}

    @property
    def new_params(self) -> dict[str, str]:
        """Parameters that the server does not show yet. One that it shows cannot be changed."""
        return {key: value for key, value in self.params.items() if key not in self.shown_params}

    @property
    def new_datasets(self) -> list[Dataset]:
        """Datasets that the server does not show yet."""
        return [dataset for dataset in self.datasets if dataset_key(dataset) not in self.shown_datasets]


def dataset_key(dataset: Dataset) -> tuple[str, str]:
    """Name and digest, which make a dataset the same as another."""
    return dataset.name, dataset.digest


def point(metric: Metric) -> tuple[int, float | None]:
    """What makes a point the same as another of its metric: the step of a curve; step and value of a result.

    A resumed run repeats epochs whose timings differ a little: the first point stays.
    """
    return (metric.step, None if metric.key.startswith(CURVES) else metric.value)


def flatten(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Nested numbers by name, `dev_f1_by_language: {en: …}` as `dev_f1/en`.

    What is not a finite number is left out: MLflow's databases handle NaN in different ways.
    """
    flat: dict[str, float] = {}
    for key, value in metrics.items():
        name = clean(f"{prefix}{key}")
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{name.removesuffix('_by_language')}/")
        elif isinstance(value, int | float) and math.isfinite(value):
            flat[name] = float(value)
    return flat


def curve_prefix(run: str = "") -> str:
    """What the curves of a run are below: `epoch/`, or where a trial has several runs `epoch/seed 1/`."""
    return f"epoch/{run}/" if run else "epoch/"


def loss_prefixes(stages: Sequence[str]) -> tuple[str, ...]:
    """What the losses of each stage are below: each trains on its own, and `stage1_representation/loss` and
    `stage2_logits/loss` are no one curve. Of a single stage nothing. `stages`: what each is called."""
    if len(stages) == 1:
        return ("",)
    return tuple(f"stage{number}_{name}/" for number, name in enumerate(stages, 1))


def epoch_values(
    metrics: Mapping[str, Any], score_name: str, prefix: str, stages: Sequence[str] = ("",)
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
        if key not in ("epoch", "losses", "tokens", *OF_STAGE, *COUNTED)
    }
    values |= {f"{own}{key}": metrics[key] for key in OF_STAGE if key in metrics}
    values |= {key: metrics[key] + 1 for key in COUNTED if key in metrics}
    dev = DEV.called(score_name)
    return flatten({re.sub(r"^dev(?=_|$)", dev, key): value for key, value in values.items()}, prefix)


def charted(score: str, run: str, stages: Iterable[Sequence[str]]) -> list[str]:
    """The curves to look at first: the score and the loss of each stage, of every way of training in `stages`."""
    below = dict.fromkeys(own for each in stages for own in loss_prefixes(each))
    return [clean(f"{curve_prefix(run)}{name}") for name in (score, *(f"{own}loss" for own in below))]


def clean(key: str) -> str:
    """`key` with what MLflow refuses in names replaced, and cut to the length it takes."""
    return re.sub(r"[^\w./: -]", "_", key, flags=re.ASCII)[:KEY_LENGTH]


def text(value: Any) -> str:
    """`value` as parameters and tags take it: plain text of limited length."""
    plain = "" if value is None else str(value)
    return plain if len(plain) <= VALUE_LENGTH else plain[: VALUE_LENGTH - 1] + "…"


def results(trial: Scored) -> dict[str, float]:
    """The final metrics of a trial or a teacher by their names in MLflow, to five digits: its pages show all digits.

    The store and the reports keep what was measured.
    """
    known: dict[str, Any] = {figure.name: figure.read(trial) for figure in COSTS}
    for figure in (*scores_of(trial.score_name, targets=True), TARGET_DEV):
        known |= score_values(figure, trial)
    for figure in scores_of(trial.score_name, targets=False):
        known[f"{figure.called(trial.score_name)}_by_language"] = language_values(figure, trial)
    return rounded(flatten(known))


def rounded(exact: Mapping[str, float]) -> dict[str, float]:
    """To five digits."""
    return {name: value if value.is_integer() else float(f"{value:.5g}") for name, value in exact.items()}


def searched_params(tree: Mapping[str, Any]) -> dict[str, str]:
    """A sweep file's values by their dotted paths; what is searched is one value, as JSON."""
    found: dict[str, str] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and not {"choice", "int", "float"} & value.keys():
            found |= {f"{key}.{name}": inner for name, inner in searched_params(value).items()}
        else:
            plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            found[clean(key)] = text(plain)
    return found


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
