"""Checks of the tracking server before anything is written: the address, whether it answers, and what is wrong if not.

MLflow's own client retries for minutes (HTTP: 7 times 120 s; a database: 100 s), so each check here is short.
"""

from __future__ import annotations

import logging
import math
import os
import re
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from raykd.errors import TrackingError
from raykd.redact import expand_variables, redact
from raykd.tracking.database import ANSWER_SECONDS, check_sqlite, lock_database
from raykd.tracking.pages import clean_key
from raykd.tracking.views import VIEW_TAG, Experiment, experiment_tags

log = logging.getLogger(__name__)

FIRST_ANSWER_FACTOR = 4
"""Factor by which the first answer may take longer than a connection: a server that has just started reads its tables.
"""
LOCAL_DEFAULT = "sqlite:///mlflow.db"
DATABASES = ("postgresql", "mysql", "mssql", "sqlite")
MIGRATIONS = ("alembic", "mlflow.store.db.utils")
"""Loggers that write about a hundred lines on a new database."""
ARTIFACT_PACKAGES = MappingProxyType({"s3": "boto3", "gs": "google.cloud.storage"})
"""Packages with which MLflow's client writes the files of an experiment if no server does."""


def resolve_uri(uri: str) -> str:
    """Expand environment variables in `uri`, and make a relative SQLite path absolute.

    Raises:
        TrackingError: `uri` names MLflow's retired file store, or a database in memory.
    """
    uri = expand_variables(uri)
    scheme = urlsplit(uri).scheme
    if scheme in ("", "file") or (len(scheme) == 1 and scheme.isalpha()):
        raise TrackingError(
            f"tracking.uri: {uri!r} is MLflow's file store, which MLflow has retired; use {LOCAL_DEFAULT}"
        )
    if scheme != "sqlite":
        return uri
    path = uri.removeprefix("sqlite:///")
    if path in ("", ":memory:") or path == uri:
        raise TrackingError(f"tracking.uri: {uri!r} names no database file; use {LOCAL_DEFAULT}")
    return f"sqlite:///{Path(path).resolve()}"


def is_relative(uri: str) -> bool:
    """Return whether `uri` is an SQLite file below the working directory, which a cluster job deletes at its end.

    Args:
        uri: Address without environment variables.
    """
    return uri.startswith("sqlite:///") and not uri.removeprefix("sqlite:///").startswith("/")


def check_server(uri: str, *, seconds: float = ANSWER_SECONDS) -> str:
    """Test the tracking server, and create the tables of a new database.

    Args:
        uri: Address from the sweep file.
        seconds: Limit for a connection; the first answer may take `FIRST_ANSWER_FACTOR` times as long.

    Returns:
        `uri` as `resolve_uri` returns it.

    Raises:
        TrackingError: The server cannot be used; the message says why and how to correct it.
    """
    uri = resolve_uri(uri)
    check_connection(uri, seconds=seconds)
    try:
        with quick_requests(FIRST_ANSWER_FACTOR * seconds), only_warnings(*MIGRATIONS), lock_database(uri):
            MlflowClient(uri).search_experiments(max_results=1)
    except TrackingError:
        raise
    except Exception as error:
        raise TrackingError(
            f"tracking.uri: {redact(uri)} cannot be used: {redact(_reason_and_hint(uri, error))}"
        ) from error
    return uri


def check_connection(uri: str, *, seconds: float = ANSWER_SECONDS) -> None:
    """Test the connection to the host, or writing to the SQLite file.

    Call it before MLflow's own client, which retries for minutes.

    Raises:
        TrackingError: Nothing answers within `seconds`, or the file cannot be written.
    """
    parts = urlsplit(uri)
    if parts.scheme == "sqlite":
        check_sqlite(Path(uri.removeprefix("sqlite:///")))
    elif parts.hostname and (parts.scheme in ("http", "https") or parts.scheme.startswith(DATABASES)):
        ports = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}
        port = parts.port or ports[parts.scheme.split("+")[0]]
        try:
            socket.create_connection((parts.hostname, port), timeout=seconds).close()
        except OSError as error:
            raise TrackingError(
                f"tracking.uri: nothing answers at {parts.hostname}:{port} ({error}); "
                f"start the tracking server, or track locally with --set tracking.uri={LOCAL_DEFAULT}"
            ) from error


def _reason_and_hint(uri: str, error: Exception) -> str:
    reason = " ".join(str(error).split())
    if "out-of-date database schema" in reason or "Can't locate revision" in reason:
        return (
            f"it was written by another MLflow version; after a backup run: mlflow db upgrade {redact(uri)}"
        )
    # A port is no status: it may be 40300, or 403.
    status = set(re.findall(r"(?<![\d:=])\d{3}(?!\d)", reason))
    if "403" in status:
        return f"it answers 403; start it with --allowed-hosts {urlsplit(uri).hostname}, or check your rights"
    if "401" in status:
        return "it answers 401; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or a token"
    if "imed out" in reason:
        return "it takes connections but does not answer in time; is this an MLflow server, and does it work?"
    return f"{reason[:300]}; is this the address of an MLflow server?"


def quick_requests(seconds: float) -> AbstractContextManager[None]:
    """Limit requests in the body to one try of `seconds` (MLflow's own limit: 7 retries, 120 s each)."""
    timeout = str(max(1, math.ceil(seconds)))
    return environment_variables(MLFLOW_HTTP_REQUEST_TIMEOUT=timeout, MLFLOW_HTTP_REQUEST_MAX_RETRIES="0")


@contextmanager
def environment_variables(**variables: str) -> Iterator[None]:
    """Set environment variables for the body, for settings that MLflow reads nowhere else."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def only_warnings(*names: str) -> Iterator[None]:
    """Silence loggers below warnings while the body runs."""
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def find_or_create_experiment(client: MlflowClient, uri: str, experiment: Experiment) -> str:
    """Return the id of the experiment, created if necessary, and add raykd's views to it.

    Raises:
        TrackingError: The experiment was deleted, or a package that writes its files is missing.
    """
    name = experiment.name
    existing = client.get_experiment_by_name(name)
    if existing is None:
        location = _artifact_location(uri, name, experiment.artifacts)
        _check_artifact_package(location)
        experiment_id, tags = client.create_experiment(name, artifact_location=location), {}
    elif existing.lifecycle_stage == "deleted":
        raise TrackingError(
            f"tracking: the experiment {name!r} was deleted in MLflow; give the sweep another name, or "
            f"restore it: mlflow experiments restore --experiment-id {existing.experiment_id}"
        )
    else:
        _check_artifact_package(existing.artifact_location)
        experiment_id, tags = existing.experiment_id, existing.tags
    for key, value in experiment_tags(experiment_id, experiment).items():
        # Tags that people changed are kept.
        if key not in tags:
            _set_experiment_tag(client, experiment_id, key, value)
    return experiment_id


def _set_experiment_tag(client: MlflowClient, experiment_id: str, key: str, value: str) -> None:
    try:
        client.set_experiment_tag(experiment_id, key, value)
    except MlflowException as error:
        # MLflow before 3.16 allows 5,000 characters, and the views of a sweep with many scores are longer.
        if not key.startswith(VIEW_TAG) or error.error_code != "INVALID_PARAMETER_VALUE":
            raise
        log.warning("the view %s is too long for MLflow before 3.16; upgrade MLflow", key[len(VIEW_TAG) :])


def _artifact_location(uri: str, name: str, root: str | None) -> str | None:
    scheme = urlsplit(uri).scheme
    if root is None and not scheme.startswith(DATABASES):
        return None
    if root is None:
        # Absolute: a relative path would mean another folder for a process started elsewhere.
        beside = Path(uri.removeprefix("sqlite:///")).parent if scheme == "sqlite" else Path()
        root = str(beside / "mlruns")
    if not urlsplit(root).scheme:
        root = Path(root).absolute().as_uri()
    return f"{root.rstrip('/')}/{clean_key(name)}"


def _check_artifact_package(location: str | None) -> None:
    package = ARTIFACT_PACKAGES.get(urlsplit(location or "").scheme)
    try:
        missing = package is not None and find_spec(package) is None
    except ModuleNotFoundError:
        missing = True
    if missing:
        raise TrackingError(
            f"tracking: MLflow writes files to {location} with the package {package!r}, which is not installed; "
            f"run pip install {str(package).replace('.', '-')}, or use a tracking server, which writes them itself"
        )
