"""Students as MLflow models: a registered version for each student of the front, and the alias `ship` on one of them.

raykd moves the alias only away from a version that raykd gave it to. The tag `raykd.ship` of the registered model names
these versions; it is written before the alias moves and after. An alias that is elsewhere, or was removed, was set by a
person and stays as it is. Remove the tag to give the alias back to raykd.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from mlflow.entities import LoggedModel, LoggedModelOutput, LoggedModelStatus, Metric
from mlflow.entities import Run as MlflowRun
from mlflow.store.entities import PagedList
from mlflow.tracking import MlflowClient

from raykd.figures.table import COLUMNS, score_figures
from raykd.tracking.pages import CURVES, StudentModel
from raykd.tracking.student_models import save_model

T = TypeVar("T")

FIGURES = (*(figure.name for figure in COLUMNS), "bytes", "bytes_int8", "over_gold")
"""Figures of a registered version, beside the scores."""

FORM = MappingProxyType({"raykd.form": "python_function"})
"""Tag of the models that MLflow serves, unlike other files of a run."""
SHIP, SET_BY_RAYKD, NOWHERE = "ship", "raykd.ship", "none"
TRIAL_TAGS = ("raykd.trial", "run_id", "objective", "shape")
"""Tags of a trial's run, copied to its version."""


def all_pages(search: Callable[[str | None], PagedList[T]]) -> list[T]:
    """Return all results of a paged search.

    Args:
        search: Called with None for the first page, then with the token of the page before.
    """
    page = search(None)
    items = list(page)
    while page.token:
        page = search(page.token)
        items += page
    return items


def logged_models(client: MlflowClient, experiment_id: str) -> dict[str, LoggedModel]:
    """Return the students of an experiment logged as models, by the ids of their runs.

    If a run has several models, the complete one is returned: each attempt without an answer began a new one.
    """
    ours = " AND ".join(f"tags.`{key}` = '{value}'" for key, value in FORM.items())
    models = all_pages(lambda token: client.search_logged_models([experiment_id], ours, page_token=token))
    return {str(model.source_run_id): model for model in sorted(models, key=is_whole)}


def is_whole(model: LoggedModel | None) -> bool:
    """Return whether MLflow has all files of a model."""
    return model is not None and model.status == LoggedModelStatus.READY


def log_model(
    client: MlflowClient, student: StudentModel, begun: LoggedModel | None, run: MlflowRun
) -> LoggedModel:
    """Log a student as a model of MLflow 3: an output of its run, with the run's parameters and results.

    Args:
        client: Client of the server.
        student: The student, with its exported files.
        begun: The model begun by an earlier attempt without an answer, or None.
        run: Run of the student's trial.
    """
    if student.export is None:
        raise ValueError(f"{student.name}: there are no files to log")
    tags = {key: value for key, value in run.data.tags.items() if not key.startswith("mlflow.")}
    run_id = run.info.run_id
    model = begun or client.create_logged_model(
        run.info.experiment_id, student.name, run_id, tags | FORM, run.data.params, "sequence labeller"
    )
    with tempfile.TemporaryDirectory(prefix="raykd-") as folder:
        save_model(student.export, Path(folder, "model"), model_id=model.model_id, run_id=run_id)
        client.log_model_artifacts(model.model_id, str(Path(folder, "model")))
    moment = run.info.end_time or run.info.start_time
    results = {key: value for key, value in run.data.metrics.items() if not key.startswith(CURVES)}
    metrics = [Metric(key, value, moment, 0, model.model_id) for key, value in results.items()]
    client.log_batch(run_id, metrics=metrics)
    outputs = [] if run.outputs is None else [output.model_id for output in run.outputs.model_outputs]
    if model.model_id not in outputs:
        client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step=0)])
    return client.finalize_logged_model(model.model_id, "READY")


def register_version(client: MlflowClient, model: StudentModel, logged: LoggedModel, run: MlflowRun) -> str:
    """Create or complete the registered version of a logged model, and return its number.

    Args:
        client: Client of the server.
        model: The student, with the name to register it under.
        logged: The logged model.
        run: Run of the student's trial; its scores and tags become tags of the version.
    """
    # The folder, not `models:/…`: MLflow would look that up on the process's own server, which may be another one.
    name, source = model.registered_as, logged.artifact_location
    if not client.search_registered_models(f"name='{name}'"):
        client.create_registered_model(name)
    tags = {key: run.data.tags[key] for key in TRIAL_TAGS if key in run.data.tags}
    tags["trial"] = str(run.info.run_name)
    score_table = score_figures(model.score_name, targets=True, agreement=True)
    scores = (figure.full_name(model.score_name) for figure in score_table)
    figures = [key for key in (*scores, *FIGURES) if key in run.data.metrics]
    tags |= {key: f"{run.data.metrics[key]:g}" for key in figures}
    versions = client.search_model_versions(f"name='{name}' and run_id='{run.info.run_id}'")
    if version := next((old for old in versions if old.source == source), None):
        for key in (key for key, value in tags.items() if version.tags.get(key) != value):
            client.set_model_version_tag(name, str(version.version), key, tags[key])
        return str(version.version)
    # Without this limit it waits for minutes for a slow registry.
    version = client.create_model_version(
        name, source, run.info.run_id, tags, await_creation_for=0, model_id=logged.model_id
    )
    return str(version.version)


def move_ship_alias(client: MlflowClient, name: str, version: str, verdict: str) -> str:
    """Move the alias `ship` to `version`, and write `verdict` into the tag `ship`.

    Args:
        client: Client of the server.
        name: Registered model.
        version: Version to ship.
        verdict: The verdict of the sweep.

    Returns:
        A description of the alias if a person has set or removed it, which leaves it untouched; otherwise empty.
    """
    registered = client.get_registered_model(name)
    current = str(registered.aliases.get(SHIP, NOWHERE))
    set_by_raykd = registered.tags.get(SET_BY_RAYKD, NOWHERE).split()
    if current not in set_by_raykd:
        return "was removed" if current == NOWHERE else f"was set to version {current}"
    if current != version:
        client.set_registered_model_tag(name, SET_BY_RAYKD, f"{current} {version}")
        client.set_registered_model_alias(name, SHIP, version)
    client.set_registered_model_tag(name, SET_BY_RAYKD, version)
    client.set_registered_model_tag(name, SHIP, verdict)
    return ""


def shipped_version(client: MlflowClient, name: str) -> str:
    """Return the version under the alias `ship` and the trial, in words; empty if there is none."""
    models = client.search_registered_models(f"name='{name}'")
    if not models or SHIP not in models[0].aliases:
        return ""
    version = client.get_model_version_by_alias(name, SHIP)
    trial = version.tags.get("trial", "")
    return f"version {version.version}" + (f" ({trial})" if trial else "")
