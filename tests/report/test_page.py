"""The HTML page and its picture."""

import base64
import gzip
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from statistics import pstdev

import pytest
from plotly.offline import get_plotlyjs_version

from raykd.figures.trial import Teacher, Trial
from raykd.report.curves import curves_of
from raykd.report.front_rows import front_rows
from raykd.report.hover import hover
from raykd.report.page import front_html
from raykd.report.page_template import PLOTLY, asset
from raykd.report.picture import front_picture
from raykd.report.provenance import Provenance
from tests.report.big_sweep import big_sweep
from tests.report.fake_epochs import run_of, trained
from tests.report.fake_sweep import LANGUAGES, TEACHER, fake_trials, with_targets
from tests.scores import score, scores


class Reader(HTMLParser):
    """Collects the rows of the table, the scripts, and what would be loaded from elsewhere."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.cells, self.scripts, self.loaded = [], [], [], []
        self._script = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.loaded += [given[name] for name in ("src", "href") if name in given]
        if tag == "tr":
            self.rows.append((given.get("class"), []))
        self._script = tag == "script"
        if self._script:
            self.scripts.append("")

    def handle_data(self, data):
        if self._script:
            self.scripts[-1] += data
        elif self.rows and data.strip():
            self.rows[-1][1].append(data.strip())

    def handle_endtag(self, tag):
        self._script = False


def student(number, dev, latency_ms, parameters=9, *, settings=None, **more) -> Trial:
    """A complete trial of the search."""
    cost = {"latency_ms": latency_ms, "parameters": parameters}
    return Trial(number, "COMPLETE", settings or {}, scores=scores(dev), cost=cost, **more)


def by_name(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def test_the_page_needs_nothing_else_and_lists_every_trial():
    trials = fake_trials()
    page = Reader(front_html(trials, [TEACHER], sweep="wikiann"))
    assert page.loaded == []
    assert len(page.scripts) == 3
    data = json.loads(page.scripts[1])
    assert set(data["front"]) == {"dev", "test"}
    looks = [css for css, _ in page.rows[1:]]
    assert looks == ["teacher"] + ["front"] * 11 + ["quiet"] * (len(trials) - 11)
    for row, (_, cells) in zip(front_rows(trials, [TEACHER]), page.rows[2:], strict=False):
        assert cells[0] == f"{row.trial.number:02d}"


def test_nothing_is_loaded_from_elsewhere():
    """Not by an attribute, not by the style, and not by what the script says beside the library."""
    page = front_html(fake_trials(), [TEACHER], provenance=Provenance(version="1"))
    _, data, script = Reader(page).scripts
    own = page.partition("<script")[0] + data + script
    assert re.findall(r"(?:https?:)?//[\w.]+\.\w+|@import|url\(|fetch\(|XMLHttp|import\(", own) == []


def test_plotly_is_that_of_the_library_and_comes_back_as_it_was_published():
    packed = Reader(front_html([])).scripts[0]
    library = gzip.decompress(base64.b64decode(packed)).decode()
    assert library == asset(PLOTLY)
    bundled = re.search(r"v(\d+)\.[\d.]+\n", library[:200])
    assert bundled, library[:200]
    assert bundled[1] == get_plotlyjs_version().split(".")[0], "copy the bundle of this version"
    assert "Licensed under the MIT license" in library[:400]


def test_two_hundred_trials_with_their_curves_are_below_two_megabytes():
    trials, curves = big_sweep(200)
    labels = {number: {"en": 10, "de": 400} for number in curves}
    page = front_html(trials, [TEACHER], curves=curves, training_labels=labels)
    assert len(page.encode()) < 2_000_000
    students = json.loads(Reader(page).scripts[1])["students"]
    assert set(students) == {str(number) for number in curves}
    assert all(own["curves"] and own["dev"] and own["box"] for own in students.values())


def test_all_rows_have_as_many_cells_as_the_heading():
    page = front_html(fake_trials(), [TEACHER], sweep="x")
    table = page[page.index("<table") : page.index("</table>")]
    assert {row.count("<td") for row in table.split("<tr")[2:]} == {table.count("<th ")}


def test_source_and_target_stand_side_by_side_under_the_tasks_own_name():
    trials = [with_targets(trial, test=0.4321, label="aspect F1") for trial in fake_trials()]
    page = front_html(trials, [with_targets(TEACHER, test=0.5678, label="aspect F1")], sweep="x")
    table = page[page.index("<table") : page.index("</table>")]
    heads = re.findall(r"<th class='([^']*)'>([^<]*)</th>", table)
    assert [name for css, name in heads if css == "on-dev"] == [
        "dev aspect F1", "languages sd", "vs gold", *LANGUAGES
    ]  # fmt: skip
    assert [name for css, name in heads if css == "on-test"] == [
        "test aspect F1, source", "languages sd", "target", "target sd", "source vs teacher", "target vs teacher",
        "vs gold", *LANGUAGES, "sv", "tr",
    ]  # fmt: skip
    assert {row.count("<td") for row in table.split("<tr")[2:]} == {len(heads)}
    assert "aspect F1 in percent, mean over en, de, es, nl; target: mean over sv, tr" in page
    assert "<b>86.8 · 56.8</b><span>teacher, test aspect F1, source · target" in page
    assert ">dev aspect F1</button>" in page
    assert "target" not in front_html(fake_trials(), [TEACHER], sweep="x").partition("<script>")[0]


def test_what_a_user_wrote_cannot_leave_its_place():
    evil = "</script><script>alert(1)</script>"
    settings = {"student.embedding_dim": evil, "objective.k": evil}
    trial = student(0, 0.5, 1.0, settings=settings, objective=evil, message=evil, score_label=evil)
    teacher = Teacher(evil, scores(0.6), {"latency_ms": 2.0}, score_label=evil)
    page = front_html([trial], [teacher], sweep=evil)
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert json.loads(Reader(page).scripts[1])["front"]["dev"]["data"]


def test_every_complete_trial_can_be_chosen_in_the_list_the_table_and_the_picture():
    trials = fake_trials()
    complete = {trial.number for trial in trials if trial.state == "COMPLETE"}
    page = front_html(trials, [TEACHER])
    options = re.findall(r"<option value='(\d+)'( selected)?>([^<]*)</option>", page)
    assert {int(number) for number, _, _ in options} == complete
    assert {int(number) for number in re.findall(r"<tr class=\w+ data-number=(\d+)", page)} == complete
    data = json.loads(Reader(page).scripts[1])
    points = {n for trace in data["front"]["dev"]["data"] for n in trace.get("customdata", ())}
    on_front = {row.trial.number for row in front_rows(trials, [TEACHER])}
    twins = {row.baseline.number for row in front_rows(trials, [TEACHER]) if row.baseline}
    assert points == {trial.number for trial in trials[:28] if trial.number in complete} | twins
    assert [int(number) for number, _, _ in options[: len(on_front)]] == [
        row.trial.number for row in front_rows(trials, [TEACHER])
    ]
    assert [(number, name) for number, chosen, name in options if chosen] == [
        ("3", "#03 top_wk k=9 T=3 · E64 H64 crf – to ship")
    ]
    # Where none is to be shipped, the best on dev.
    far = replace(TEACHER, scores=scores(0.99, 0.99))
    (chosen,) = re.findall(r"<option value='(\d+)' selected", front_html(trials, [far]))
    assert int(chosen) == max(trials[:25], key=lambda trial: trial.scores.mean("dev") or 0).number


def test_the_page_holds_the_curves_that_are_known():
    trials = fake_trials()
    curves = {3: curves_of([trained(run_of("posterior", "gold"), epochs=4)]), 5: ()}
    students = json.loads(Reader(front_html(trials, [TEACHER], curves=curves)).scripts[1])["students"]
    assert students["3"]["curves"]["runs"][0]["dev"] == pytest.approx(
        [100 * score for score in curves[3][0].dev], abs=0.01
    )
    assert [number for number, own in students.items() if "curves" in own] == ["3"]


def test_several_teachers_are_named_with_their_languages():
    half = {"en": 0.9, "de": 0.1, "es": 0.1, "nl": 0.9}
    other = replace(TEACHER, name="second", scores=scores(score(0.5, languages=half)))
    page = front_html(fake_trials(), [TEACHER, other])
    assert (
        "best of 2 teachers for each language, on dev: second for en; bilstm_crf × 4 for de, es, nl." in page
    )
    assert "best of" not in front_html(fake_trials(), [TEACHER])


def test_the_spread_over_languages_is_beside_the_mean():
    trials = fake_trials()
    table = front_html(trials, [TEACHER]).partition("<table")[2]
    (row,) = [row for row in table.split("<tr") if 'data-value="3">03<' in row]
    cells = re.findall(r"<td class='([^']*)' data-value=\"([^\"]*)\">", row)
    of_dev = [float(value) for css, value in cells if css.strip() == "on-dev"]
    score = trials[3].scores.get("dev")
    assert score is not None
    assert of_dev[:2] == [score.mean, score.languages_sd]
    assert score.languages_sd == pytest.approx(pstdev(score.by_language.values()))
    alone = replace(trials[3], scores=scores(0.5, 0.5))
    assert "languages sd" not in front_html([alone]), "one language has no spread"


@pytest.mark.parametrize("part", ["dev", "test"])
def test_the_picture_shows_front_baselines_and_dominated(part):
    trials = fake_trials()
    figure = front_picture(trials, [TEACHER], part=part)
    rows = front_rows(trials, [TEACHER])
    shown = {}
    for kind in {row.trial.objective for row in rows}:
        trace = by_name(figure, kind)
        shown |= dict(zip(trace.text, zip(trace.x, trace.y, strict=True), strict=True))
    assert shown == {
        f"{row.trial.number:02d}": (row.trial.cost["latency_ms"], 100 * row.trial.scores.mean(part))
        for row in rows
    }
    hollow = by_name(figure, "same shape, gold labels only")
    assert list(hollow.y) == [100 * row.baseline.scores.mean(part) for row in rows]
    assert len(by_name(figure, "dominated").x) == 25 - 11
    reference = 100 * TEACHER.scores.mean(part)
    assert figure.layout.shapes[0].y0 == pytest.approx(reference, abs=0.1)


def test_marker_area_is_in_proportion_to_parameters():
    trials = [student(i, 0.5 + i / 10, 1.0 + i, p, objective="a") for i, p in enumerate((500_000, 1_000_000))]
    small, large = by_name(front_picture(trials), "a").marker.size
    assert (large / small) ** 2 == pytest.approx(2)


def test_steps_never_fall_on_dev():
    figure = front_picture(fake_trials(), [TEACHER])
    (line,) = [trace for trace in figure.data if trace.line.shape == "hv"]
    assert list(line.y) == sorted(line.y)
    assert list(line.x) == sorted(line.x)


@pytest.mark.parametrize(("slowest", "kind"), [(3.0, None), (50.0, "log")])
def test_the_latency_axis_is_logarithmic_where_the_range_needs_it(slowest, kind):
    trials = [student(i, 0.5 + i / 10, ms) for i, ms in enumerate((1.0, slowest))]
    assert front_picture(trials).layout.xaxis.type == kind


@pytest.mark.parametrize(
    ("latency_ms", "dev", "symbol", "end"),
    [
        (1.9, 0.6, "star", "ms"),
        (2.1, 0.6, "triangle-right", "ms →"),
        (300.0, 0.6, "triangle-right", "ms →"),
        (1.9, 0.9, "triangle-up", "ms ↑"),
        (300.0, 0.9, "triangle-ne", "ms ↗"),
        (1.9, 0.1, "triangle-down", "ms ↓"),
        (300.0, 0.1, "triangle-se", "ms ↘"),
    ],
)
def test_a_teacher_far_away_is_marked_at_the_edge_with_its_values(latency_ms, dev, symbol, end):
    figure = front_picture([student(0, 0.5, 1.5)], [Teacher("t", scores(dev), {"latency_ms": latency_ms})])
    trace = by_name(figure, "teacher")
    assert trace.marker.symbol == symbol
    assert figure.layout.annotations[-1].text.endswith(end)
    assert f"teacher {100 * dev:.1f}" in figure.layout.annotations[-1].text
    (left, right), (low, high) = figure.layout.xaxis.range, figure.layout.yaxis.range
    assert left <= trace.x[0] <= right
    assert low <= trace.y[0] <= high
    if symbol == "star":
        assert (trace.x[0], trace.y[0]) == (latency_ms, pytest.approx(100 * dev))


@pytest.mark.parametrize(("gold", "far"), [(0.45, False), (0.1, True)])
def test_a_gold_baseline_far_below_is_marked_at_the_edge_with_its_value(gold, far):
    twin = Trial(
        1, "COMPLETE", {}, "baseline", scores=scores(gold), cost={"latency_ms": 1.5, "parameters": 9}
    )
    figure = front_picture([student(0, 0.6, 1.5, objective="posterior"), twin])
    trace = by_name(figure, "same shape, gold labels only")
    low, _ = figure.layout.yaxis.range
    assert trace.marker.symbol[0] == ("triangle-down" if far else "circle")
    assert trace.text[0] == ("10.0" if far else "")
    assert trace.y[0] == pytest.approx(low if far else 45.0)


def test_seeds_are_shown_as_bars_where_there_are_several():
    of_three = student(0, score(0.5, 0.6, 0.7), 1.0, objective="a")
    (bars,) = [by_name(front_picture([of_three]), "a").error_y]
    assert list(bars.array) == pytest.approx([10.0])
    assert by_name(front_picture([student(0, 0.5, 1.0, objective="a")]), "a").error_y.array is None


def test_kinds_are_told_apart_by_shape_in_picture_and_table():
    trials = [student(i, 0.5 + i / 10, 1.0 + i, objective=kind) for i, kind in enumerate("abc")]
    figure = front_picture(trials)
    assert len({by_name(figure, kind).marker.symbol for kind in "abc"}) == 3
    table = front_html(trials).partition("<table")[2]
    assert [glyph for glyph in "●■◆⬟" if f"{glyph}</span>" in table] == ["●", "■", "◆"]


def test_one_collapsed_student_does_not_squeeze_the_rest():
    trials = [*fake_trials(), student(99, 0.01, 2.0, 900_000)]
    low, high = front_picture(trials, [TEACHER]).layout.yaxis.range
    assert 60 < low < high < 95


def test_a_picture_without_students_shows_a_note():
    figure = front_picture([Trial(0, "RUNNING")], [TEACHER])
    assert "no complete student yet" in {note.text for note in figure.layout.annotations}


def test_the_box_beside_a_marker_holds_the_whole_configuration():
    settings = {"student.hidden_dim": 8, **{f"training.option_{i}": i for i in range(40)}}
    box = hover(student(4, score(0.5, languages={"en": 0.25}), 1.5, 45_123, settings=settings))
    plain = re.sub(r"<[^>]+>", " ", box).replace("\u00a0", " ")
    assert "hidden_dim 8" in plain
    assert "option_39 39" in plain
    assert "en 25.0" in plain
    assert "1.50 ms · 45.1k parameters" in plain
    assert max(len(line) for line in box.split("<br>")) < 110


def test_the_box_beside_a_marker_shows_targets_and_the_name_of_the_score():
    trial = replace(student(4, 0.5, 1.0), scores=scores(0.5, 0.4, 0.3), score_label="accuracy")
    assert "test accuracy 40.0, target 30.0" in hover(trial)
    figure = front_picture([trial], part="test")
    assert figure.layout.yaxis.title.text == "test accuracy, %"


def test_the_box_beside_a_marker_shows_each_seed():
    assert "over 2 seeds (43.2, 56.8)" in hover(student(4, score(0.4321, 0.5679), 1.0))
    assert "seeds" not in hover(student(4, 0.5, 1.0))
