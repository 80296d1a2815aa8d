"""Trials stopped early or failed."""

import re
from dataclasses import replace

import pytest

from raykd.report.front_page import MOST_OPEN, front_html
from raykd.report.stopped_trials import stopped_trials
from tests.report.fake_sweep import TEACHER, fake_trials

WHY = "stopped after epoch 4: of 6 trials that are as far, it dominates none <b>"


def trials():
    return [replace(t, message=WHY) if t.state == "PRUNED" else t for t in fake_trials()]


def epochs(dev: float = 0.7):
    return {
        5: {"a": [{"epoch": 0, "dev": 0.1}, {"epoch": 3, "dev": dev}], "b": [{"epoch": 2, "dev": dev - 0.2}]}
    }


def test_a_stopped_trial_says_when_and_why():
    stopped = {
        stopped_trial.trial.number: stopped_trial for stopped_trial in stopped_trials(trials(), epochs())
    }
    assert {number: stopped_trial.trial.state for number, stopped_trial in stopped.items()} == {
        5: "PRUNED",
        11: "FAILED",
        17: "PRUNED",
    }
    assert (stopped[5].epoch, stopped[5].dev) == (4, pytest.approx(0.6))
    assert stopped[5].reason == "of 6 trials that are as far, it dominates none <b>"
    assert (stopped[17].epoch, stopped[17].dev) == (None, None)
    assert stopped[11].reason == "CUDA out of memory"


def table_of(stopped) -> str:
    return front_html(trials(), [TEACHER], stopped=stopped).partition("<details class='file stopped'")[2]


def test_the_table_has_a_row_for_each():
    table = table_of(stopped_trials(trials(), epochs()))
    assert "2 trials stopped early, 1 trial failed" in table
    rows = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2].partition("</tbody>")[0])
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]
    assert [tuple(row[:4]) for row in cells] == [
        ("05", "4", "60.0", "of 6 trials that are as far, it dominates none &lt;b&gt;"),
        ("11", "–", "–", "failed: CUDA out of memory"),
        ("17", "–", "–", "of 6 trials that are as far, it dominates none &lt;b&gt;"),
    ]
    assert table.startswith(" open>")
    assert table_of(stopped_trials(trials(), epochs()) * MOST_OPEN).startswith(">")
    assert table_of([]) == ""


def test_the_page_of_a_sweep_that_runs_says_so_and_loads_itself_again():
    page = front_html(trials(), [TEACHER], running="12 of 40 trials, <about> 25 min left")
    assert "<b>running: 12 of 40 trials, &lt;about&gt; 25 min left</b>" in page
    assert "So far: " in page
    assert re.search(r"<meta name='raykd-again' content='\d+' data-written='\d{4}-", page)
    ended = front_html(trials(), [TEACHER])
    for mark in ("<meta name='raykd-again'", "http-equiv='refresh'", "<p class='running'", "So far: "):
        assert mark not in ended
