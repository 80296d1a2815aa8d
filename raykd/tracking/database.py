"""MLflow's database for direct writing: SQLite or PostgreSQL, with all tables or none.

Several drivers may start on one new database at once. MLflow creates its tables in about a hundred steps, and two
processes that create them destroy each other's work. Here one process creates them and the others wait.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import sqlalchemy
from filelock import FileLock
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import SQLAlchemyError

from raykd.errors import TrackingError
from raykd.redact import redact

ANSWER_SECONDS = 5.0
"""Longest wait for a connection, or for a lock on an SQLite file."""
MIGRATION_SECONDS = 60.0
"""Longest wait for another process that creates the tables of the same database."""
TABLES_LOCK = int.from_bytes(b"raykd", "big")
"""Key of PostgreSQL's advisory lock."""


def lock_database(uri: str) -> AbstractContextManager[None]:
    """Lock the database of `uri` for checking or creating the tables. A tracking server needs no lock.

    Args:
        uri: Address as `resolve_uri` returns it.

    Raises:
        TrackingError: PostgreSQL cannot be reached. The error comes within seconds; MLflow would try for two minutes.
    """
    scheme = urlsplit(uri).scheme
    if scheme == "sqlite":
        return _lock_sqlite(Path(uri.removeprefix("sqlite:///")))
    return _lock_postgresql(uri) if scheme.startswith("postgresql") else nullcontext()


def check_sqlite(path: Path) -> None:
    """Test writing to an SQLite file; create the file and its folder if they do not exist.

    Raises:
        TrackingError: The file cannot be written, or is not a database.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with sqlite3.connect(path, timeout=ANSWER_SECONDS) as database:
            database.execute("BEGIN IMMEDIATE")
        database.close()
    except (OSError, sqlite3.Error) as error:
        raise TrackingError(
            f"tracking.uri: the database {path} cannot be written ({error}); "
            "name a file in a folder you may write to, which no other program has locked"
        ) from error


@contextmanager
def _lock_sqlite(path: Path) -> Iterator[None]:
    """Hold a file lock; if `path` has no tables, create them in a new file that then replaces it."""
    lock = path.with_name(f"{path.name}.lock")
    with FileLock(lock, timeout=MIGRATION_SECONDS):
        if _has_no_tables(path):
            # A process killed while it creates tables would leave a file that no MLflow can use.
            new = path.with_name(f"{path.name}.new")
            for remains in path.parent.glob(f"{new.name}*"):
                remains.unlink()
            MlflowClient(f"sqlite:///{new}").search_experiments(max_results=1)
            new.replace(path)
        yield
        # Processes that wait, and all later ones, find the tables there.
        lock.unlink(missing_ok=True)


def _has_no_tables(path: Path) -> bool:
    with closing(sqlite3.connect(path, timeout=ANSWER_SECONDS)) as database:
        return not database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]


@contextmanager
def _lock_postgresql(uri: str) -> Iterator[None]:
    """Hold an advisory lock in a transaction; PostgreSQL undoes the tables that a killed process began."""
    try:
        engine = sqlalchemy.create_engine(
            uri, poolclass=sqlalchemy.NullPool, connect_args={"connect_timeout": math.ceil(ANSWER_SECONDS)}
        )
    except ModuleNotFoundError as error:
        raise TrackingError(
            f"tracking.uri: PostgreSQL needs the package {error.name!r}, which is not installed; "
            "run pip install 'psycopg[binary]'"
        ) from error
    try:
        with engine.connect() as connection:
            # The lock belongs to the transaction, not the session: a pool such as PgBouncer may sit in between.
            connection.execute(sqlalchemy.text(f"SET LOCAL lock_timeout = {1000 * MIGRATION_SECONDS:.0f}"))
            connection.execute(sqlalchemy.text(f"SELECT pg_advisory_xact_lock({TABLES_LOCK})"))
            yield
    except SQLAlchemyError as error:
        raise TrackingError(
            f"tracking.uri: {redact(uri)} cannot be used: {_reason_and_hint(error)}"
        ) from error


def _reason_and_hint(error: SQLAlchemyError) -> str:
    reason = redact(" ".join(str(getattr(error, "orig", None) or error).split()))
    if "authentication failed" in reason or "no password supplied" in reason:
        return f"{reason}; set the user, and the variable that holds the password, as in postgresql://user:${{NAME}}@host/db"
    if "does not exist" in reason:
        return f"{reason}; create it with createdb, or correct the address"
    if "lock timeout" in reason:
        return (
            f"another process has locked its tables for {MIGRATION_SECONDS:.0f} s; end that process, or wait"
        )
    return f"{reason[:300]}; check the address and the rights of the user"
