"""Reports of workers reach the driver late or not at all, and never delay the work."""

from __future__ import annotations

import json
import threading

from raykd.cluster import progress_channel as module
from raykd.cluster.progress_channel import Inbox, Reports, received, reported
from raykd.progress import listen_to_progress, report_progress
from tests.patience import until


def test_the_newest_report_is_sent_and_those_that_it_replaces_are_not():
    sent: list[list] = []
    first, go_on, last = threading.Event(), threading.Event(), threading.Event()

    def send(text: str) -> None:
        sent.append(json.loads(text))
        first.set()
        assert go_on.wait(), "the store is slow"
        if sent[-1][1] == 0.75:
            last.set()

    reports = Reports("run-1", send, every_s=0.0)
    with reports.sent(), listen_to_progress(reports.hear):
        report_progress(0.0, "loading")
        assert first.wait()
        # The work goes on while the first report is still being sent.
        for step in range(1, 1000):
            report_progress(step / 2000, "epoch 1/2")
        report_progress(0.75, "epoch 2/2")
        report_progress(None, "epoch 2/2, scoring dev")
        go_on.set()
        assert last.wait()
    assert sent == [["run-1", 0.0, "loading", 0.0], ["run-1", 0.75, "epoch 2/2, scoring dev", 0.0]]


def test_where_a_run_went_on_is_said_with_each_report():
    sent: list[list] = []
    heard, repeated = threading.Event(), threading.Event()

    def send(text: str) -> None:
        sent.append(json.loads(text))
        (heard if len(sent) == 1 else repeated).set()

    reports = Reports("run-1", send, every_s=0.0)
    with reports.sent():
        reports.hear(None, "loading")
        assert heard.wait()
        reports.hear(0.5, "epoch 2/4")
        reports.hear(0.75, "epoch 3/4")
        assert repeated.wait()
    assert sent[0] == ["run-1", None, "loading", 0.0]
    assert sent[1][0] == "run-1"
    assert sent[1][3] == 0.5


def test_a_store_out_of_reach_is_tried_again_and_the_work_does_not_hear_of_it():
    attempts = list[float]()

    def send(text: str) -> None:
        attempts.append(json.loads(text)[1])
        raise ConnectionError("Ray's head does not answer")

    reports = Reports("run-1", send, every_s=0.0)
    with reports.sent():
        reports.hear(0.25, "")
        until(lambda: reports.hear(0.5, "") or len(attempts) > 1)
    assert attempts[:2] in ([0.25, 0.5], [0.5, 0.5])


def test_a_report_is_passed_on_once():
    below = {"job/worker-1": json.dumps(["run-1", 0.5, "epoch 1", 0.0])}
    heard: list[tuple] = []
    inbox = Inbox(lambda: dict(below), lambda *report: heard.append(report))
    inbox.look()
    inbox.look()
    assert heard == [("run-1", 0.5, "epoch 1", 0.0)]
    # The worker died, and another one goes on from a checkpoint.
    below["job/worker-2"] = json.dumps(["run-1", 0.4, "epoch 1", 0.4])
    inbox.look()
    below["job/worker-2"] = json.dumps(["run-1", 0.6, "epoch 2", 0.4])
    inbox.look()
    assert heard[1:] == [("run-1", 0.4, "epoch 1", 0.4), ("run-1", 0.6, "epoch 2", 0.4)]


def test_without_ray_nothing_is_sent(monkeypatch):
    monkeypatch.setattr(module.ray, "is_initialized", lambda: False)
    heard: list[tuple] = []
    with received(lambda *report: heard.append(report)), reported("run-1"):
        report_progress(0.5)
    assert heard == []


def test_a_worker_of_ray_is_heard_while_it_works(ray_cluster):
    import ray

    heard, enough = list[tuple](), threading.Event()

    def hear(*report):
        if report[0] == "run-1":  # the cluster has what workers of other tests left
            heard.append(report)
            enough.set()

    @ray.remote(num_cpus=0)
    class Gate:
        def __init__(self):
            self.opened = False

        def open(self):
            self.opened = True

        def is_open(self):
            return self.opened

    @ray.remote(num_cpus=0.1)
    def work(gate):
        import time

        with reported("run-1"):
            report_progress(0.25, "epoch 1/4")
            while not ray.get(gate.is_open.remote()):
                time.sleep(0.1)

    gate = Gate.remote()
    with received(hear):
        task = work.remote(gate)
        try:
            assert enough.wait()
        finally:
            ray.get(gate.open.remote())
            ray.get(task)
    assert heard == [("run-1", 0.25, "epoch 1/4", 0.25)]
    assert module._all_below(f"{ray.get_runtime_context().get_job_id()}/") == {}
