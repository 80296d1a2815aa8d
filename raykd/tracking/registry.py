"""Students as models of MLflow, and in its registry a version for each of the front, with the alias of the one to ship.

raykd moves the alias only from a version to which raykd moved it. Those are named by the tag `raykd.ship` of the
registered model, written before the alias moves and after; an alias that is elsewhere, or that is gone, was set by a
person, and stays as it is. Removing the tag gives the alias back.
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
"""Beside the scores, what a version in the registry shows."""

FORM = MappingProxyType({"raykd.form": "python_function"})
"""What distinguishes models that MLflow serves from other files of a run."""
SHIP, SET_BY_RAYKD, NOWHERE = "ship", "raykd.ship", "none"
TRIAL_TAGS = ("raykd.trial", "run_id", "objective", "shape")
"""Tags of a trial's run that its version has too."""


def all_pages(search: Callable[[str | None], PagedList[T]]) -> list[T]:
    """Return all that a search finds, which is asked for page by page, by the token of each."""
    page = search(None)
    found = list(page)
    while page.token:
        page = search(page.token)
        found += page
    return found


def logged_models(client: MlflowClient, experiment_id: str) -> dict[str, LoggedModel]:
    """Return the students of an experiment that are logged as models, by the ids of their runs.

    Of several of one run the one that is whole: each attempt whose answer was lost began one.
    """
    ours = " AND ".join(f"tags.`{key}` = '{value}'" for key, value in FORM.items())
    found = all_pages(lambda token: client.search_logged_models([experiment_id], ours, page_token=token))
    return {str(model.source_run_id): model for model in sorted(found, key=is_whole)}


def is_whole(model: LoggedModel | None) -> bool:
    """Return whether MLflow has all of a model; one that was begun may lack its files."""
    return model is not None and model.status == LoggedModelStatus.READY


def log_model(
    client: MlflowClient, student: StudentModel, begun: LoggedModel | None, run: MlflowRun
) -> LoggedModel:
    """Log a student as a model of MLflow 3, an output of its run with its parameters and results.

    Args:
        client: of the server.
        student: with what was exported.
        begun: the model that an earlier attempt began, whose answer was lost.
        run: of the student's trial.
    """
    if student.export is None:
        raise ValueError(f"{student.name}: there are no files to log")
    own_tags = {key: value for key, value in run.data.tags.items() if not key.startswith("mlflow.")}
    run_id = run.info.run_id
    model = begun or client.create_logged_model(
        run.info.experiment_id, student.name, run_id, own_tags | FORM, run.data.params, "sequence labeller"
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
    """The version of a logged model, made if there is none, with the student's tags."""
    # Its folder: MLflow looks `models:/…` up at the address of the process, which may be another server's.
    name, source = model.registered_as, logged.artifact_location
    if not client.search_registered_models(f"name='{name}'"):
        client.create_registered_model(name)
    tags = {key: run.data.tags[key] for key in TRIAL_TAGS if key in run.data.tags}
    tags["trial"] = str(run.info.run_name)
    scores = (figure.full_name(model.score_name) for figure in score_figures(model.score_name, targets=True))
    shown = [key for key in (*scores, *FIGURES) if key in run.data.metrics]
    tags |= {key: f"{run.data.metrics[key]:g}" for key in shown}
    there = client.search_model_versions(f"name='{name}' and run_id='{run.info.run_id}'")
    if found := next((version for version in there if version.source == source), None):
        for key in (key for key, value in tags.items() if found.tags.get(key) != value):
            client.set_model_version_tag(name, str(found.version), key, tags[key])
        return str(found.version)
    # It waits for minutes otherwise, where a registry takes its time.
    made = client.create_model_version(
        name, source, run.info.run_id, tags, await_creation_for=0, model_id=logged.model_id
    )
    return str(made.version)


def move_ship_alias(client: MlflowClient, name: str, version: str, why: str) -> str:
    """Let the alias `ship` name `version`, and the tag `ship` say why. Returns what a person has done with the alias
    where it is left to them; else nothing.
    """
    registered = client.get_registered_model(name)
    at = str(registered.aliases.get(SHIP, NOWHERE))
    ours = registered.tags.get(SET_BY_RAYKD, NOWHERE).split()
    if at not in ours:
        return "was removed" if at == NOWHERE else f"was set to version {at}"
    if at != version:
        client.set_registered_model_tag(name, SET_BY_RAYKD, f"{at} {version}")
        client.set_registered_model_alias(name, SHIP, version)
    client.set_registered_model_tag(name, SET_BY_RAYKD, version)
    client.set_registered_model_tag(name, SHIP, why)
    return ""


def shipped_version(client: MlflowClient, name: str) -> str:
    """The version that the alias `ship` names, with its trial; empty where there is none."""
    found = client.search_registered_models(f"name='{name}'")
    if not found or SHIP not in found[0].aliases:
        return ""
    version = client.get_model_version_by_alias(name, SHIP)
    trial = version.tags.get("trial", "")
    return f"version {version.version}" + (f" ({trial})" if trial else "")
