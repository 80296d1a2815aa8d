"""Notes on missing or uncertain costs stand beside the costs."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from raykd.cli import front
from raykd.figures.table import OBJECTIVES
from raykd.figures.trial import Teacher, Trial
from raykd.report.cost_notes import cost_notes
from raykd.report.findings import judge
from raykd.report.front_page import front_html
from raykd.report.student_facts import student_facts
from raykd.report.terminal_table import front_markdown, front_table
from raykd.tracking.pages import trial_tags
from tests.scores import score, scores

NOTE = "no speed-up and no compression: the teacher has no export (it is an ensemble)"
SCORES = scores(score(0.8), score(0.8))
STUDENTS = [
    Trial(n, "COMPLETE", scores=SCORES, cost={"latency_ms": 1.0, "parameters": 9}, cost_notes=(NOTE,))
    for n in (3, 7)
]
TEACHER = Teacher(
    "t", SCORES, {"parameters": 90}, cost_notes=("timed while other programs used 60% of the machine",)
)
WANTED = ["the teacher t: timed while other programs used 60% of the machine", f"#03, #07: {NOTE}"]


def test_each_note_is_said_once_with_all_that_it_is_about():
    assert cost_notes(STUDENTS, [TEACHER]) == WANTED
    assert cost_notes([replace(student, cost_notes=()) for student in STUDENTS], []) == []


def test_it_is_on_the_page_in_markdown_in_its_box_and_in_mlflow():
    assert all(note in front_markdown(STUDENTS, [TEACHER]) for note in WANTED)
    page = front_html(STUDENTS, [TEACHER])
    assert all(f"<li>{note}</li>" in page for note in WANTED)
    assert "no speed-up and no compression" in " ".join(student_facts(STUDENTS[0]))
    assert trial_tags(STUDENTS[0])["cost_notes"] == NOTE


def test_it_is_below_the_table_in_which_the_figure_is_empty(capsys):
    judged = judge(STUDENTS, [TEACHER])
    front.show_front(STUDENTS, [TEACHER], judged, sweep="s", objectives=OBJECTIVES)
    output = capsys.readouterr().out
    assert all(note in output for note in WANTED)


def test_what_is_searched_for_has_a_column():
    student = replace(STUDENTS[0], cost={"latency_ms_int8": 0.25, "latency_ms": 1.0})
    console = Console(width=200, file=io.StringIO())
    console.print(front_table([student], [], objectives={"f1": "max", "latency_ms_int8": "min"}))
    assert "latency_ms_int8" in console.file.getvalue()  # type: ignore[attr-defined]
    page = front_html([student], [], objectives={"f1": "max", "latency_ms_int8": "min"})
    assert "<th class=''>latency_ms_int8</th>" in page
    assert "latency, ms in 8 bits (one thread)" in page
