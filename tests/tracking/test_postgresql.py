"""PostgreSQL as MLflow's database: made by one, refused in seconds, missed for a while, its password secret."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace

import psycopg
import pytest
from mlflow.tracking import MlflowClient

from raykd.errors import RaykdError, TrackingError
from raykd.figures.trial import Trial
from raykd.redact import expand_variables
from raykd.tracking.database import TABLES_LOCK
from raykd.tracking.server import check_server, resolve_uri
from raykd.tracking.sweep_pages import Ending
from tests.postgresql import PASSWORD, USER, PostgresServer
from tests.tracking.swept import Swept
from tests.tracking.test_server import KILLED


@pytest.fixture(scope="module")
def server():
    postgres = PostgresServer()
    try:
        postgres.start()
        yield postgres
    finally:
        postgres.remove()


@pytest.fixture(autouse=True)
def _password(monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)


@pytest.fixture
def connection(server):
    with psycopg.connect(expand_variables(server.uri), autocommit=True) as connected:
        yield connected


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_makes_the_tables_leaves_nothing_in_the_way(server):
    killed = subprocess.run([sys.executable, "-c", KILLED, server.uri, "20"])
    assert killed.returncode == -signal.SIGKILL
    assert check_server(server.uri) == resolve_uri(server.uri)


def test_one_makes_the_tables_and_others_wait(server, connection, monkeypatch):
    monkeypatch.setattr("raykd.tracking.database.MIGRATION_SECONDS", 0.5)
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({TABLES_LOCK})")
        with pytest.raises(TrackingError, match="another process has locked its tables"):
            check_server(server.uri)
    check_server(server.uri)


def test_a_sweep_is_shown_and_what_the_server_missed_is_written_when_it_is_back(server, tmp_path):
    warned = []
    swept = Swept(server.uri, "away", warn=warned.append, artifacts=(tmp_path / "files").as_uri())
    trial = Trial(0, "RUNNING", {"student.hidden_dim": 8})
    swept.record(trial)
    assert swept.publish() == ()
    server.stop()
    swept.pages.log_epoch(0, 0, {"loss": 0.5})
    swept.record(replace(trial, state="COMPLETE"))
    assert swept.publish()
    server.start()
    swept.pages.ending = Ending(files={"front.csv": b"a,b\n"})
    assert swept.close() == ()
    assert ["goes on without it" in warned[0], "answers again" in warned[1]] == [True, True]
    client = MlflowClient(resolve_uri(server.uri))
    experiment = client.get_experiment_by_name("away")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert {name: run.info.status for name, run in runs.items()} == {
        "sweep away": "FINISHED", trial.name: "FINISHED"
    }  # fmt: skip
    assert runs[trial.name].data.metrics["epoch/loss"] == 0.5
    assert list((tmp_path / "files").rglob("front.csv"))
    assert swept.publisher.link.startswith("http://127.0.0.1:5000/")
    stored = server.dump()
    assert "student.hidden_dim" in stored
    for text in (stored, server.log(), *warned, swept.publisher.link):
        assert PASSWORD not in text
        assert PASSWORD.replace("/", "%2F").replace(":", "%3A").replace("@", "%40") not in text


@pytest.mark.parametrize(
    ("user", "database", "password", "reason"),
    [
        (
            USER,
            "postgres",
            "wrong-CANARY",
            r"password authentication failed.*postgresql://user:\$\{NAME\}@host/db",
        ),
        (USER, "nowhere", PASSWORD, "does not exist; create it with createdb"),
        ("nobody", "postgres", PASSWORD, "password authentication failed"),
    ],
)
@pytest.mark.timeout(60)  # MLflow alone tries for 100 s
def test_what_the_server_refuses_is_said_at_once_without_the_password(
    server, monkeypatch, user, database, password, reason
):
    monkeypatch.setenv("DB_PASSWORD", password)
    uri = f"postgresql://{user}:${{DB_PASSWORD}}@{server.address}/{database}"
    with pytest.raises(TrackingError, match=reason) as caught:
        check_server(uri)
    assert "CANARY" not in str(caught.value)


def test_a_password_that_is_not_set_is_named(server, monkeypatch):
    monkeypatch.delenv("DB_PASSWORD")
    with pytest.raises(RaykdError, match="the environment variable DB_PASSWORD is not set"):
        check_server(server.uri)


def test_files_in_a_bucket_need_the_package_that_writes_them(server, monkeypatch):
    monkeypatch.setattr("raykd.tracking.server.find_spec", lambda name: None)
    with pytest.raises(TrackingError, match=r"s3://bucket/mlflow/bucket.*'boto3'.*pip install boto3"):
        Swept(server.uri, "bucket", artifacts="s3://bucket/mlflow")


def test_without_the_driver_the_command_that_installs_it_is_shown(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        TrackingError, match=r"'psycopg', which is not installed; run pip install 'psycopg\[binary\]'"
    ):
        check_server(server.uri)
