"""A sweep sent by `ray job submit` to two nodes with only an S3-compatible store in common."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from mlflow.tracking import MlflowClient

from raykd.storage.store import Storage
from tests.cluster.manifests import tracking_container
from tests.end_to_end.sweeps import sweep_file
from tests.long import of_make_chaos
from tests.node_processes import BIN, TOKEN, free_port, node_processes, process, until_open
from tests.patience import until
from tests.postgresql import PostgresServer
from tests.s3_server import KEYS, S3Server

USER = {"MLFLOW_TRACKING_USERNAME": "raykd", "MLFLOW_TRACKING_PASSWORD": "CANARY-of-the-tracking-server"}
NO_AGENT = "No available agent to submit job"


@contextmanager
def tracking_server(folder: Path, database: PostgresServer, s3: S3Server) -> Iterator[str]:
    """The tracking server as its manifest starts it; its address."""
    container, address = tracking_container(), f"127.0.0.1:{free_port()}"
    secrets = {
        "raykd-tracking": {"DB_PASSWORD": database.password, "MLFLOW_FLASK_SERVER_SECRET_KEY": "0" * 64},
        "raykd-nodes": USER | KEYS,
    }
    environment = {
        "RAYKD_ARTIFACTS": "s3://raykd/mlflow",
        "MLFLOW_S3_ENDPOINT_URL": f"http://{s3.address}",
    } | KEYS
    for variable in container["env"]:
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        value = secrets[reference["name"]][reference["key"]] if reference else variable["value"]
        for name, known_value in environment.items():
            value = value.replace(f"$({name})", known_value)
        environment[variable["name"]] = value.replace(
            "postgres:5432/mlflow", f"{database.address}/postgres"
        ).replace("/run/mlflow", str(folder))
    (script,) = container["args"]
    replacements = {
        "/run/mlflow": str(folder),
        "--port 5000": f"--port {address[10:]}",
        "--workers 2": "--workers 1",
    }
    for original, changed in replacements.items():
        assert original in script
        script = script.replace(original, changed)
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    with process(folder / "mlflow.log", *container["command"], script, **environment, PATH=path):
        yield f"http://{address}"


@contextmanager
def two_nodes(folder: Path, **environment: str) -> Iterator[str]:
    """Two nodes of Ray with a CPU each, a home and a cache of their own; the address of the job server."""
    with node_processes(folder, **environment) as nodes:
        home = nodes.add()
        nodes.add()
        until_open(nodes.jobs_port, home / "ray.log")
        yield f"http://127.0.0.1:{nodes.jobs_port}"


def _healthy(tracking: str) -> bool:
    try:
        urlopen(f"{tracking}/health").close()
    except OSError:
        return False
    return True


@pytest.fixture
def work(tmp_path):
    """A repository with a sweep file: what a user sends as a job's working directory."""
    folder = tmp_path / "work"
    folder.mkdir()
    sweep_file(
        folder,
        corpus={
            "source": "builtin",
            "languages": ["en"],
            "train": 24,
            "dev": 10,
            "test": 10,
            "unlabelled": 8,
        },
        objective={"choice": [{"kind": "structural"}, {"kind": "gold"}]},
        search={"sampler": "grid", "trials": 2},
        tracking={"models": "none"},
        resources={"concurrency": 2, "precompute_workers": 1},
    )
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *identity, *words], cwd=folder, check=True)
    return folder


@of_make_chaos
@pytest.mark.timeout(400)
def test_a_job_on_two_nodes_that_share_nothing_but_a_bucket(tmp_path, work, monkeypatch):
    database = PostgresServer(password="0f" * 16)
    s3 = S3Server(tmp_path)
    store = s3.uri("store")
    try:
        database.start()
        with (
            tracking_server(tmp_path, database, s3) as tracking,
            two_nodes(tmp_path, **TOKEN, **KEYS, **USER) as jobs,
        ):
            until(lambda: _healthy(tracking), output=(tmp_path / "mlflow.log").read_text)
            for name, value in (KEYS | USER).items():
                monkeypatch.setenv(name, value)
            MlflowClient(tracking).search_experiments(max_results=1)  # a server's first answer takes long
            commit = subprocess.run(
                ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"],
                cwd=work, capture_output=True, text=True, check=True,
            ).stdout.strip()  # fmt: skip
            environment = json.dumps({"env_vars": {"RAYKD_GIT_COMMIT": commit}})
            submit = [
                BIN / "ray", "job", "submit", "--address", jobs, "--working-dir", ".",
                "--runtime-env-json", environment, "--", "raykd", "sweep", "tiny.yaml", "--resume",
                "--set", f"store={store}", "--set", f"tracking.uri={tracking}",
            ]  # fmt: skip
            sent: list[subprocess.CompletedProcess[str]] = []

            def taken() -> bool:
                answer = subprocess.run(
                    submit, cwd=work, env=os.environ | TOKEN, capture_output=True, text=True
                )
                sent.append(answer)
                return NO_AGENT not in answer.stdout + answer.stderr

            until(taken)  # the job server answers before its agents do
            output = sent[-1].stdout + sent[-1].stderr
            assert sent[-1].returncode == 0, output
            assert "2 complete" in output
            _shown(tracking, commit)
            assert {"sweeps/tiny/front.html", "sweeps/tiny/teachers.json"} <= set(
                Storage(store).names("sweeps")
            )
            with pytest.raises(HTTPError, match="401"):
                urlopen(f"{tracking}/api/2.0/mlflow/experiments/search?max_results=1")
        for number in (1, 2):
            # What a node trained on came from the bucket; nothing lies in the folder that was sent.
            assert list((tmp_path / f"node{number}/cache").rglob("*.arrow"))
        assert sorted(path.name for path in work.iterdir()) == [".git", "tiny.yaml"]
        for password in (USER["MLFLOW_TRACKING_PASSWORD"], KEYS["AWS_SECRET_ACCESS_KEY"] + "\n"):
            assert password not in output
        assert USER["MLFLOW_TRACKING_PASSWORD"] not in database.dump()
    finally:
        s3.stop()
        database.remove()
        shutil.rmtree(tmp_path / "work")


def _shown(tracking: str, commit: str) -> None:
    client = MlflowClient(tracking)
    experiment = client.get_experiment_by_name("tiny")
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.data.tags.get("role", "trial") for run in runs) == [
        "search",
        "search",
        "sweep",
        "teacher",
    ]
    for run in runs:
        assert run.info.status == "FINISHED"
        assert run.data.tags["git_commit"] == commit
    (parent,) = (run for run in runs if run.data.tags.get("role") == "sweep")
    assert parent.data.tags["mlflow.source.git.commit"] == commit
    # Through the server, which keeps them in the bucket.
    assert "front.html" in {file.path for file in client.list_artifacts(parent.info.run_id)}
