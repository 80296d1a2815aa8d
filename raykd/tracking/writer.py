"""Records written to MLflow. Every write may be repeated: what is there already is found and not written again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

from mlflow.entities import (
    DatasetInput,
    InputTag,
    LoggedModel,
    LoggedModelOutput,
    LoggedModelStatus,
    Metric,
    Param,
    RunTag,
)
from mlflow.entities import Run as MlflowRun
from mlflow.tracking import MlflowClient

from raykd.tracking.models import save_model
from raykd.tracking.record import CURVES, Record, dataset_key, point
from raykd.tracking.registry import SHIP, StudentModel, register, ship
from raykd.tracking.server import environment

# MLflow takes 1000 values in one request, 100 of them parameters and 100 tags.
METRICS_PER_BATCH, PAIRS_PER_BATCH = 900, 90
FORM = MappingProxyType({"raykd.form": "python_function"})
"""What distinguishes models that MLflow serves from the plain files that raykd logged before."""


class Writer:
    """Writes records of one experiment. `lock` protects the records, to which the driver adds meanwhile."""

    def __init__(self, client: MlflowClient, experiment_id: str, lock: Lock, warn: Callable[[str], None]):
        self.client, self.experiment_id, self._lock, self._warn = client, experiment_id, lock, warn

    def find(self, tag: str, value: str) -> Iterator[MlflowRun]:
        """All runs of the experiment whose `tag` is `value`, without deleted ones."""
        token, more = None, True
        while more:
            page = self.client.search_runs(
                [self.experiment_id], f"tags.`{tag}` = '{value}'", max_results=500, page_token=token
            )
            yield from page
            token = page.token
            more = bool(token)

    def models(self) -> dict[str, LoggedModel]:
        """The experiment's students that are logged as models, by the runs that they are of."""
        return self._models()

    def _models(self, *also: str) -> dict[str, LoggedModel]:
        """By run, one model that is ready, or else one that was begun: each attempt whose answer was lost left one."""
        found, token, more = [], None, True
        filter_ = " AND ".join([*(f"tags.`{key}` = '{value}'" for key, value in FORM.items()), *also])
        while more:
            page = self.client.search_logged_models([self.experiment_id], filter_, page_token=token)
            found += page
            token = page.token
            more = bool(token)
        found.sort(key=lambda model: model.status == LoggedModelStatus.READY)
        return {str(model.source_run_id): model for model in found}

    def write(self, record: Record) -> None:
        """Write all that waits in `record`.

        Raises what MLflow raises; what was written before that is not written again.
        """
        run_id = self._attach(record)
        self._pairs(record, run_id)
        self._points(record, run_id)
        self._inputs(record, run_id)
        self._files(record, run_id)
        self._status(record, run_id)

    def write_model(self, record: Record) -> None:
        """Write the student that waits in `record`, whose run is there: as a logged model of MLflow 3, an output of the
        run with its parameters and results, and as a version in the registry. Raises as `write`.
        """
        with self._lock:
            model = record.model
        if model is None:
            return
        run = self.client.get_run(self._attach(record))
        if not record.model_is_whole:
            self._log_model(record, model, run)
        version = register(self.client, model, str(record.model_id), run)
        by_hand = ship(self.client, model.registered_as, version, model.ship) if model.ship else ""
        if by_hand:
            self._warn(
                f"MLflow: the alias {SHIP} of {model.registered_as} {by_hand} by hand, and stays so; "
                f"raykd would ship version {version}"
            )
        with self._lock:
            record.model = None if record.model is model else record.model

    def _attach(self, record: Record) -> str:
        """The id of the record's run, found again by its tag or made now."""
        if record.run_id is not None:
            return record.run_id
        found = next(self.find(*record.found_by), None)
        if found is not None:
            return adopt(record, found)
        tags = dict([record.found_by]) | record.tags
        run = self.client.create_run(
            self.experiment_id, start_time=record.started_ms, tags=tags, run_name=record.name
        )
        record.run_id, record.shown_tags, record.shown_status = run.info.run_id, tags, "RUNNING"
        return run.info.run_id

    def _pairs(self, record: Record, run_id: str) -> None:
        with self._lock:
            params, tags = record.new_params, record.new_tags
        for some in _chunks(list(params.items()), PAIRS_PER_BATCH):
            self.client.log_batch(run_id, params=[Param(key, value) for key, value in some])
        for some in _chunks(list(tags.items()), PAIRS_PER_BATCH):
            self.client.log_batch(run_id, tags=[RunTag(key, value) for key, value in some])
        with self._lock:
            record.shown_params |= params
            record.shown_tags |= tags

    def _points(self, record: Record, run_id: str) -> None:
        with self._lock:
            metrics = list(record.metrics)
        new = [metric for metric in metrics if not self._shown(record, run_id, metric)]
        for some in _chunks(new, METRICS_PER_BATCH):
            self.client.log_batch(run_id, metrics=some)
        with self._lock:
            del record.metrics[: len(metrics)]

    def _shown(self, record: Record, run_id: str, metric: Metric) -> bool:
        if not record.inherited:
            return False
        if metric.key not in record.shown_points:
            history = self.client.get_metric_history(run_id, metric.key)
            record.shown_points[metric.key] = {point(shown) for shown in history}
        return point(metric) in record.shown_points[metric.key]

    def _inputs(self, record: Record, run_id: str) -> None:
        with self._lock:
            datasets = record.new_datasets
        if datasets:
            used = [DatasetInput(d, [InputTag("mlflow.data.context", "corpus")]) for d in datasets]
            self.client.log_inputs(run_id, datasets=used)
        with self._lock:
            record.shown_datasets |= {dataset_key(dataset) for dataset in datasets}

    def _files(self, record: Record, run_id: str) -> None:
        with self._lock:
            files = dict(record.artifacts)
        for name, data in files.items():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, Path(name).name)
                path.write_bytes(data)
                parent = str(Path(name).parent)
                self.client.log_artifact(run_id, str(path), None if parent == "." else parent)
        with self._lock:
            record.artifacts = {k: v for k, v in record.artifacts.items() if v is not files.get(k)}

    def _log_model(self, record: Record, model: StudentModel, run: MlflowRun) -> None:
        if model.export is None:
            raise ValueError(f"{model.name}: there are no files to log")
        if record.model_id is None and (begun := self._models(f"source_run_id = '{run.info.run_id}'")):
            (there,) = begun.values()
            record.model_id, record.model_is_whole = there.model_id, there.status == LoggedModelStatus.READY
            if record.model_is_whole:
                return
        if record.model_id is None:
            record.model_id = self.client.create_logged_model(
                self.experiment_id,
                name=model.name,
                source_run_id=run.info.run_id,
                tags=_own_tags(run.data.tags) | FORM,
                params=run.data.params,
                model_type="sequence labeller",
            ).model_id
        with tempfile.TemporaryDirectory(prefix="raykd-") as folder:
            save_model(model.export, Path(folder, "model"), model_id=record.model_id, run_id=run.info.run_id)
            self.client.log_model_artifacts(record.model_id, str(Path(folder, "model")))
        values = [(key, value) for key, value in run.data.metrics.items() if not key.startswith(CURVES)]
        moment = run.info.end_time or run.info.start_time
        shown = [Metric(key, value, moment, 0, model_id=record.model_id) for key, value in values]
        self.client.log_batch(run.info.run_id, metrics=shown)
        known = [] if run.outputs is None else [output.model_id for output in run.outputs.model_outputs]
        if record.model_id not in known:
            self.client.log_outputs(run.info.run_id, [LoggedModelOutput(record.model_id, step=0)])
        self.client.finalize_logged_model(record.model_id, "READY")
        record.model_is_whole = True

    def _status(self, record: Record, run_id: str) -> None:
        if record.status == record.shown_status:
            return
        if record.status == "RUNNING":
            self.client.update_run(run_id, status="RUNNING")
        else:
            # MLflow prints a link for each run that ends on a server: only cli/ prints.
            with environment(MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="true"):
                self.client.set_terminated(run_id, record.status, end_time=record.ended_ms)
        record.shown_status = record.status


def adopt(record: Record, run: MlflowRun) -> str:
    """Let `record` continue a run that an earlier driver made: what the run shows is not written again.

    Returns its id.
    """
    record.run_id, record.inherited = run.info.run_id, True
    record.shown_tags, record.shown_status = dict(run.data.tags), run.info.status
    record.shown_params = dict(run.data.params)
    inputs = run.inputs.dataset_inputs if run.inputs else []
    record.shown_datasets = {dataset_key(shown.dataset) for shown in inputs}
    return run.info.run_id


def _own_tags(tags: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if not key.startswith("mlflow.")}


def _chunks(items: list[Any], size: int) -> Iterator[list[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
