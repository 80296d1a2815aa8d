"""The monitor: what phases report is counted, shown to those that watch, and kept in the store."""

import threading
from dataclasses import replace

import pytest

from raykd.cluster.listener import RunEpoch, Unit, unit_here
from raykd.errors import StoreError
from raykd.figures.trial import Trial
from raykd.progress import report_progress
from raykd.storage.store import Storage
from raykd.sweep import progress_monitor as module
from raykd.sweep.progress_monitor import Monitor, status_kept
from raykd.sweep.records import SweepRecords
from raykd.sweep.status import Status
from tests.patience import until
from tests.report.fake_sweep import fake_trials


class Seen:
    """A view recording all calls."""

    def __init__(self):
        self.lines = []

    def __getattr__(self, name):
        return lambda event: self.lines.append((name, event if isinstance(event, str) else event.name))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def monitor(clock):
    return Monitor(Seen(), clock=clock)


def epoch(job: str, number: int, *, name: str = "", dev: float = 0.5, tokens: int = 100, speed: float = 10.0):
    return RunEpoch(job, name or f"#{job}", "top_1 · E8", number, 12, dev, "F1", tokens, speed)


def test_a_phase_is_as_long_as_its_pace_says(monitor, clock):
    monitor.begin("trials", 40, done_before=10)
    clock.now = 60.0
    assert monitor.status().phases[0].left_s is None, "nothing was done yet"
    monitor.advance("trials", 5)
    (phase,) = monitor.status().phases
    assert (phase.done, phase.found, phase.seconds, phase.left_s) == (15, 10, 60.0, 60 / 5 * 25)
    monitor.end("trials", "all of them")
    clock.now = 1000.0
    (phase,) = monitor.status().phases
    assert (phase.ended, phase.done, phase.seconds, phase.left_s, phase.detail) == (
        True,
        40,
        60.0,
        None,
        "all of them",
    )


def test_the_phase_that_runs_is_the_last_that_has_not_ended(monitor):
    assert monitor.status().phase is None
    monitor.begin("teachers", 1)
    monitor.begin("waiting", 1)
    monitor.end("waiting")
    assert monitor.status().phase.name == "teachers"
    monitor.end("teachers")
    assert monitor.status().phase.name == "waiting"


def test_tokens_add_up_and_speeds_are_of_what_runs(monitor):
    monitor.begin("trials", 4)
    monitor.started(Unit("trials", "1", {"run-1": "#1"}, "top_1 · E8", trains=True))
    monitor.started(Unit("trials", "2", {"run-2": "#2 seed 0", "run-3": "#2 seed 1"}, trains=True))
    monitor.epoch("trials", epoch("1", 1))
    monitor.epoch("trials", epoch("1", 2, speed=30.0))
    monitor.epoch("trials", epoch("2", 1, name="#2 seed 0", speed=5.0))
    monitor.epoch("trials", epoch("2", 4, name="#2 seed 1", speed=7.0))
    status = monitor.status()
    assert (status.epochs, status.tokens, status.tokens_per_second) == (4, 400, 42.0)
    assert [(run.name, run.epoch, run.most) for run in status.running] == [
        ("#1", 2, 12),
        ("#2 seed 1", 4, 12),
    ]
    monitor.ended("2")
    status = monitor.status()
    assert (status.tokens, status.tokens_per_second, len(status.running)) == (400, 30.0, 1)


def test_trials_are_counted_by_role_and_state_each_once(monitor):
    monitor.trial(Trial(0, "RUNNING"))
    monitor.trial(Trial(1, "RUNNING"))
    monitor.trial(Trial(1, "PRUNED"))
    monitor.trial(Trial(2, "COMPLETE", role="baseline"))
    status = monitor.status()
    assert status.trials == {"search": {"RUNNING": 1, "PRUNED": 1}, "baseline": {"COMPLETE": 1}}
    assert status.count("search", "PRUNED") == 1
    assert status.count("confirm", "COMPLETE") == 0


def test_a_job_that_has_not_ended_an_epoch_says_what_it_does(monitor, clock):
    monitor.begin("teachers", 1)
    monitor.started(Unit("teachers", "teacher-1", {"teacher-1": "bert en"}, trains=True))
    assert [(run.name, run.done, run.doing) for run in monitor.status().running] == [("bert en", None, "")]
    monitor.part_progress("teacher-1", 0.25, "epoch 1/3")
    (run,) = monitor.status().running
    assert (run.name, run.epoch, run.done, run.doing) == ("bert en", None, 0.25, "epoch 1/3")
    (phase,) = monitor.status().phases
    assert (phase.done, phase.within, phase.detail) == (0, 0.25, "bert en: epoch 1/3, 25 %")
    assert monitor.view.lines[-1] == ("moved", "teachers")
    monitor.part_progress("teacher-1", None, "epoch 1/3, scoring dev")
    assert monitor.status().running[0].done == 0.25, "what does not say how far it is, is as far as before"
    monitor.ended("teacher-1")
    monitor.part_progress("teacher-1", 0.5, "too late")
    assert monitor.status().running == ()
    assert monitor.status().phases[0].within == 0


def test_work_that_this_process_does_is_heard(monitor):
    monitor.begin("models", 2)
    with unit_here(monitor, "models", "#03"):
        report_progress(0.5, "writing the ONNX files")
        (phase,) = monitor.status().phases
        assert (phase.within, phase.detail) == (0.5, "#03: writing the ONNX files, 50 %")
        assert monitor.status().running == (), "no run"
    monitor.advance("models", detail="#03")
    report_progress(0.75, "nobody listens")
    (phase,) = monitor.status().phases
    assert (phase.done, phase.within, phase.detail) == (1, 0.0, "#03")


def test_the_view_hears_every_few_seconds_although_nothing_happens(monitor, monkeypatch):
    monkeypatch.setattr(module, "EVERY_S", 0.001)
    monitor.begin("teachers", 1)
    with monitor.refresh_view():
        until(lambda: len(monitor.view.lines) >= 3)
    assert monitor.view.lines[1:3] == [("moved", "teachers")] * 2


def test_the_front_has_the_best_on_dev_first(monitor):
    students = [trial for trial in fake_trials() if trial.state == "COMPLETE"][:4]
    monitor.front(students, 0.5)
    status = monitor.status()
    assert (status.hypervolume, status.label) == (0.5, "F1")
    devs = [student.dev for student in status.front]
    assert devs == sorted(devs, reverse=True)
    assert len(devs) == 4


def test_the_budget_runs_out_by_itself(monitor, clock):
    assert monitor.status().budget_s is None
    monitor.budget(seconds=100.0, gpu_hours=2.0)
    clock.now = 30.0
    assert (monitor.status().budget_s, monitor.status().budget_gpu_hours) == (70.0, 2.0)
    clock.now = 300.0
    assert monitor.status().budget_s == 0.0


def test_what_is_shown_is_said_to_the_view_without_passwords(monitor):
    monitor.begin("trials", 2)
    monitor.detail("trials", "reading s3://key:secret@bucket")
    monitor.note("a note")
    monitor.warn("a warning")
    monitor.end("trials")
    assert [kind for kind, _ in monitor.view.lines] == ["begin", "moved", "note", "warn", "end"]
    monitor.begin("models", 1)
    monitor.detail("models", "postgresql://me:secret@host/db")
    assert "secret" not in str(monitor.status().to_plain())


def test_a_status_is_read_back_as_it_was_written(monitor):
    monitor.begin("trials", 40)
    monitor.started(Unit("trials", "1", {"run-1": "#1"}, trains=True))
    monitor.epoch("trials", epoch("1", 1))
    monitor.part_progress("run-1", 0.25, "epoch 2/12")
    monitor.trial(Trial(1, "RUNNING"))
    monitor.front([trial for trial in fake_trials() if trial.state == "COMPLETE"][:2], 0.25)
    status = monitor.status()
    assert Status.from_plain(status.to_plain()) == status


def test_those_that_watch_are_called_while_it_runs_and_at_its_end(monitor, monkeypatch):
    monkeypatch.setattr(module, "EVERY_S", 0.001)
    called, statuses = threading.Event(), []

    def fails(status):
        raise StoreError("somewhere", "out of reach", "")

    def looks(status):
        statuses.append(status)
        called.set()

    with monitor.call_watchers(), monitor.add_watcher(fails), monitor.add_watcher(looks):
        # One that fails does not keep the others from looking.
        assert called.wait()
    number = len(statuses)
    monitor._show()
    assert len(statuses) == number, "it watches no more"


@pytest.fixture
def records(tmp_path):
    return SweepRecords(Storage(str(tmp_path)), "sweep")


def test_the_status_is_in_the_store_every_few_seconds_and_says_how_it_ended(monitor, clock, records):
    assert records.status() is None
    with status_kept(monitor, records):
        monitor.begin("trials", 3)
        monitor._show()
        clock.now = 5.0
        monitor.advance("trials")
        monitor._show()
        assert (records.status().phases[0].done, records.status().end) == (0, ""), "a bucket counts requests"
        clock.now = 10.0
        monitor._show()
        assert records.status().phases[0].done == 1
    assert records.status().end == "ended"


@pytest.mark.parametrize(
    ("error", "end"),
    [(KeyboardInterrupt(), "interrupted"), (StoreError("s3://a:secret@b", "is gone", "wait"), "failed: ")],
)
def test_a_status_says_why_a_sweep_ended(monitor, records, error, end):
    with pytest.raises(type(error)), status_kept(monitor, records):
        raise error
    status = records.status()
    assert status.end.startswith(end)
    assert "secret" not in status.end


def test_a_status_of_another_version_is_refused(records, monitor):
    records.save_status(monitor.status())
    plain = {**monitor.status().to_plain(), "moon": "full"}
    records.folder.write_json("status.json", plain)
    with pytest.raises(StoreError):
        records.status()
    records.save_status(replace(monitor.status(), end="ended"))
    assert records.status().end == "ended"
