"""An address is judged within seconds, and every refusal says how to correct it."""

import os
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from raykd.errors import TrackingError
from raykd.tracking.server import _reason_and_hint, check_server, is_relative, resolve_uri


@pytest.fixture
def listener():
    """A socket that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def _answering(status: int):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"no")

        def log_message(self, format, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def test_a_relative_database_is_resolved_to_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve_uri("sqlite:///mlflow.db") == f"sqlite:///{tmp_path}/mlflow.db"
    assert resolve_uri(f"sqlite:///{tmp_path}/mlflow.db") == f"sqlite:///{tmp_path}/mlflow.db"
    assert resolve_uri("http://tracking:5000") == "http://tracking:5000"


def test_only_paths_below_the_working_directory_are_relative():
    assert is_relative("sqlite:///mlflow.db")
    assert not is_relative("sqlite:////data/mlflow.db")
    assert not is_relative("http://tracking:5000")


@pytest.mark.parametrize("uri", ["mlruns", "./mlruns", "file:///tmp/mlruns", "/data/mlruns"])
def test_the_file_store_is_refused_with_the_hint(uri):
    with pytest.raises(TrackingError, match=r"file store.*sqlite:///mlflow\.db"):
        check_server(uri)


@pytest.mark.parametrize("uri", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused(uri):
    with pytest.raises(TrackingError, match="names no database file"):
        check_server(uri)


def test_nothing_listening_is_reported_at_once(listener):
    with socket.create_server(("127.0.0.1", 0)) as closed_socket:
        port = closed_socket.getsockname()[1]
    with pytest.raises(TrackingError, match=rf"nothing answers at 127\.0\.0\.1:{port}.*--set tracking\.uri="):
        check_server(f"http://127.0.0.1:{port}")


def test_a_database_server_that_is_not_there_is_reported_at_once():
    with socket.create_server(("127.0.0.1", 0)) as closed_socket:
        port = closed_socket.getsockname()[1]
    with pytest.raises(TrackingError, match="nothing answers"):
        check_server(f"postgresql+psycopg2://me:secret@127.0.0.1:{port}/mlflow")


@pytest.mark.parametrize("port", [403, 40301, 14010])
def test_a_port_is_not_read_as_an_answer(port):
    error = ConnectionError(
        f"HTTPConnectionPool(host='127.0.0.1', port={port}): Read timed out, see 127.0.0.1:{port}"
    )
    assert "does not answer in time" in _reason_and_hint(f"http://127.0.0.1:{port}", error)


@pytest.mark.timeout(60)  # MLflow's own client would wait 8 times 120 s
def test_a_silent_server_is_given_up(listener):
    with pytest.raises(TrackingError, match="does not answer in time"):
        check_server(f"http://127.0.0.1:{listener}", seconds=1)
    assert "MLFLOW_HTTP_REQUEST_TIMEOUT" not in os.environ


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (403, "--allowed-hosts 127.0.0.1"),
        (401, "MLFLOW_TRACKING_USERNAME"),
        (404, "address of an MLflow server"),
    ],
)
def test_a_server_that_refuses_gives_the_hint(status, hint):
    server = _answering(status)
    try:
        with pytest.raises(TrackingError, match=hint):
            check_server(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be taken for one" * 50)
    with pytest.raises(TrackingError, match="cannot be written"):
        check_server(f"sqlite:///{path}")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrackingError, match="cannot be written"):
        check_server(f"sqlite:///{tmp_path}/file/mlflow.db")


def test_a_new_database_is_made_with_its_folder(tmp_path, caplog):
    uri = check_server(f"sqlite:///{tmp_path}/new/mlflow.db")
    assert Path(tmp_path, "new", "mlflow.db").stat().st_size > 0
    assert check_server(uri) == uri
    assert not [record for record in caplog.records if record.name.startswith("alembic")]


PROGRAM = """
import sys
from raykd.tracking import database
from raykd.tracking.server import check_server
database.MIGRATION_SECONDS = 1e6
print("ready", flush=True)
sys.stdin.readline()
check_server(sys.argv[1])
"""
KILLED = """
import os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from raykd.tracking.server import check_server
made = 0

@event.listens_for(Engine, "after_cursor_execute")
def count(connection, cursor, statement, parameters, context, many):
    global made
    made += "CREATE TABLE" in statement.upper()
    if made == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

check_server(sys.argv[1])
"""
"""Is killed when it has made so many tables."""


@pytest.mark.slow
def test_processes_that_make_the_tables_of_one_new_database_at_once_do_not_destroy_them(tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    command, pipe = [sys.executable, "-c", PROGRAM, uri], subprocess.PIPE
    racing = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
    for process in racing:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in racing:
        assert process.stdin is not None
        process.stdin.close()
    errors = [process.stderr.read() for process in racing if process.stderr is not None]
    for process in racing:
        process.wait()
    assert [process.returncode for process in racing] == [0] * 3, errors
    check_server(uri)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mlflow.db"]


@pytest.mark.parametrize("tables", [5, 20])
@pytest.mark.slow
def test_a_process_that_is_killed_while_it_makes_the_tables_leaves_nothing_in_the_way(tables, tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    killed = subprocess.run([sys.executable, "-c", KILLED, uri, str(tables)])
    assert killed.returncode == -signal.SIGKILL
    check_server(uri)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mlflow.db"]
