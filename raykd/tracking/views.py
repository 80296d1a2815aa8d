"""Saved views of an experiment, so that MLflow's pages answer "which student do I ship?" when they open.

By default MLflow lists runs by date without a single metric and charts the ten newest. An experiment's tags
can hold views with columns, order, filter and charts; they are in the menu Views and open by link. The
format is that of MLflow 3.17's own Save view; an MLflow that does not know it ignores them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from raykd.figures.table import COLUMNS, DEV, score_figures
from raykd.tracking.pages import charted_curves, now_ms

VIEW_TAG = "mlflow.sharedViewState."
# Without it MLflow takes the experiment for one of prompts and shows training runs only in another menu.
EXPERIMENT_KIND = ("mlflow.experimentKind", "custom_model_development")
# Which of its two pages MLflow shows: the other one is for prompts.
TRAINING = "workflowType=machine_learning"
NOTE_TAG = "mlflow.note.content"
COSTS = tuple(figure.name for figure in COLUMNS if figure.column == 0)
"""The costs to show beside the scores."""
TAGS = tuple(f"tags.`{name}`" for name in ("on_front", "objective"))
# Wide enough for `#07 structural T=4 · E64 H128 maxent`.
NAME_WIDTH, WIDTH = 330, 105

VIEWS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "raykd-front": ("The front, by {score}", "tags.on_front = 'true'"),
        "raykd-students": ("All students, by {score}", "tags.role = 'search'"),
        "raykd-baselines": ("Gold baselines, by {score}", "tags.role = 'baseline'"),
    }
)
"""Id → (name in the menu, with `{score}` for what it is ordered by, and filter)."""


@dataclass(frozen=True)
class Experiment:
    """What a sweep's experiment is called, where its files are, and what its views show."""

    name: str
    score_name: str
    """Scores are named after it (`dev_accuracy`)."""
    label: str
    """What people call that score."""
    targets: bool = False
    """Whether the mean over target languages is shown."""
    run: str = ""
    """The run of each trial whose curves are charted."""
    stages: Sequence[Sequence[str]] = (("",),)
    """What the stages of a trial are called, for each way of training in the sweep."""
    artifacts: str | None = None
    """Folder or URI below which the files of a new one are; by default where a server says, or of a database `mlruns`,
    beside the SQLite file or in the working directory."""


def experiment_tags(experiment_id: str, shown: Experiment) -> dict[str, str]:
    """The tags of an experiment that hold the views and its kind, and link the views in its description."""
    # The one that selects first.
    scores = [
        figure.full_name(shown.score_name)
        for figure in score_figures(shown.score_name, targets=shown.targets)
    ]
    curves = charted_curves(scores[0], shown.run, shown.stages)
    ordered_by = DEV.heading.format(label=shown.label)
    names = {key: name.format(score=ordered_by) for key, (name, _) in VIEWS.items()}
    views = {f"{VIEW_TAG}{key}": _view(names[key], VIEWS[key][1], scores, curves) for key in VIEWS}
    links = " · ".join(f"[{name}]({view_link(experiment_id, key)})" for key, name in names.items())
    return {**views, **dict([EXPERIMENT_KIND]), NOTE_TAG: links}


def view_link(experiment_id: str, key: str) -> str:
    """Where a view opens, from any page of the server."""
    return f"#/experiments/{experiment_id}/runs?viewStateShareKey={key}&{TRAINING}"


def run_link(experiment_id: str, run_id: str) -> str:
    """Where a run is shown, from the address of the server."""
    return f"#/experiments/{experiment_id}/runs/{run_id}?{TRAINING}"


def front_links(experiment_id: str, run_id: str) -> str:
    """Links to picture and runs of the front, for the page of the sweep's run."""
    picture = f"#/experiments/{experiment_id}/runs/{run_id}/artifacts/front.html?{TRAINING}"
    return f"[The front as a picture]({picture}) · [as runs]({view_link(experiment_id, 'raykd-front')})"


def _view(name: str, filter_: str, scores: Sequence[str], curves: Sequence[str]) -> str:
    moment = now_ms()
    columns = [*(f"metrics.`{name}`" for name in (*scores, *COSTS)), *TAGS]
    widths = {"attributes.`Run Name`": NAME_WIDTH} | dict.fromkeys(columns, WIDTH)
    state = {
        "searchFilter": filter_,
        "orderByKey": columns[0],
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": columns,
        "columnOrder": list(widths),
        "columnWidths": widths,
        "runsHiddenMode": "SHOW_ALL",
        "isAccordionReordered": True,
        "compareRunSections": [
            {"uuid": key, "name": title, "display": True, "isReordered": True, **CHART_DEFAULTS}
            for key, title in SECTIONS.items()
        ],
        "compareRunCharts": _charts(scores[0], curves),
    }
    return json.dumps({"name": name, "createdAt": moment, "updatedAt": moment, "state": json.dumps(state)})


SECTIONS = MappingProxyType({"trade": "What the score costs", "epochs": "Training"})
CHART_DEFAULTS = MappingProxyType({"deleted": False, "isGenerated": False})


def _charts(score: str, curves: Sequence[str]) -> list[dict[str, Any]]:
    def scatter(key: str, x: str, y: str) -> dict[str, Any]:
        return _chart(key, "trade", "SCATTER", xaxis=_axis(x), yaxis=_axis(y), runsCountToCompare=100)

    sizes = ("student.embedding_dim", "student.hidden_dim", "student.decoder", "objective.kind")
    return [
        *(scatter(name, name, score) for name in COSTS),
        _chart(
            "parallel", "trade", "PARALLEL",
            selectedParams=list(sizes), selectedMetrics=[*COSTS, score], showAllRuns=True,
        ),
        *(_line(f"curve-{metric}", metric) for metric in curves),
    ]  # fmt: skip


def _line(key: str, metric: str) -> dict[str, Any]:
    return _chart(
        key, "epochs", "LINE",
        metricKey=metric, selectedMetricKeys=[metric], xAxisKey="step", yAxisKey="metric", lineSmoothness=0,
        scaleType="linear", xAxisScaleType="linear", useGlobalXaxisKey=True, useGlobalLineSmoothing=True,
        range={}, selectedXAxisMetricKey="", yAxisExpressions=[], ignoreOutliers=False, runsCountToCompare=100,
    )  # fmt: skip


def _chart(key: str, section: str, kind: str, **more: object) -> dict[str, Any]:
    return {"uuid": key, "type": kind, "metricSectionId": section, **CHART_DEFAULTS, **more}


def _axis(metric: str) -> dict[str, str]:
    return {"key": metric, "type": "METRIC"}
