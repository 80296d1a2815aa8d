"""The runs of a sweep in MLflow, as last read, and the writing of all differences from a page."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from mlflow.entities import DatasetInput, InputTag, LoggedModel, Metric, Param, RunData, RunTag
from mlflow.entities import Run as MlflowRun
from mlflow.tracking import MlflowClient

from raykd.tracking.pages import CURVES, SWEEP_TAG, TEACHER_TAG, TRIAL_TAG, Key, Page, StudentModel
from raykd.tracking.registry import (
    SHIP,
    all_pages,
    is_whole,
    log_model,
    logged_models,
    move_ship_alias,
    register_version,
)
from raykd.tracking.server import environment_variables

# MLflow takes 1000 values in one request, 100 of them parameters and 100 tags.
METRICS_PER_BATCH, PAIRS_PER_BATCH = 900, 90
PARENT_TAG = "mlflow.parentRunId"
CORPUS = InputTag("mlflow.data.context", "corpus")
Change = tuple[int, Callable[[str], object]]
"""Number of values, files or states that MLflow lacks, and the function that writes them, given the id of the run."""
T = TypeVar("T")


class PublishedRuns:
    """The runs of one sweep in MLflow. Methods that read or write raise MLflow's own errors.

    Args:
        client: Client of the server.
        experiment_id: Experiment of the sweep.
        sweep_key: Tag and value of the sweep's own run.
        warn: Called with one sentence about an alias that a person has moved.
    """

    def __init__(self, client: MlflowClient, experiment_id: str, sweep_key: Key, warn: Callable[[str], None]):
        self.client, self._experiment_id, self._sweep_key, self._warn = client, experiment_id, sweep_key, warn
        self.is_known = False
        """True if the runs are read and nothing has failed since; after an error it is unknown what MLflow has."""
        self._runs: dict[Key, MlflowRun] = {}
        self._models: dict[str, LoggedModel] = {}
        self._points: dict[str, set[tuple[str, int]]] = {}
        """Curve and step of each point, by the ids of runs that are not complete."""
        self._files: dict[Key, dict[str, bytes]] = {}
        self._registered: dict[Key, StudentModel] = {}

    def read(self) -> None:
        """Read all runs and models of the sweep."""
        runs = self._search_runs(*self._sweep_key)
        runs += [child for parent in runs for child in self._search_runs(PARENT_TAG, parent.info.run_id)]
        self._runs = {_key(run): run for run in runs}
        self._models = logged_models(self.client, self._experiment_id)
        self._points = {run.info.run_id: self._points_of(run) for run in runs if not _is_complete(run)}
        self.is_known = True

    def _search_runs(self, tag: str, value: str) -> list[MlflowRun]:
        filter_ = f"tags.`{tag}` = '{value}'"
        return all_pages(
            lambda token: self.client.search_runs([self._experiment_id], filter_, page_token=token)
        )

    def _points_of(self, run: MlflowRun) -> set[tuple[str, int]]:
        curves = [key for key in run.data.metrics if key.startswith(CURVES)]
        histories = [self.client.get_metric_history(run.info.run_id, key) for key in curves]
        return {(point.key, point.step) for history in histories for point in history}

    @property
    def sweep_run(self) -> str:
        """Id of the sweep's own run."""
        return self._runs[self._sweep_key].info.run_id

    @property
    def front_step(self) -> int:
        """Number of trials in the curves of the front's growth."""
        return max((step for key, step in self._points[self.sweep_run] if key == "front/students"), default=0)

    def has_model(self, key: Key) -> bool:
        """Return true if MLflow has the complete model of the student of the page `key`."""
        return key in self._runs and is_whole(self._models.get(self._runs[key].info.run_id))

    def lacks_model(self, page: Page) -> bool:
        """Return true if the page has a student that is not logged and registered yet."""
        return page.model is not None and self._registered.get(page.key) != page.model

    def changes(self, page: Page) -> list[Change]:
        """Return the differences between `page` and MLflow's last answers, without the model.

        The tags come after the points, and the state comes last: both mark a run as complete.
        """
        client, run, files = self.client, self._runs.get(page.key), self._files.get(page.key, {})
        data = RunData() if run is None else run.data
        logged_inputs = [] if run is None or run.inputs is None else run.inputs.dataset_inputs
        logged_datasets = {(logged.dataset.name, logged.dataset.digest) for logged in logged_inputs}
        params = [Param(key, value) for key, value in page.params.items() if key not in data.params]
        tags = [RunTag(key, value) for key, value in page.tags.items() if data.tags.get(key) != value]
        results = {key: value for key, value in page.results.items() if data.metrics.get(key) != value}
        metrics = [Metric(key, value, page.moment_ms, 0) for key, value in results.items()]
        metrics += self._new_points(page, run)
        datasets = [
            dataset for dataset in page.datasets if (dataset.name, dataset.digest) not in logged_datasets
        ]
        inputs = [DatasetInput(dataset, [CORPUS]) for dataset in datasets]
        return [
            *(
                (len(chunk), partial(client.log_batch, params=chunk))
                for chunk in _chunks(params, PAIRS_PER_BATCH)
            ),
            *(
                (len(chunk), partial(self._log_metrics, chunk))
                for chunk in _chunks(metrics, METRICS_PER_BATCH)
            ),
            *([(len(inputs), partial(client.log_inputs, datasets=inputs))] if inputs else []),
            *(
                (1, partial(self._log_file, name, content))
                for name, content in page.files.items()
                if files.get(name) is not content
            ),
            *(
                (len(chunk), partial(client.log_batch, tags=chunk))
                for chunk in _chunks(tags, PAIRS_PER_BATCH)
            ),
            *(
                [(1, partial(self._set_status, page))]
                if run is None or run.info.status != page.status
                else []
            ),
        ]

    def _new_points(self, page: Page, run: MlflowRun | None) -> list[Metric]:
        if run is None:
            return list(page.points)
        known_points = self._points.get(run.info.run_id)
        if known_points is None:
            return []
        # The first point of a step stays: a resumed run repeats epochs, and their timings differ a little.
        return [point for point in list(page.points) if (point.key, point.step) not in known_points]

    def write(self, page: Page) -> None:
        """Write the differences between `page` and MLflow, without the model."""
        changes = self.changes(page)
        if not changes:
            return
        run_id = self._run_id(page)
        for _, write in changes:
            write(run_id)
        self._runs[page.key], self._files[page.key] = self.client.get_run(run_id), dict(page.files)
        if _is_complete(self._runs[page.key]):
            self._points.pop(run_id, None)

    def _run_id(self, page: Page) -> str:
        if page.key in self._runs:
            return self._runs[page.key].info.run_id
        tags = dict([page.key, *page.first_tags.items()])
        if page.key != self._sweep_key:
            tags[PARENT_TAG] = self.sweep_run
        began_ms = page.moment_ms - int(1000 * page.duration_s)
        run = self.client.create_run(self._experiment_id, began_ms, tags, page.name)
        self._runs[page.key], self._points[run.info.run_id] = run, set()
        return run.info.run_id

    def _log_metrics(self, metrics: Sequence[Metric], run_id: str) -> None:
        self.client.log_batch(run_id, metrics=metrics)
        if run_id in self._points:
            self._points[run_id] |= {(metric.key, metric.step) for metric in metrics}

    def _log_file(self, name: str, content: bytes, run_id: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(content)
            self.client.log_artifact(run_id, str(path))

    def _set_status(self, page: Page, run_id: str) -> None:
        if page.status == "RUNNING":
            self.client.update_run(run_id, page.status)
            return
        # MLflow prints a link for each run that ends on a server: only cli/ prints.
        with environment_variables(MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="true"):
            self.client.set_terminated(run_id, page.status, end_time=page.moment_ms)

    def write_model(self, page: Page) -> None:
        """Log the page's student as a model, and register the model. The run of the page must exist."""
        model = page.model
        if model is None or not self.lacks_model(page):
            return
        run = self.client.get_run(self._runs[page.key].info.run_id)
        logged = self._models.get(run.info.run_id)
        if logged is None or not is_whole(logged):
            logged = self._models[run.info.run_id] = log_model(self.client, model, logged, run)
        version = register_version(self.client, model, logged, run)
        by_hand = move_ship_alias(self.client, model.registered_as, version, model.ship) if model.ship else ""
        if by_hand:
            self._warn(
                f"MLflow: the alias {SHIP} of {model.registered_as} {by_hand} by hand and is not changed; "
                f"raykd would ship version {version}"
            )
        self._registered[page.key] = model


def _key(run: MlflowRun) -> Key:
    tag = next(tag for tag in (TRIAL_TAG, TEACHER_TAG, SWEEP_TAG) if tag in run.data.tags)
    return tag, run.data.tags[tag]


def _is_complete(run: MlflowRun) -> bool:
    """Return whether all points of a run are written; its state follows them. The sweep's own run is never complete."""
    ended = run.info.status == "FINISHED" or run.data.tags.get("state") == "PRUNED"
    return ended and SWEEP_TAG not in run.data.tags


def _chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
