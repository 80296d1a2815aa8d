"""The picture of the front drawn by the page's script."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from raykd.figures.trial import Teacher, Trial
from raykd.report.front_page import front_html
from raykd.report.front_rows import front_rows
from raykd.report.stopped_trials import stopped_trials
from tests.report.browser import IN_BROWSER, drawn
from tests.report.fake_sweep import TEACHER, fake_trials
from tests.report.test_front_page import student
from tests.scores import score, scores

pytestmark = IN_BROWSER
SHOW_TEST = 'document.getElementById("test").click()'


def by_name(picture, name):
    return next(trace for trace in picture["data"] if trace.get("name") == name)


def plots(folder, *pages, prepare=""):
    return [pictures["plot"] for pictures in drawn(folder, *pages, prepare=prepare)]


@pytest.mark.parametrize("part", ["dev", "test"])
def test_the_picture_shows_front_baselines_and_dominated(part, tmp_path):
    trials = fake_trials()
    (picture,) = plots(tmp_path, front_html(trials, [TEACHER]), prepare=SHOW_TEST if part == "test" else "")
    rows, positions = front_rows(trials, [TEACHER]), {}
    for kind in {row.trial.objective for row in rows}:
        trace = by_name(picture, kind)
        positions |= dict(zip(trace["text"], zip(trace["x"], trace["y"], strict=True), strict=True))
    assert positions == {
        f"{row.trial.number:02d}": pytest.approx(
            (row.trial.cost["latency_ms"], 100 * row.trial.scores.mean(part))
        )
        for row in rows
    }
    hollow = by_name(picture, "same shape, gold labels only")
    assert hollow["y"] == pytest.approx(
        [100 * row.baseline.scores.mean(part) for row in rows if row.baseline]
    )
    assert len(by_name(picture, "dominated")["x"]) == 25 - 11
    assert picture["layout"]["shapes"][0]["y0"] == pytest.approx(100 * TEACHER.scores.mean(part), abs=0.1)
    assert picture["layout"]["yaxis"]["title"]["text"] == f"{part} F1, %"
    if part == "dev":
        (line,) = [trace for trace in picture["data"] if trace.get("line", {}).get("shape") == "hv"]
        assert line["y"] == sorted(line["y"]), "steps never fall"
        assert line["x"] == sorted(line["x"])


@pytest.fixture(scope="module")
def teachers_far_away(tmp_path_factory):
    pages = [
        front_html([student(0, 0.5, 1.5)], [Teacher("t", scores(dev), {"latency_ms": latency_ms})])
        for latency_ms, dev, *_ in PLACES
    ]
    return plots(tmp_path_factory.mktemp("far"), *pages)


PLACES = [
    (1.9, 0.6, "star", "ms"), (2.1, 0.6, "triangle-right", "ms →"), (300.0, 0.6, "triangle-right", "ms →"),
    (1.9, 0.9, "triangle-up", "ms ↑"), (300.0, 0.9, "triangle-ne", "ms ↗"), (1.9, 0.1, "triangle-down", "ms ↓"),
    (300.0, 0.1, "triangle-se", "ms ↘"),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(PLACES)))
def test_a_teacher_far_away_is_marked_at_the_edge_with_its_values(place, teachers_far_away):
    (latency_ms, dev, symbol, end), picture = PLACES[place], teachers_far_away[place]
    trace, (note,) = by_name(picture, "teacher"), picture["layout"]["annotations"]
    assert trace["marker"]["symbol"] == symbol
    assert note["text"].endswith(end)
    assert f"teacher {100 * dev:.1f}" in note["text"]
    (left, right), (low, high) = (picture["layout"][axis]["range"] for axis in ("xaxis", "yaxis"))
    assert left <= trace["x"][0] <= right
    assert low <= trace["y"][0] <= high
    if symbol == "star":
        assert (trace["x"][0], trace["y"][0]) == (latency_ms, pytest.approx(100 * dev))


def test_what_is_far_below_is_marked_at_the_edge_and_squeezes_nothing(tmp_path):
    def twin(dev):
        cost = {"latency_ms": 1.5, "parameters": 9}
        return Trial(1, "COMPLETE", {}, "baseline", scores=scores(dev), cost=cost)

    pages = [front_html([student(0, 0.6, 1.5, objective="posterior"), twin(gold)]) for gold in (0.45, 0.1)]
    collapsed = front_html([*fake_trials(), student(99, 0.01, 2.0, 900_000)], [TEACHER])
    near, far, squeezed = plots(tmp_path, *pages, collapsed)
    for picture, symbol, text in ((near, "circle", ""), (far, "triangle-down", "10.0")):
        trace = by_name(picture, "same shape, gold labels only")
        assert (trace["marker"]["symbol"], trace["text"]) == ([symbol], [text])
        assert trace["y"] == pytest.approx([45.0 if text == "" else picture["layout"]["yaxis"]["range"][0]])
    low, high = squeezed["layout"]["yaxis"]["range"]
    assert 60 < low < high < 95
    assert "triangle-down" in by_name(squeezed, "dominated")["marker"]["symbol"]


def test_axes_markers_and_bars_say_what_they_are_given(tmp_path):
    def two(slowest):
        return [student(i, 0.5 + i / 10, ms, objective="a") for i, ms in enumerate((1.0, slowest))]

    sizes = [student(i, 0.5 + i / 10, 1.0 + i, p, objective="a") for i, p in enumerate((500_000, 1_000_000))]
    seeds = student(0, score(0.5, 0.6, 0.7), 1.0, objective="a")
    untimed = replace(seeds, cost={"parameters": 9})
    plain, log, area, bars, none, without_times = plots(
        tmp_path, front_html(two(3.0)), front_html(two(50.0)), front_html(sizes), front_html([seeds]),
        front_html([Trial(0, "RUNNING")], [TEACHER]),
        front_html([untimed], [TEACHER], objectives={"f1": "max", "parameters": "min"}),
    )  # fmt: skip
    assert without_times["layout"]["xaxis"]["range"] == [0, 1]
    assert plain["layout"]["xaxis"].get("type", "linear") == "linear"
    assert log["layout"]["xaxis"]["type"] == "log"
    left, right = log["layout"]["xaxis"]["range"]
    assert left < 0 < math.log10(50) < right
    marker = by_name(area, "a")["marker"]
    assert (marker["sizemode"], marker["size"]) == ("area", [500_000, 1_000_000])
    assert by_name(bars, "a")["error_y"]["array"] == pytest.approx([10.0])
    assert by_name(bars, "a")["error_y"]["visible"]
    assert not by_name(plain, "a")["error_y"]["visible"]
    assert [note["text"] for note in none["layout"]["annotations"]] == ["no complete student yet"]


def test_of_more_kinds_than_shapes_each_has_its_own_name(tmp_path):
    trials = [student(i, 0.5 + i / 50, 1.0 + i, objective=f"kind {i:02d}") for i in range(10)]
    (picture,) = plots(tmp_path, front_html(trials))
    texts_by_kind = {
        trace["name"]: trace["text"] for trace in picture["data"] if "kind" in trace.get("name", "")
    }
    assert texts_by_kind == {f"kind {i:02d}": [f"{i:02d}"] for i in range(10)}


def test_on_dev_it_shows_where_stopped_trials_were(tmp_path):
    trials = [
        replace(t, message="stopped after epoch 4: it dominates none <b>") if t.state == "PRUNED" else t
        for t in fake_trials()
    ]
    pages = []
    for dev in (0.86, 0.01):
        stopped = stopped_trials(trials, {5: {"a": [{"epoch": 3, "dev": dev}]}})
        pages.append(front_html(trials, [TEACHER], stopped=stopped))
    for picture, symbol in zip(plots(tmp_path, *pages), ("x-thin", "triangle-down-open"), strict=True):
        trace = by_name(picture, "stopped early, its score then")
        assert trace["x"] == [trials[5].cost["latency_ms"]]
        assert trace["marker"]["symbol"] == [symbol]
        assert "stopped after epoch 4" in trace["hovertext"][0]
        assert "<b>" not in trace["hovertext"][0].partition("<br>")[2]
        assert "customdata" not in trace, "it cannot be chosen: it has no curves"
    (on_test,) = plots(tmp_path, pages[0], prepare=SHOW_TEST)
    assert not [trace for trace in on_test["data"] if "stopped" in trace.get("name", "")]


def test_what_a_user_wrote_is_text_to_plotly_and_to_the_box(tmp_path):
    evil = "<img src=x onerror=alert(1)><b>bold"
    trial = student(0, 0.5, 1.0, settings={"student.embedding_dim": evil}, objective=evil)
    (page,) = drawn(tmp_path, front_html([trial]))
    assert evil in page["box"]
    texts = [text for trace in page["plot"]["data"] for text in (trace.get("hovertext") or [])]
    assert texts
    assert not [text for text in texts if "<img" in text or "<b>bold" in text]
    assert not [trace for trace in page["plot"]["data"] if "<img" in trace.get("name", "")]


def test_a_long_setting_is_broken_for_the_box_beside_a_marker(tmp_path):
    settings = {f"training.option_{i}": i for i in range(40)}
    (page,) = drawn(tmp_path, front_html([student(0, 0.5, 1.0, settings=settings, objective="a")]))
    (box,) = by_name(page["plot"], "a")["hovertext"]
    assert "option_39 39" in box
    assert max(map(len, box.split("<br>"))) < 110
