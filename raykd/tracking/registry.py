"""Students in MLflow's model registry: a version for each student of the front, and the alias of the one to ship.

raykd moves the alias only from a version to which raykd moved it. Those are named by the tag `raykd.ship` of the
registered model, written before the alias moves and after; an alias that is elsewhere, or that is gone, was set by a
person, and stays as it is. Removing the tag gives the alias back.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlflow.entities import Run as MlflowRun
from mlflow.tracking import MlflowClient

SHIP, SET_BY_RAYKD, NOWHERE = "ship", "raykd.ship", "none"
OF_TRIAL = ("raykd.figures.trial", "run_id", "objective", "shape")
"""Tags of a trial's run that its version has too."""


@dataclass(frozen=True)
class StudentModel:
    """A student as it should be in MLflow."""

    name: str
    """Of the model within its experiment."""
    export: Path | None
    """What `raykd export` wrote; None: MLflow has the model already."""
    registered_as: str
    figures: tuple[str, ...]
    """The metrics of its run that its version shows as tags."""
    ship: str = ""
    """Why this is the one to ship; empty: it is not."""


def register(client: MlflowClient, model: StudentModel, model_id: str, run: MlflowRun) -> str:
    """The version of a logged model, made if there is none, with the student's tags."""
    # Its folder: MLflow looks `models:/…` up at the address of the process, which may be another server's.
    name, source = model.registered_as, client.get_logged_model(model_id).artifact_location
    if not client.search_registered_models(f"name='{name}'"):
        client.create_registered_model(name)
    tags = {key: run.data.tags[key] for key in OF_TRIAL if key in run.data.tags}
    tags["trial"] = str(run.info.run_name)
    tags |= {key: f"{run.data.metrics[key]:g}" for key in model.figures if key in run.data.metrics}
    there = client.search_model_versions(f"name='{name}' and run_id='{run.info.run_id}'")
    if found := next((version for version in there if version.source == source), None):
        for key in (key for key, value in tags.items() if found.tags.get(key) != value):
            client.set_model_version_tag(name, str(found.version), key, tags[key])
        return str(found.version)
    # It waits for minutes otherwise, where a registry takes its time.
    made = client.create_model_version(
        name, source, run.info.run_id, tags, await_creation_for=0, model_id=model_id
    )
    return str(made.version)


def ship(client: MlflowClient, name: str, version: str, why: str) -> str:
    """Let the alias `ship` name `version`, and the tag `ship` say why. Returns what a person has done with the alias
    where it is left to them; else nothing."""
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


def shipped(client: MlflowClient, name: str) -> str:
    """The version that the alias `ship` names, with its trial; empty where there is none."""
    found = client.search_registered_models(f"name='{name}'")
    if not found or SHIP not in found[0].aliases:
        return ""
    version = client.get_model_version_by_alias(name, SHIP)
    trial = version.tags.get("trial", "")
    return f"version {version.version}" + (f" ({trial})" if trial else "")
