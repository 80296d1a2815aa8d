"""`raykd watch`: from the store alone, what a driver wrote there, and whether there still is one."""

import os

import pytest

from raykd.cli import console as consoles
from raykd.cli import watch
from raykd.cli.console import LogView
from raykd.storage.store import Storage
from raykd.sweep import lease
from raykd.sweep.lease import hold_lease
from raykd.sweep.progress_monitor import Monitor, status_kept
from raykd.sweep.records import SweepRecords
from tests.sweep.in_process import call, code_of


@pytest.fixture
def records(tmp_path):
    records = SweepRecords(Storage(str(tmp_path)), "ner")
    records.open(sweep_id="sweep-0", text="{}", resume=False)
    return records


def monitor() -> Monitor:
    watched = Monitor(LogView())
    watched.begin("trials", 40)
    watched.advance("trials", 12)
    return watched


def test_a_sweep_that_runs(records, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lease, "SETTLE_S", 0.0)
    # A lease of this process itself is one that it could not give back.
    monkeypatch.setattr(lease, "_holder_lives", lambda holder: True)
    with hold_lease(records.folder):
        records.save_status(monitor().status())
        capsys.readouterr()
        call("watch", "ner", "--store", str(tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("trials: 12 of 40")
    assert f"process {os.getpid()} on " in lines[-1]
    assert "works on it" in lines[-1]


def test_a_sweep_that_ended_and_one_whose_driver_was_killed(records, tmp_path, capsys):
    watched = monitor()
    records.save_status(watched.status())
    capsys.readouterr()
    call("watch", "ner", "--store", str(tmp_path))
    assert "its driver" in capsys.readouterr().out
    with status_kept(watched, records):
        pass
    call("watch", "ner", "--store", str(tmp_path))
    assert "watch: ner: ended (" in capsys.readouterr().out


def test_a_sweep_that_says_nothing_yet(records, tmp_path, capsys):
    assert code_of("watch", "ner", "--store", str(tmp_path)) != 0
    assert "has no progress in the store yet" in capsys.readouterr().err


def test_on_a_terminal_it_is_drawn_until_the_sweep_ends(records, tmp_path, monkeypatch, capsys):
    watched, looks = monitor(), []
    monkeypatch.setattr(type(consoles.stdout), "is_terminal", True)
    monkeypatch.setattr(watch, "_has_driver", lambda records: True)

    def sleep(seconds):
        looks.append(seconds)
        watched.advance("trials")
        records.save_status(watched.status())
        if len(looks) == 2:
            with status_kept(watched, records):
                pass

    monkeypatch.setattr(watch.time, "sleep", sleep)
    records.save_status(watched.status())
    call("watch", "ner", "--store", str(tmp_path))
    out = capsys.readouterr().out
    assert len(looks) == 2
    assert "14/40" in out, "the last drawing stays"
    assert out.rstrip().splitlines()[-2].startswith("watch: ner: ended") or "watch: ner: ended" in out
