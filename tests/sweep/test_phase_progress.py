"""Progress of a phase and forecast of the remaining time, with a clock that the tests set."""

from __future__ import annotations

import pytest

from raykd.cluster.listener import Unit
from raykd.sweep.phase_progress import EARLIEST_S, EVENT_S, PhaseProgress


def phase(total: int, *, done: int = 0, units: int = 0) -> PhaseProgress:
    """A phase begun at second 0, with a number of begun units."""
    progress = PhaseProgress("trials", total, done, 0.0)
    for number in range(units):
        progress.start(Unit("trials", str(number), {f"run-{number}": f"#{number}"}), 0.0)
    return progress


def test_the_start_of_processes_is_no_work():
    """Four units, two at a time, of 15 seconds each; 13 seconds pass before the first one says something."""
    teachers = phase(4, units=2)
    for second in range(16):
        for part in ("run-0", "run-1"):
            teachers.part_progress(part, second / 15, "", 13.0 + second)
    for key in ("0", "1"):
        teachers.end_unit(key, 28.0)
        teachers.advance(1, key, 28.0)
    assert teachers.left_s(28.0) == pytest.approx(15.0)


@pytest.mark.parametrize("seconds", [[10] * 12, [6, 14, 9, 11, 5, 15, 10, 8, 12, 10, 7, 13]])
def test_after_the_first_unit_a_forecast_is_within_a_factor_of_two(seconds):
    """Trials, two at a time, after 12 seconds of start; each says once a second how far it is."""
    trials, now, running, waiting = phase(len(seconds)), 12.0, dict[int, float](), list(enumerate(seconds))
    forecasts: list[tuple[float, float | None]] = []
    ended = 0
    while ended < len(seconds):
        while len(running) < 2 and waiting:
            number, _ = waiting.pop(0)
            running[number] = now
            trials.start(Unit("trials", str(number), {f"run-{number}": ""}), now)
        for number, began in list(running.items()):
            trials.part_progress(f"run-{number}", min(1.0, (now - began) / seconds[number]), "epoch", now)
            if now - began >= seconds[number]:
                del running[number]
                trials.end_unit(str(number), now)
                trials.advance(1, "", now)
                ended += 1
        if ended:
            forecasts.append((now, trials.left_s(now)))
        now += 1.0
    for at, left_s in forecasts[:-1]:
        really = now - 1.0 - at
        if really > 10:
            assert left_s is not None
            assert really / 2 <= left_s <= really * 2, (at, left_s, really)
    assert forecasts[-1][1] is None


def test_one_unit_has_a_forecast_from_what_it_says_of_itself():
    teachers = phase(1, units=1)
    teachers.part_progress("run-0", 0.0, "loading", 10.0)
    teachers.part_progress("run-0", 0.01, "epoch 1/3", 10.0 + EARLIEST_S / 2)
    assert teachers.left_s(10.0 + EARLIEST_S / 2) is None, "too early to tell"
    teachers.part_progress("run-0", 0.1, "epoch 1/3", 52.0)
    assert teachers.left_s(52.0) == pytest.approx(42.0 * 9)
    status = teachers.status(60.0)
    assert (status.done, status.total, status.within, status.detail) == (0, 1, 0.1, "#0: epoch 1/3, 10 %")
    assert status.seconds == 60.0


def test_it_runs_down_while_nothing_happens_and_never_grows():
    trials = phase(4, units=1)
    trials.part_progress("run-0", 0.0, "", 0.0)
    trials.end_unit("0", 10.0)
    trials.advance(1, "", 10.0)
    forecasts = [trials.left_s(10.0 + second) for second in range(0, 40, 5)]
    assert forecasts == [30.0, 25.0, 20.0, 15.0, 10.0, 5.0, None, None]


def test_a_run_that_goes_on_from_its_checkpoint_was_not_trained_now():
    trials = phase(1, units=1)
    trials.part_progress("run-0", None, "loading", 5.0)
    trials.part_progress("run-0", 0.6, "epoch 7/10", 6.0, first=0.6)
    assert trials.left_s(6.0) is None
    trials.part_progress("run-0", 0.7, "epoch 8/10", 15.0, first=0.6)
    assert trials.left_s(15.0) == pytest.approx(30.0)
    assert trials.status(15.0).detail == "#0: epoch 8/10, 70 %"


def test_units_so_short_that_they_are_heard_late_are_work_all_the_same():
    """Ranges of two seconds, one at a time, each heard once, when half of it is done."""
    ranges, now = phase(20, units=20), 10.0
    ranges.part_progress("run-0", 0.0, "", now)
    for number in range(6):
        ranges.part_progress(f"run-{number}", 0.5, "", now + 1.0)
        now += 2.0
        ranges.end_unit(str(number), now)
        ranges.advance(1, "", now)
    assert ranges.left_s(now) == pytest.approx(2.0 * 14)


def test_what_was_found_in_the_store_says_nothing_of_the_pace():
    trials = phase(6, units=6)
    for key in ("0", "1"):
        trials.end_unit(key, 0.1)
        trials.advance(1, key, 0.1)
    assert trials.left_s(0.2) is None
    trials.part_progress("run-2", 0.0, "", 1.0)
    trials.end_unit("2", 11.0)
    trials.advance(1, "2", 11.0)
    assert trials.left_s(11.0) == pytest.approx(30.0)


def test_units_that_say_nothing_are_counted_from_the_beginning():
    shapes = phase(40, done=10)
    shapes.advance(5, "", 60.0)
    assert shapes.left_s(60.0) == pytest.approx(60 / 5 * 25)


def test_a_unit_may_count_for_many_and_have_many_parts():
    shapes = PhaseProgress("latency", 20, 0, 0.0)
    shapes.start(Unit("latency", "shapes", {"shapes": ""}, counts=16), 0.0)
    shapes.part_progress("shapes", 0.25, "exporting models", 4.0)
    assert shapes.status(4.0).within == 4.0
    seeds = PhaseProgress("trials", 2, 0, 0.0)
    seeds.start(Unit("trials", "4", {"run-a": "#4 seed 0", "run-b": "#4 seed 1"}), 0.0)
    seeds.part_progress("run-b", 0.5, "epoch 2/4", 1.0)
    assert seeds.status(1.0).within == 0.25
    assert seeds.status(1.0).detail == "#4 seed 1: epoch 2/4, 50 %"


def test_an_event_is_shown_for_some_seconds():
    trials = phase(2, units=1)
    trials.part_progress("run-0", 0.5, "epoch 2/4", 1.0)
    trials.say("#0: epoch 1, dev F1 50.0", 2.0)
    trials.part_progress("run-0", 0.6, "epoch 2/4", 3.0)
    assert trials.status(3.0).detail == "#0: epoch 1, dev F1 50.0"
    assert trials.status(2.0 + EVENT_S).detail == "#0: epoch 2/4, 60 %"
    trials.end("1 complete", 9.0)
    assert (trials.status(99.0).detail, trials.status(99.0).seconds) == ("1 complete", 9.0)
    assert trials.left_s(99.0) is None
