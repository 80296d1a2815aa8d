"""The tracking server before anything is written: which address is meant, does it answer, and what is wrong if
not.

MLflow's own client retries for minutes (HTTP: 7 times 120 s; a database: 100 s), so every question asked
here is short.
"""

from __future__ import annotations

import logging
import math
import os
import re
import socket
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from filelock import FileLock
from mlflow.tracking import MlflowClient

from raykd.errors import TrackingError
from raykd.redact import expanded, redacted
from raykd.tracking.record import clean
from raykd.tracking.views import experiment_tags

PROBE_SECONDS = 5.0
MIGRATION_SECONDS = 60.0
"""How long a process waits for another that makes the tables of the same SQLite file."""
LOCAL_DEFAULT = "sqlite:///mlflow.db"
DATABASES = ("postgresql", "mysql", "mssql", "sqlite")


def resolve(uri: str) -> str:
    """`uri` with the environment's variables in it, and a relative SQLite path made absolute against the working
    directory.

    Raises:
        TrackingError: `uri` names MLflow's file store, which MLflow no longer maintains, or a database in
            memory.
    """
    uri = expanded(uri)
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
    """Whether `uri` is a local database below the working directory, which a cluster job throws away."""
    return uri.startswith("sqlite:///") and not uri.removeprefix("sqlite:///").startswith("/")


def check(uri: str, *, seconds: float = PROBE_SECONDS) -> str:
    """Check within about `seconds` that the tracking server answers; a new SQLite database is made and
    migrated.

    Returns `uri` as `resolve` gives it. Raises TrackingError saying what is wrong and how to correct it.
    """
    uri = resolve(uri)
    reachable(uri, seconds=seconds)
    try:
        with _quick_requests(seconds), _quiet_migrations(), _one_at_a_time(uri):
            MlflowClient(uri).search_experiments(max_results=1)
    except Exception as error:
        raise TrackingError(
            f"tracking.uri: {redacted(uri)} cannot be used: {redacted(_hint(uri, error))}"
        ) from error
    return uri


def reachable(uri: str, *, seconds: float = PROBE_SECONDS) -> None:
    """A quick check before MLflow's own client, which retries for minutes: does the host answer, can SQLite be opened?

    Raises TrackingError if not.
    """
    parts = urlsplit(uri)
    if parts.scheme == "sqlite":
        _open_sqlite(Path(uri.removeprefix("sqlite:///")))
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


def _open_sqlite(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with sqlite3.connect(path, timeout=PROBE_SECONDS) as database:
            database.execute("BEGIN IMMEDIATE")
        database.close()
    except (OSError, sqlite3.Error) as error:
        raise TrackingError(
            f"tracking.uri: the database {path} cannot be written ({error}); "
            "name a file in a folder you may write to, which no other program has locked"
        ) from error


def _hint(uri: str, error: Exception) -> str:
    reason = " ".join(str(error).split())
    if "out-of-date database schema" in reason or "Can't locate revision" in reason:
        return (
            f"it was written by another MLflow version; after a backup run: mlflow db upgrade {redacted(uri)}"
        )
    # Not the port: it may be 40300, or 403.
    status = set(re.findall(r"(?<![\d:=])\d{3}(?!\d)", reason))
    if "403" in status:
        return f"it answers 403; start it with --allowed-hosts {urlsplit(uri).hostname}, or check your rights"
    if "401" in status:
        return "it answers 401; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or a token"
    if "imed out" in reason:
        return "it takes connections but does not answer in time; is this an MLflow server, and does it work?"
    return f"{reason[:300]}; is this the address of an MLflow server?"


def _quick_requests(seconds: float) -> AbstractContextManager[None]:
    """One try, no retries, for the requests made inside (MLflow's own: 7 retries, 120 s each)."""
    timeout = str(max(1, math.ceil(seconds)))
    return environment(MLFLOW_HTTP_REQUEST_TIMEOUT=timeout, MLFLOW_HTTP_REQUEST_MAX_RETRIES="0")


@contextmanager
def environment(**wanted: str) -> Iterator[None]:
    """Settings that MLflow takes from the process's environment only, put back as they were."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _one_at_a_time(uri: str) -> Iterator[None]:
    """A new SQLite file gets its tables first, whole or not at all.

    Two processes that make the tables of one file destroy each other's work: the second waits here. One that is killed
    while it makes them (seconds, a hundred migrations) would leave a file that no MLflow can use: they are made in a
    file beside it, which then takes its name.
    """
    if urlsplit(uri).scheme != "sqlite":
        yield
        return
    path = Path(uri.removeprefix("sqlite:///"))
    lock = path.with_name(f"{path.name}.lock")
    with FileLock(lock, timeout=MIGRATION_SECONDS):
        if _has_no_tables(path):
            new = path.with_name(f"{path.name}.new")
            for left in path.parent.glob(f"{new.name}*"):
                left.unlink()
            MlflowClient(f"sqlite:///{new}").search_experiments(max_results=1)
            new.replace(path)
        yield
        # Whoever waits for it finds the tables made, and so do later ones.
        lock.unlink(missing_ok=True)


def _has_no_tables(path: Path) -> bool:
    with closing(sqlite3.connect(path, timeout=PROBE_SECONDS)) as database:
        return not database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]


@contextmanager
def _quiet_migrations() -> Iterator[None]:
    """A new database logs a hundred lines about its migrations, which nobody needs."""
    loggers = [logging.getLogger(name) for name in ("alembic", "mlflow.store.db.utils")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def experiment_of(
    client: MlflowClient,
    uri: str,
    name: str,
    scores: Sequence[str],
    label: str,
    curves: Sequence[str],
) -> str:
    """The id of the experiment called `name`, made if there is none; it gets our views, which show `scores` and call
    them by `label`, and `curves`. Files of a new one go where the server says, or into
    `mlruns/` beside a SQLite database.

    Raises TrackingError if somebody deleted the experiment.
    """
    found = client.get_experiment_by_name(name)
    if found is None:
        artifacts = None
        if urlsplit(uri).scheme == "sqlite":
            # MLflow would put the files below the working directory.
            artifacts = (Path(uri.removeprefix("sqlite:///")).parent / "mlruns" / clean(name)).as_uri()
        experiment_id, shown = client.create_experiment(name, artifact_location=artifacts), {}
    elif found.lifecycle_stage == "deleted":
        raise TrackingError(
            f"tracking: the experiment {name!r} was deleted in MLflow; give the sweep another name, or "
            f"restore it: mlflow experiments restore --experiment-id {found.experiment_id}"
        )
    else:
        experiment_id, shown = found.experiment_id, found.tags
    tags = experiment_tags(experiment_id, int(time.time() * 1000), scores, label, curves)
    for key, value in tags.items():
        # What people changed there is kept.
        if key not in shown:
            client.set_experiment_tag(experiment_id, key, value)
    return experiment_id
