"""Waits of tests: their seconds are those of a quiet machine, and no test counts seconds by itself."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests import patience
from tests.patience import Alarm, Stopwatch, comes, until

TESTS = Path(__file__).parent
SECONDS = re.compile(
    r"timeout=\d|\.wait\(\d|\.join\(\d|wait_for\([^)]*, \d|(?:monotonic|perf_counter)\(\) *[-<>+]"
)
"""A wait by seconds, or a comparison of them."""
ALLOWED = {
    "tests/patience.py",
    "tests/test_patience.py",
    # What a kill or a benchmark of `make chaos` took is printed, and instants of kills are drawn.
    "tests/chaos/faults.py",
    "tests/chaos/nodes.py",
}


class Machine:
    """A clock, and how slow its machine is."""

    def __init__(self) -> None:
        self.now, self.slow = 0.0, 1.0

    def watch(self) -> Stopwatch:
        return Stopwatch(lambda: self.slow, lambda: self.now)


def test_a_busy_machine_is_given_as_much_more_time():
    machine = Machine()
    watch = machine.watch()
    machine.now = 10.0
    assert watch.seconds() == 10.0
    machine.now, machine.slow = 50.0, 8.0
    assert watch.seconds() == 15.0
    machine.now, machine.slow = 50.0 + patience.LOOK_S / 2, 1.0
    assert watch.seconds() == 15.0, "nothing is measured for so short a time"


def test_a_machine_is_never_faster_than_a_quiet_one():
    assert patience.slowness() >= 1.0


def test_an_event_is_waited_for_until_it_comes_or_never_will(monkeypatch):
    machine, looks = Machine(), []
    monkeypatch.setattr(patience, "Stopwatch", machine.watch)

    def event() -> bool:
        looks.append(machine.now)
        machine.now += patience.LOOK_S
        return len(looks) == 4

    assert comes(event, seconds=1000.0)
    assert len(looks) == 4
    assert not comes(event, seconds=20.0)
    with pytest.raises(AssertionError, match="it never came to that:\nwhat it printed"):
        until(event, output=lambda: "what it printed")


def test_what_hangs_is_interrupted_and_what_ended_is_not(monkeypatch):
    monkeypatch.setattr(patience, "LOOK_S", 0.01)
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    try:
        cancelled = Alarm(10_000.0)
        cancelled.cancel()
        Alarm(0.02)
        until(lambda: rung)
        assert rung == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_timeout_of_a_test_is_one_of_a_quiet_machine(request):
    assert request.node._alarm


def test_no_test_counts_seconds_by_itself():
    counted = [
        f"{path.relative_to(TESTS.parent)}:{number}: {line.strip()}"
        for path in sorted(TESTS.rglob("*.py"))
        if str(path.relative_to(TESTS.parent)) not in ALLOWED
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if SECONDS.search(line) and "pytest.mark.timeout" not in line
    ]
    assert not counted, "wait for an event (tests/patience.py), or leave the wait to the test's timeout"
