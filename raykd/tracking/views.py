"""Saved views of an experiment, which answer "which student do I ship?" when MLflow's pages open.

By default MLflow lists runs by date without a single metric and charts the ten newest. The tags of an experiment can
hold views with columns, order, filter and charts; they are in the menu Views and open by link. The format is that of
MLflow 3.17's own Save view; an MLflow that does not know it ignores them.
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
# Without it MLflow treats the experiment as one of prompts, and shows training runs only in another menu.
EXPERIMENT_KIND = ("mlflow.experimentKind", "custom_model_development")
# The page for training runs; MLflow's other page is for prompts.
TRAINING = "workflowType=machine_learning"
NOTE_TAG = "mlflow.note.content"
COSTS = tuple(figure.name for figure in COLUMNS if figure.column == 0)
"""Costs to show beside the scores."""
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
"""Id → name in the menu, with `{score}` for the score that orders the view, and filter."""


@dataclass(frozen=True)
class Experiment:
    """The experiment of a sweep: its name, the place of its files, and the content of its views."""

    name: str
    score_name: str
    """Score of the task; metrics carry its name (`dev_accuracy`)."""
    label: str
    """The score's name for people."""
    targets: bool = False
    """True to show the mean over target languages."""
    run: str = ""
    """Run of each trial whose curves are charted."""
    stages: Sequence[Sequence[str]] = (("",),)
    """Names of a trial's stages, for each way of training in the sweep."""
    artifacts: str | None = None
    """Folder or URI for the files of a new experiment.

    By default the server decides; with a database it is `mlruns`, beside the SQLite file or in the working directory.
    """
    agreement: bool = False
    """True to show the agreement with an annotator beside a score against gold labels."""


def experiment_tags(experiment_id: str, experiment: Experiment) -> dict[str, str]:
    """Return the tags of an experiment: its views, its kind, and a description that links the views.

    Args:
        experiment_id: Id in MLflow, for the links.
        experiment: Content of the views.
    """
    # The score that selects students comes first.
    scores = [
        figure.full_name(experiment.score_name)
        for figure in score_figures(
            experiment.score_name, targets=experiment.targets, agreement=experiment.agreement
        )
    ]
    curves = charted_curves(scores[0], experiment.run, experiment.stages)
    ordered_by = DEV.heading.format(label=experiment.label)
    names = {key: name.format(score=ordered_by) for key, (name, _) in VIEWS.items()}
    views = {f"{VIEW_TAG}{key}": _view(names[key], VIEWS[key][1], scores, curves) for key in VIEWS}
    links = " · ".join(f"[{name}]({view_link(experiment_id, key)})" for key, name in names.items())
    return {**views, **dict([EXPERIMENT_KIND]), NOTE_TAG: links}


def view_link(experiment_id: str, key: str) -> str:
    """Return the link to a view, which works from any page of the server."""
    return f"#/experiments/{experiment_id}/runs?viewStateShareKey={key}&{TRAINING}"


def run_link(experiment_id: str, run_id: str) -> str:
    """Return the link to a run, relative to the server's address."""
    return f"#/experiments/{experiment_id}/runs/{run_id}?{TRAINING}"


def front_links(experiment_id: str, run_id: str) -> str:
    """Return Markdown links to the picture and the runs of the front, for the page of the sweep's run.

    Args:
        experiment_id: Experiment of the sweep.
        run_id: The sweep's own run.
    """
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
