"""What is recorded reaches a server that goes away, or hangs, once it answers again; nobody waits for it meanwhile."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from raykd.figures.trial import Trial
from raykd.tracking import delivery
from raykd.tracking.delivery import Delivery
from raykd.tracking.record import Record
from raykd.tracking.tracker import Tracker
from tests.long import of_make_chaos
from tests.mlflow_server import MlflowServer
from tests.patience import until


class Unreliable:
    """A writer that fails so many times; notes how MLflow's client would ask."""

    def __init__(self, fails: int):
        self.fails, self.tries, self.how = fails, 0, set[str]()

    def write(self, record: Record) -> None:
        self.tries += 1
        self.how.add(os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"])
        if self.tries <= self.fails:
            raise ConnectionError("the server is away")
        record.metrics.clear()
        record.shown_status = record.status

    def write_model(self, record: Record) -> None:
        return None


def delivered(fails: int, monkeypatch: pytest.MonkeyPatch, *, patient: bool) -> tuple[Unreliable, Delivery]:
    """How a writer that fails so often was used by a delivery that is told to stop at once. Only its pauses take
    time."""
    monkeypatch.setattr(delivery, "reachable", lambda uri: None)
    paused: list[float] = []
    monkeypatch.setattr(delivery, "time", SimpleNamespace(monotonic=lambda: sum(paused), sleep=paused.append))
    writer, record = Unreliable(fails), Record("x", ("tag", "1"), started_ms=0)
    made: Any = Delivery(
        "sqlite:///x", writer, lambda: [record], lock=threading.Lock(), warn=lambda text: None,
        may_write=lambda: True,
    )  # type: ignore[arg-type]  # fmt: skip
    made.start(60.0)
    made.stop(patient=patient)
    return writer, made


def test_the_end_of_a_sweep_tries_again_for_a_while(monkeypatch):
    writer, made = delivered(3, monkeypatch, patient=True)
    assert (writer.tries, made.trouble) == (4, "")
    assert writer.how == {"0"}, (
        "one request each time; MLflow's client would repeat it for a quarter of an hour"
    )


def test_what_is_interrupted_does_not_wait_for_a_server(monkeypatch):
    writer, made = delivered(3, monkeypatch, patient=False)
    assert (writer.tries, made.trouble) == (1, "the server is away")


def test_a_server_that_stays_away_is_left_after_a_while(monkeypatch):
    writer, made = delivered(10**6, monkeypatch, patient=True)
    assert writer.tries == 1 + delivery.LAST_S / delivery.LAST_PAUSE_S
    assert made.trouble == "the server is away"


@of_make_chaos
def test_a_server_that_hangs_and_one_that_is_killed_show_everything_once_they_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(delivery, "LAST_S", 10_000.0)  # a server may start slowly
    server, said = MlflowServer(tmp_path), list[str]()
    server.start()
    try:
        tracker = Tracker.open(
            f"http://{server.address}", sweep="away", sweep_id="1", score_name="f1", score_label="F1",
            warn=said.append, flush_seconds=0.1,
        )  # fmt: skip
        server.hang()
        tracker.start_trial(Trial(1, "RUNNING"))
        until(lambda: len(said) == 1)
        for epoch in range(3):
            tracker.log_epoch(1, epoch, {"loss": float(epoch)})
        tracker.finish_trial(Trial(1, "COMPLETE"))
        assert "cannot be written, the sweep goes on without it" in said[0]
        server.go_on()
        until(lambda: len(said) == 2)
        assert "answers again" in said[1]
        until(lambda: not tracker.missing())

        server.stop()
        tracker.finish_trial(Trial(2, "COMPLETE"))
        until(lambda: len(said) == 3)
        closing = threading.Thread(target=lambda: said.extend(tracker.close()))
        closing.start()
        server.start()
        closing.join()
        assert "answers again" in said[3]
        assert len(said) == 4, "the end has nothing to say"
        client = MlflowClient(f"http://{server.address}")
        experiment = client.get_experiment_by_name("away")
        assert experiment is not None
        runs = {
            run.data.tags.get("raykd.figures.trial"): run
            for run in client.search_runs([experiment.experiment_id])
        }
        assert set(runs) == {None, "1/1", "1/2"}
        assert {run.info.status for run in runs.values()} == {"FINISHED"}
        losses = client.get_metric_history(runs["1/1"].info.run_id, "epoch/loss")
        assert [(each.step, each.value) for each in losses] == [(0, 0.0), (1, 1.0), (2, 2.0)]
    finally:
        server.stop()
