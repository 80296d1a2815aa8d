"""The HTML page and its picture."""

import base64
import gzip
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from statistics import pstdev

import pytest

from raykd.figures.trial import Teacher, Trial
from raykd.report.front_page import PLOTLY, front_html, read_asset
from raykd.report.front_rows import front_rows
from raykd.report.provenance import Provenance
from raykd.report.student_facts import settings_in_words, student_facts
from raykd.report.training_curves import training_curves
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
        attributes = dict(attrs)
        self.loaded += [attributes[name] for name in ("src", "href") if name in attributes]
        if tag == "tr":
            self.rows.append((attributes.get("class"), []))
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


def test_the_page_needs_nothing_else_and_lists_every_trial():
    trials = fake_trials()
    page = Reader(front_html(trials, [TEACHER], sweep="wikiann"))
    assert page.loaded == []
    assert len(page.scripts) == 3
    data = json.loads(page.scripts[1])
    assert data["front"] == [row.trial.number for row in front_rows(trials, [TEACHER])]
    looks = [css for css, _ in page.rows[1:]]
    assert looks == ["teacher"] + ["front"] * 11 + ["quiet"] * (len(trials) - 11)
    for row, (_, cells) in zip(front_rows(trials, [TEACHER]), page.rows[2:], strict=False):
        assert cells[0] == f"{row.trial.number:02d}"


def test_nothing_is_loaded_from_elsewhere():
    """Not by an attribute, not by the style, and not by what the script says beside the library."""
    page = front_html(fake_trials(), [TEACHER], provenance=Provenance(version="1"))
    _, data, script = Reader(page).scripts
    own_parts = page.partition("<script")[0] + data + script
    assert re.findall(r"(?:https?:)?//[\w.]+\.\w+|@import|url\(|fetch\(|XMLHttp|import\(", own_parts) == []


def test_plotly_comes_back_as_it_was_published():
    packed = Reader(front_html([])).scripts[0]
    library = gzip.decompress(base64.b64decode(packed)).decode()
    assert library == read_asset(PLOTLY)
    assert "Licensed under the MIT license" in library[:400]


def test_two_hundred_trials_with_their_curves_are_below_two_megabytes():
    trials, curves = big_sweep(200)
    labels = {number: {"en": 10, "de": 400} for number in curves}
    page = front_html(trials, [TEACHER], curves=curves, training_labels=labels)
    assert len(page.encode()) < 2_000_000
    students = json.loads(Reader(page).scripts[1])["students"]
    assert set(students) == {str(number) for number in curves}
    assert all(student["curves"] and student["dev"] and student["facts"] for student in students.values())


def test_all_rows_have_as_many_cells_as_the_heading():
    page = front_html(fake_trials(), [TEACHER], sweep="x")
    table = page[page.index("<table") : page.index("</table>")]
    assert {row.count("<td") for row in table.split("<tr")[2:]} == {table.count("<th ")}


def test_source_and_target_stand_side_by_side_under_the_tasks_own_name():
    trials = [with_targets(trial, test=0.4321, label="aspect F1") for trial in fake_trials()]
    page = front_html(trials, [with_targets(TEACHER, test=0.5678, label="aspect F1")], sweep="x")
    table = page[page.index("<table") : page.index("</table>")]
    heads = re.findall(r"<th class='([^']*)'>([^<]*)</th>", table)
    assert [name for css, name in heads if "on-dev" in css.split()] == [
        "dev aspect F1", "languages sd", "vs gold", *LANGUAGES
    ]  # fmt: skip
    assert [name for css, name in heads if "on-test" in css.split()] == [
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
    assert json.loads(Reader(page).scripts[1])["students"]["0"]["settings"]


def test_every_complete_trial_can_be_chosen_in_the_list_the_table_and_the_picture():
    trials = fake_trials()
    complete = {trial.number for trial in trials if trial.state == "COMPLETE"}
    page = front_html(trials, [TEACHER])
    options = re.findall(r"<option value='(\d+)'( selected)?>([^<]*)</option>", page)
    assert {int(number) for number, _, _ in options} == complete
    assert {int(number) for number in re.findall(r"<tr class=\w+ data-number=(\d+)", page)} == complete
    data = json.loads(Reader(page).scripts[1])
    numbers = [*data["front"], *data["dominated"]]
    points = {*numbers, *(data["students"][str(n)]["twin"] for n in data["front"])}
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
    curves = {3: training_curves([trained(run_of("posterior", "gold"), epochs=4)]), 5: ()}
    students = json.loads(Reader(front_html(trials, [TEACHER], curves=curves)).scripts[1])["students"]
    assert students["3"]["curves"]["runs"][0]["dev"] == pytest.approx(
        [100 * score for score in curves[3][0].dev], abs=0.01
    )
    assert [number for number, student in students.items() if "curves" in student] == ["3"]


def test_several_teachers_are_named_with_their_languages():
    half = {"en": 0.9, "de": 0.1, "es": 0.1, "nl": 0.9}
    second_teacher = replace(TEACHER, name="second", scores=scores(score(0.5, languages=half)))
    page = front_html(fake_trials(), [TEACHER, second_teacher])
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


def test_kinds_are_told_apart_by_shape_in_picture_and_table():
    trials = [student(i, 0.5 + i / 10, 1.0 + i, objective=kind) for i, kind in enumerate("abc")]
    page = front_html(trials)
    kinds = json.loads(Reader(page).scripts[1])["kinds"]
    assert [kind["name"] for kind in kinds] == ["a", "b", "c"]
    assert len({kind["symbol"] for kind in kinds}) == 3
    table = page.partition("<table")[2]
    assert [glyph for glyph in "●■◆⬟" if f"{glyph}</span>" in table] == ["●", "■", "◆"]


def test_the_facts_of_a_student_hold_its_figures_and_its_whole_configuration():
    settings = {"student.hidden_dim": 8, **{f"training.option_{i}": i for i in range(40)}}
    trial = student(4, score(0.5, languages={"en": 0.25}), 1.5, 45_123, settings=settings)
    facts = [line.replace("\u00a0", " ") for line in student_facts(trial)]
    assert "en 25.0" in facts
    assert "1.50 ms · 45.1k parameters" in facts
    assert settings_in_words(trial)[0] == "student: hidden_dim 8"
    assert settings_in_words(trial)[1].endswith("option_39 39")


def test_the_facts_of_a_student_have_targets_and_the_name_of_the_score():
    trial = replace(student(4, 0.5, 1.0), scores=scores(0.5, 0.4, 0.3), score_label="accuracy")
    assert "test accuracy 40.0, target 30.0" in student_facts(trial)[0]
    assert json.loads(Reader(front_html([trial])).scripts[1])["label"] == "accuracy"


def test_the_facts_of_a_student_have_each_seed():
    assert "over 2 seeds (43.2, 56.8)" in student_facts(student(4, score(0.4321, 0.5679), 1.0))[0]
    assert "seeds" not in student_facts(student(4, 0.5, 1.0))[0]
