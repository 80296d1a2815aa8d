"""The HTML page and its picture."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from statistics import pstdev

import pytest

from raykd.report import curves_of, front_html, front_rows
from raykd.report.hover import hover
from raykd.report.picture import front_picture
from raykd.trial import Teacher, Trial
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
    figures = json.loads(page.scripts[1])
    assert set(figures) == {"dev", "test", "languages", "curves"}
    assert (set(figures["languages"]), figures["curves"]) == ({"dev", "test"}, {})
    looks = [css for css, _ in page.rows[1:]]
    assert looks == ["teacher"] + ["front"] * 11 + ["quiet"] * (len(trials) - 11)
    for row, (_, cells) in zip(front_rows(trials, [TEACHER]), page.rows[2:], strict=False):
        assert cells[0] == f"{row.trial.number:02d}"


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
        "test aspect F1, source", "languages sd", "target", "target sd", "vs gold", *LANGUAGES, "sv", "tr"
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
    assert json.loads(Reader(page).scripts[1])["dev"]["data"]


def test_the_student_to_ship_is_chosen_and_the_others_of_the_front_can_be():
    trials = fake_trials()
    numbers = [row.trial.number for row in front_rows(trials, [TEACHER])]
    page = front_html(trials, [TEACHER])
    options = re.findall(r"<option value='(\d+)'( selected)?>([^<]*)</option>", page)
    assert [int(number) for number, _, _ in options] == numbers
    assert [(number, name) for number, chosen, name in options if chosen] == [
        ("3", "#03 top_wk k=9 T=3 · E64 H64 crf – to ship")
    ]
    # Where none is to be shipped, the best on dev.
    far = replace(TEACHER, scores=scores(0.99, 0.99))
    (chosen,) = re.findall(r"<option value='(\d+)' selected", front_html(trials, [far]))
    assert int(chosen) == max(trials[:25], key=lambda trial: trial.scores.mean("dev") or 0).number


def test_the_page_holds_the_curves_of_the_front():
    trials = fake_trials()
    curves = {3: curves_of([trained(run_of("posterior", "gold"), epochs=4)]), 5: ()}
    figures = json.loads(Reader(front_html(trials, [TEACHER], curves=curves)).scripts[1])
    (dev, *_) = figures["curves"].pop("3")["data"]
    assert dev["y"] == pytest.approx([100 * score for score in curves[3][0].dev], abs=0.01)
    assert figures["curves"] == {}


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


@pytest.mark.parametrize(("latency_ms", "star"), [(1.9, True), (2.1, False), (300.0, False)])
def test_a_teacher_far_slower_does_not_empty_the_picture(latency_ms, star):
    students = [student(0, 0.5, 1.5)]
    figure = front_picture(students, [Teacher("t", scores(0.6), {"latency_ms": latency_ms})])
    assert any(trace.marker.symbol == "star" for trace in figure.data) is star
    assert figure.layout.annotations[-1].text.endswith("→") is not star


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
