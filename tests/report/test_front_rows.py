"""The front, and what stands beside its students."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from raykd.figures.trial import Teacher, Trial, teacher_score
from raykd.report.front_page import front_html
from raykd.report.front_rows import front_rows
from raykd.report.terminal_table import front_markdown, front_table
from raykd.report.trials_file import trials_table
from tests.scores import score, scores


def trial(number, dev, ms, parameters, *, test=None, role="search", state="COMPLETE", shape=None):
    settings = {"student.embedding_dim": shape if shape is not None else number}
    cost = {"latency_ms": ms, "parameters": parameters}
    return Trial(
        number, state, settings, role, "gold" if role == "baseline" else "structural", scores=scores(dev, test),
        cost={name: value for name, value in cost.items() if value is not None},
    )  # fmt: skip


def test_each_objective_alone_keeps_a_student_on_the_front():
    trials = [trial(0, 0.9, 9, 900), trial(1, 0.8, 1, 500), trial(2, 0.7, 5, 100), trial(3, 0.69, 5, 100)]
    assert {row.trial.number for row in front_rows(trials)} == {0, 1, 2}


def test_rows_go_from_fast_to_slow_and_know_what_they_keep_and_gain():
    twin = trial(7, 0.75, 1, 500, role="baseline", shape=1, test=0.7)
    worse = trial(8, 0.6, 1, 500, role="baseline", shape=1)
    failed = trial(9, 0.99, 1, 500, role="baseline", shape=1, state="FAILED")
    trials = [trial(0, 0.9, 9, 900), trial(1, 0.8, 1, 500, test=0.72), worse, twin, failed]
    fast, slow = front_rows(trials, [Teacher("t", scores(1.0))])
    assert (fast.trial.number, slow.trial.number) == (1, 0)
    assert fast.baseline is twin
    assert fast.teacher_share == pytest.approx(0.8)
    assert fast.gain("dev") == pytest.approx(0.05)
    assert fast.gain("test") == pytest.approx(0.02)
    assert slow.baseline is None
    assert slow.gain("dev") is None


def test_what_is_lost_against_the_teacher_on_source_and_on_target_languages():
    def own_of(test, target):
        return scores(0.5, score(test), score(target, languages={"xx": target}))

    student, teacher = (
        replace(trial(0, 0.5, 1, 10), scores=own_of(0.72, 0.33)),
        Teacher("t", own_of(0.80, 0.60)),
    )
    (row,) = front_rows([student], [teacher])
    assert row.change("source") == pytest.approx(-0.1)
    assert row.change("target") == pytest.approx(-0.45)
    (alone,) = front_rows([student])
    assert alone.change("source") is None
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(front_table([student], [teacher]))
    output = " ".join(console.export_text().split())
    assert "source vs teacher" in output
    assert "-10.0 %" in output
    assert "-45.0 %" in output
    page = front_html([student], [teacher])
    assert "target vs teacher" in page
    assert "-45.0 %" in page


def test_no_trials_no_front():
    assert front_rows([], []) == []


def test_a_sweep_may_compete_in_fewer_objectives():
    trials = [trial(0, 0.9, 9, 900), trial(1, 0.8, 1, 500), trial(2, 0.7, 5, 100)]
    two = {"f1": "max", "latency_ms": "min"}
    assert [row.trial.number for row in front_rows(trials, objectives=two)] == [1, 0]
    assert "2 of 3 students on the front" in front_html(trials, objectives=two)
    assert "2 of 3 students on the front" in front_markdown(trials, objectives=two)
    assert len(front_table(trials, objectives=two).rows) == 2
    assert trials_table(trials, objectives=two)["on_front"].to_pylist() == [True, True, False]


def test_the_reference_is_the_mean_over_languages_of_monolingual_teachers():
    pair = [
        Teacher("a", scores(score(0.9, languages={"en": 0.9}))),
        Teacher("b", scores(score(0.7, languages={"de": 0.7}))),
    ]
    assert teacher_score(pair) == pytest.approx(0.8)
    assert teacher_score([Teacher("a", scores(0.9)), Teacher("b", scores(0.7))]) == 0.9
    assert teacher_score(pair, "test") is None
    assert teacher_score([]) is None


def test_a_perplexity_is_no_percentage():
    """It stands beside the score of language models, by language too."""

    def read(value):
        score_of_model = score(0.02, languages={"en": 0.02})
        return replace(
            score_of_model, beside={"perplexity": score(value, value + 2, languages={"en": value + 1})}
        )

    student = replace(
        trial(0, 0.02, 1, 10), scores=scores(read(976.62), read(1020.39)),
        score_name="mlm_score", score_label="MLM score",
    )  # fmt: skip
    page = front_html([student])
    table = page[page.index("<table") : page.index("</table>")]
    cells = dict(
        zip(*(re.findall(rf"<{kind}\b[^>]*>(.*?)</{kind}>", table) for kind in ("th", "td")), strict=True)
    )
    assert cells["dev perplexity"] == "978", "the mean of its seeds"
    assert cells["test perplexity"] == "1021"
    assert cells["en perplexity"] == "1021"
    console = Console(width=300, file=io.StringIO())
    console.print(front_table([student]))
    cells = console.file.getvalue().split()  # type: ignore[attr-defined]
    assert cells.count("978") == 2, "the mean, and that of the language"
    assert not [cell for cell in cells if cell.startswith("977")]
