"""Records reach a server that goes away and comes back."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from raykd.figures.trial import Trial
from raykd.tracking import publisher
from tests.long import of_make_chaos
from tests.mlflow_server import MlflowServer
from tests.patience import until
from tests.tracking.swept import Swept


class Unreliable:
    """A client that fails so many times; notes how MLflow's client would ask."""

    def __init__(self, client: MlflowClient, fails: int):
        self.client, self.fails, self.tries, self.how = client, fails, 0, set[str]()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.how.add(os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"])
            self.tries += self.fails >= 0
            self.fails -= 1
            if self.fails >= 0:
                raise ConnectionError("the server is away")
            return getattr(self.client, name)(*args, **kwargs)

        return call


@pytest.fixture
def ended(
    empty_mlflow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Unreliable, Swept]]:
    """Run the end of a sweep with a client that fails so often. Only its pauses take time."""

    def end(fails: int, *, patient: bool) -> tuple[Unreliable, Swept]:
        swept, paused = Swept(f"sqlite:///{shutil.copy(empty_mlflow, tmp_path)}", "ended"), list[float]()
        clock = SimpleNamespace(monotonic=lambda: sum(paused), sleep=paused.append)
        monkeypatch.setattr(publisher, "time", clock)
        swept.shown.client = client = Unreliable(swept.shown.client, fails)
        swept.close("COMPLETE" if patient else "FAILED")
        return client, swept

    return end


def test_the_end_of_a_sweep_tries_again_for_a_while(ended):
    client, swept = ended(3, patient=True)
    assert (client.tries, swept.publisher.trouble, swept.publisher.missing()) == (4, "", ())
    assert client.how == {"0"}, (
        "one request each time; MLflow's client would repeat it for a quarter of an hour"
    )


def test_what_is_interrupted_does_not_wait_for_a_server(ended):
    client, swept = ended(3, patient=False)
    assert (client.tries, swept.publisher.trouble) == (1, "the server is away")


def test_a_server_that_stays_away_is_left_after_a_while(ended):
    client, swept = ended(10**6, patient=True)
    assert client.tries == 1 + publisher.LAST_S / publisher.LAST_PAUSE_S
    assert swept.publisher.trouble == "the server is away"


@of_make_chaos
def test_a_server_that_hangs_and_one_that_is_killed_show_everything_once_they_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(publisher, "LAST_S", 10_000.0)  # a server may start slowly
    server, warnings = MlflowServer(tmp_path), list[str]()
    server.start()
    try:
        swept = Swept(f"http://{server.address}", "away", sweep_id="1", warn=warnings.append, seconds=0.1)
        server.hang()
        swept.record(Trial(1, "RUNNING"))
        until(lambda: len(warnings) == 1)
        for epoch in range(3):
            swept.pages.log_epoch(1, epoch, {"loss": float(epoch)})
        swept.record(Trial(1, "COMPLETE"))
        assert "cannot be written, the sweep goes on without it" in warnings[0]
        server.go_on()
        until(lambda: len(warnings) == 2)
        assert "answers again" in warnings[1]
        until(lambda: not swept.publisher.missing())

        server.stop()
        swept.record(Trial(2, "COMPLETE"))
        until(lambda: len(warnings) == 3)
        closing = threading.Thread(target=lambda: warnings.extend(swept.close()))
        closing.start()
        server.start()
        closing.join()
        assert "answers again" in warnings[3]
        assert len(warnings) == 4, "the end has nothing to say"
        client = MlflowClient(f"http://{server.address}")
        experiment = client.get_experiment_by_name("away")
        assert experiment is not None
        runs = {
            run.data.tags.get("raykd.trial"): run for run in client.search_runs([experiment.experiment_id])
        }
        assert set(runs) == {None, "1/1", "1/2"}
        assert {run.info.status for run in runs.values()} == {"FINISHED"}
        losses = client.get_metric_history(runs["1/1"].info.run_id, "epoch/loss")
        assert [(point.step, point.value) for point in losses] == [(0, 0.0), (1, 1.0), (2, 2.0)]
    finally:
        server.stop()
