"""The display of a sweep on a terminal."""

import io
from dataclasses import replace
from itertools import pairwise

import pytest
from rich.console import Console

from raykd.cli import console as module
from raykd.cli.console import LogView, can_draw
from raykd.cli.live import StatusView, status_lines
from raykd.sweep.progress_monitor import EVERY_S
from raykd.sweep.status import PhaseStatus, RunStatus, Status, StudentStatus

STATUS = Status(
    seconds=754.0,
    phases=(
        PhaseStatus("teachers", 4, 4, 0, 131.0, ended=True, detail="4 trained, 0 found in the store"),
        PhaseStatus(
            "trials",
            40,
            12,
            2,
            600.0,
            detail="#14: epoch 3, dev F1 81.2, top_wk k=3 · E32 H64 crf",
            within=1.5,
            left_s=1680.0,
        ),
    ),
    running=tuple(RunStatus(f"#{n}", "top_wk k=3 T=2 · E32 H64 crf", 3, 12, 0.812) for n in range(14, 17)),
    trials={"search": {"COMPLETE": 9, "PRUNED": 2, "FAILED": 1, "RUNNING": 3}},
    front=tuple(StudentStatus(f"#{n:02d} posterior · E16", 0.84 - n / 100, 0.82, 210_000) for n in range(5)),
    hypervolume=0.6123,
    label="F1",
    tokens=1_234_567,
    tokens_per_second=21_300.0,
    budget_s=720.0,
)


def drawn(status: Status, *, width: int = 80, height: int = 24) -> list[str]:
    out = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    out.print(StatusView(lambda: status))
    return [line.rstrip() for line in out.file.getvalue().splitlines()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [60, 80, 160])
@pytest.mark.parametrize("height", [12, 24, 50])
def test_it_fits_any_terminal(width, height):
    many = replace(STATUS, running=STATUS.running * 20, front=STATUS.front * 20)
    lines = drawn(many, width=width, height=height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "12/40" in text
    assert "of 60" in text, "it says what has no room"
    assert "of 100" in text


def test_eighty_columns_show_what_an_operator_asks_for():
    text = "\n".join(drawn(STATUS))
    for part in (
        "✓ teachers", "12/40", "0:10:00", "28 min left", "9 complete", "2 stopped early", "1 failed", "3 running",
        "hypervolume 0.6123", "13 min gone", "12 min left", "21.3k tokens/s", "1.23M tokens in all", "3/12", "81.2",
        "#00 posterior", "84.0", "0.82", "210k",
    ):  # fmt: skip
        assert part in text, part


def test_rows_that_one_table_leaves_go_to_the_other():
    few = replace(STATUS, running=STATUS.running[:1], front=STATUS.front * 4)
    # 2 phases, 2 lines of figures, 2 headings, the cursor.
    assert sum("posterior" in line for line in drawn(few, height=14)) == 14 - 7 - 1
    assert sum("top_wk" in line for line in drawn(few, height=14)) == 1


def test_before_the_search_there_are_phases_alone():
    lines = drawn(Status(phases=STATUS.phases[:1]))
    assert len(lines) == 1


def test_the_same_is_said_in_lines():
    lines = list(status_lines(STATUS))
    assert lines[0] == "teachers: 4 of 4 (4 trained, 0 found in the store)"
    assert "running #14 top_wk k=3 T=2 · E32 H64 crf: epoch 3/12, dev F1 81.2" in lines
    assert "front #00 posterior · E16: dev F1 84.0, 0.82 ms, 210k parameters" in lines


def test_a_log_has_a_line_every_few_seconds(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    lines, phase = LogView(), STATUS.phases[1]
    lines.begin(phase)
    for now[0] in (1.0, 4.9, 5.0, 6.0):
        lines.moved(replace(phase, done=int(now[0]), detail="#14"))
    lines.end(replace(phase, detail="9 complete"))
    assert capsys.readouterr().out.splitlines() == [
        "trials: 12 of 40 done",
        "trials: 5 of 40, about 28 min left (#14)",
        "trials: done, 9 complete",
    ]


@pytest.mark.parametrize("moves_at", [(), (3.0,), (4.9,), (4.9, 9.8, 14.7)])
def test_a_log_is_never_silent_for_more_than_ten_seconds(monkeypatch, capsys, moves_at):
    """The monitor lets the view speak every few seconds, and phases move whenever they like."""
    now, printed_at = [0.0], [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    lines, phase = (
        LogView(),
        PhaseStatus("teachers", 1, 0, 0, 60.0, detail="bert en: epoch 1/3, scoring dev, 20 %"),
    )
    lines.begin(phase)
    capsys.readouterr()
    for now[0] in sorted([*moves_at, *(EVERY_S * (1 + tick) for tick in range(8))]):
        lines.moved(phase)
        if printed := capsys.readouterr().out:
            assert printed == "teachers: 0 of 1, 60 s gone (bert en: epoch 1/3, scoring dev, 20 %)\n"
            printed_at.append(now[0])
    assert len(printed_at) > 4
    assert max(after - before for before, after in pairwise(printed_at)) <= 10.0


def test_between_two_phases_a_log_says_that_the_next_one_comes(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    lines = LogView()
    lines.end(STATUS.phases[0])
    now[0] = 7.0
    lines.moved(STATUS.phases[0])
    assert capsys.readouterr().out.splitlines() == [
        "teachers: done, 4 trained, 0 found in the store",
        "teachers: done, the next step is being prepared",
    ]


def test_a_single_teacher_shows_its_epochs_and_the_time():
    phase = PhaseStatus(
        "teachers", 1, 0, 0, 252.0, detail="bert en: epoch 2/3, 43 %", within=0.43, left_s=334.0
    )
    status = Status(
        phases=(phase,), running=(RunStatus("bert en", "", 1, 3, 0.7, 0.43, "epoch 2/3"),), label="F1"
    )
    text = "\n".join(drawn(status))
    for part in ("0/1", "0:04:12", "6 min left", "bert en", "epoch 2/3", "43 %", "70.0"):
        assert part in text, part
    first = replace(status, running=(RunStatus("bert en", "", done=0.05, doing="epoch 1/3"),))
    assert "epoch 1/3" in "\n".join(drawn(first)), "before an epoch has ended"
    assert "running bert en: epoch 1/3, 5 %" in list(status_lines(first))
    assert "teachers: 0 of 1, about 6 min left (bert en: epoch 2/3, 43 %)" in list(status_lines(status))


@pytest.mark.parametrize(
    ("terminal", "dumb", "plain", "drawn"),
    [
        (True, False, False, True),
        (True, True, False, False),
        (True, False, True, False),
        (False, False, False, False),
    ],
)
def test_lines_where_nothing_can_be_drawn(monkeypatch, terminal, dumb, plain, drawn):
    monkeypatch.setattr(type(module.stdout), "is_terminal", terminal)
    monkeypatch.setattr(type(module.stdout), "is_dumb_terminal", dumb)
    assert can_draw(plain=plain) is drawn
