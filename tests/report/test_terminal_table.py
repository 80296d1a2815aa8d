"""The front in the terminal and in Markdown."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from raykd.figures.table import FIGURES
from raykd.figures.trial import Trial
from raykd.report.findings import judge
from raykd.report.front_rows import front_rows
from raykd.report.labels_alone import GOOD_ENOUGH
from raykd.report.readable_numbers import (
    count,
    gain,
    in_words,
    milliseconds,
    percent,
    significant_digits,
    size,
    spread,
    tell_apart,
    times,
)
from raykd.report.terminal_table import front_markdown, front_table
from tests.report.fake_sweep import TEACHER, fake_trials, with_targets
from tests.scores import scores


def lines(renderable, width):
    """The rendered lines that hold anything."""
    console = Console(width=width, file=io.StringIO(), legacy_windows=False)
    console.print(renderable)
    return [line for line in console.file.getvalue().splitlines() if line.strip()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160, 200])
def test_no_cell_is_cut_at_any_width(width):
    trials = fake_trials()
    output = lines(front_table(trials, [TEACHER], sweep="wikiann"), width)
    assert all(len(line) <= width for line in output)
    assert not any("…" in line for line in output)
    for row in front_rows(trials, [TEACHER]):
        row_lines = [line for line in output if f" {row.trial.shape} " in f" {line} "]
        assert any(percent(row.trial.scores.mean("dev")) in line for line in row_lines)


def test_the_teacher_comes_first_then_each_student_above_its_baseline():
    trials = fake_trials()
    rows = front_rows(trials, [TEACHER])
    output = lines(front_table(trials, [TEACHER], sweep="wikiann"), 200)
    assert "wikiann: 11 of 25 students on the front, 2 stopped early, 1 failed" in output[0]
    assert all(language in output[1].split() for language in ("en", "de", "es", "nl"))
    assert "bilstm_crf × 4" in output[3]
    assert "87.4" in output[3]
    students = output[4:]
    assert len(students) == 2 * len(rows)
    for row, (student_line, twin) in zip(rows, zip(students[::2], students[1::2], strict=True), strict=True):
        assert student_line.split()[0] == f"{row.trial.number:02d}"
        assert gain(row.gain("dev")) in student_line
        assert "└ same, gold only" in twin
        assert percent(row.baseline.scores.mean("dev")) in twin


def test_an_ensemble_stands_above_its_members():
    seed = replace(TEACHER, name="bilstm_crf seed 0 × 4", scores=scores(0.851, 0.85), cost={})
    ensemble = replace(
        TEACHER, name="bilstm_crf (mean of 2) × 4", members=(seed, replace(seed, name="seed 1"))
    )
    output = lines(front_table(fake_trials(), [ensemble], sweep="wikiann"), 200)
    assert "mean of 2" in output[3]
    assert "seed 0" in output[4]
    assert "85.1" in output[4]
    assert "seed 1" in output[5]
    assert len(output) == 2 + len(lines(front_table(fake_trials(), [TEACHER], sweep="wikiann"), 200))


def test_source_and_target_stand_side_by_side_under_the_tasks_own_name():
    trials = [with_targets(trial, test=0.4321, label="accuracy") for trial in fake_trials()]
    teacher = with_targets(TEACHER, test=0.5678, label="accuracy")
    for output in (
        "\n".join(lines(front_table(trials, [teacher], sweep="x"), 240)),
        front_markdown(trials, [teacher], sweep="x"),
    ):
        assert "dev accuracy" in output
        assert "test accuracy, source" in output
        assert "target" in output
        assert "43.2" in output
        assert "56.8" in output
        assert "F1" not in output
    plain = "\n".join(lines(front_table(fake_trials(), [TEACHER]), 240))
    assert "test F1" in plain
    assert "source" not in plain
    assert "target" not in plain


def test_a_sweep_without_students_shows_a_note():
    assert any("no complete student yet" in line for line in lines(front_table([Trial(0, "FAILED")]), 80))


def test_markdown_is_one_rectangular_table():
    text = front_markdown(fake_trials(), [TEACHER], sweep="wikiann")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1
    assert len(rows) == 2 + 1 + 11
    assert len(text) < 6000, "what MLflow takes as a description"


def test_figures_read_with_three_digits():
    assert [count(n) for n in (None, 7, 999, 1000, 45_123, 999_600, 6_412_380)] == [
        *("–", "7", "999", "1.00k", "45.1k", "1.00M", "6.41M")
    ]
    assert [milliseconds(n) for n in (None, 0.8312, 9.996, 99.96, 1234.5)] == [
        "–",
        "0.83",
        "10.0",
        "100",
        "1234",
    ]
    assert [size(n) for n in (None, 7, 1000, 25_649_520)] == ["–", "7 B", "1.00 kB", "25.6 MB"]
    assert (percent(0.85149), spread(0.00312), spread(None), spread(0.0)) == ("85.1", " ±0.3", "", "")
    assert (gain(0.0231), gain(-0.004), gain(None), times(28.22)) == ("+2.3", "-0.4", "–", "28.2×")


@pytest.mark.parametrize("label", ["F1", "aspect F1", "accuracy"])
@pytest.mark.parametrize("targets", [False, True])
@pytest.mark.parametrize("alike", [False, True])
def test_scores_latency_and_size_survive_at_80_columns(label, targets, alike):
    name = "accuracy" if label == "accuracy" else "f1"
    trials = [replace(trial, score_label=label, score_name=name) for trial in fake_trials()]
    teacher = replace(TEACHER, score_label=label, score_name=name)
    if alike:
        trials = [
            replace(trial, settings=trials[0].settings | {"objective.k": trial.number}) for trial in trials
        ]
    if targets:
        trials, teacher = [with_targets(t, test=0.4321, label=label) for t in trials], with_targets(
            TEACHER, test=0.5678, label=label
        )  # fmt: skip
    output = lines(front_table(trials, [teacher], sweep="x"), 80)
    assert all(len(line) <= 80 for line in output)
    heading = " ".join(output[1 : next(i for i, line in enumerate(output) if "──" in line)]).split()
    assert {"dev", "test", "ms", "params"} <= set(heading)
    for row in front_rows(trials, [teacher]):
        scored = row.trial.scores
        expected = [percent(scored.mean("dev")), percent(scored.mean("test"))]
        expected += [milliseconds(row.trial.cost["latency_ms"]), count(row.trial.cost["parameters"])]
        cells = [line.split() for line in output if row.trial.shape in line]
        assert any(set(expected) <= set(line) for line in cells), expected


def test_what_is_just_below_the_bound_is_not_shown_as_the_bound():
    assert tell_apart(0.9496, 0.95) == ("94.96 %", "95.00 %")
    assert tell_apart(0.91, 0.95) == ("91 %", "95 %")
    assert tell_apart(0.95, 0.95) == ("95 %", "95 %")
    assert tell_apart(0.80001, 0.80004, significant_digits) == ("0.80001", "0.80004")
    below = replace(
        next(t for t in fake_trials() if t.state == "COMPLETE"), scores=scores(0.9496 * 0.8, 0.7), cost={
            "latency_ms": 1.0, "parameters": 10,
        },
    )  # fmt: skip
    teacher = replace(TEACHER, scores=scores(0.8, 0.8))
    (row,) = front_rows([below], [teacher])
    assert "keeps 94.96 % of the teacher's F1, below 95.00 %" in judge([below], [teacher]).verdict.text
    assert "94.96 %" in "\n".join(lines(front_table([below], [teacher]), 200))
    assert row.teacher_share < GOOD_ENOUGH


@pytest.mark.parametrize("width", [80, 120])
def test_sources_are_never_shown_without_targets_however_narrow_the_terminal(width):
    trials = [with_targets(trial, test=0.4321, label="F1") for trial in fake_trials()]
    output = lines(front_table(trials, [TEACHER], sweep="wikiann"), width)
    heading = " ".join(output[1 : next(i for i, line in enumerate(output) if "──" in line)]).split()
    assert {"test", "F1,", "source", "target"} <= set(heading)
    assert all(len(line) <= width for line in output)


@pytest.mark.parametrize(
    ("figure", "value", "words"),
    [
        ("speedup", 11.9, "11.9× faster"), ("speedup", 0.68, "1.47× slower"), ("speedup", 1.0, "1.00× faster"),
        ("compression_int8", 0.5, "2.00× larger in 8 bits"), ("latency_ms", 0.83, "0.83 ms"),
    ],
)  # fmt: skip
def test_figures_in_words(figure, value, words):
    assert in_words(next(candidate for candidate in FIGURES if candidate.name == figure), value) == words
