"""All entries of the table appear wherever figures are read."""

from __future__ import annotations

import io
import string
from dataclasses import replace

import pytest
from rich.console import Console

from raykd.errors import SpecError
from raykd.figures.figure_values import combine_model_costs
from raykd.figures.front import front_hypervolume, pareto_front
from raykd.figures.results import Cost, Scores
from raykd.figures.table import (
    COLUMNS,
    COSTS,
    FIGURES,
    OBJECTIVES,
    Figure,
    default_objectives,
    objective_fault,
    score_figures,
    selectable_figures,
)
from raykd.figures.trial import Teacher, Trial
from raykd.report.front_page import front_html
from raykd.report.front_rows import FrontRow
from raykd.report.readable_numbers import FORMS
from raykd.report.student_facts import student_facts
from raykd.report.student_selection import best_first, parse_where
from raykd.report.terminal_table import front_table
from raykd.report.trials_file import trials_table
from raykd.tracking.pages import results
from tests.scores import score, scores

OWN = scores(
    score(0.5, languages={"en": 0.5}), score(0.4, languages={"en": 0.4}), score(0.3, languages={"nl": 0.3})
)
OWN.by_part["dev"]["target"] = score(0.2, languages={"nl": 0.2})
SCORES = Scores(
    {
        part: {
            group: replace(
                group_score,
                beside={
                    "uas": replace(group_score, mean=group_score.mean + 0.1, by_language={"en": 0.7}),
                    "repairs": replace(group_score, mean=group_score.mean / 10),
                    "intent_accuracy": replace(group_score, mean=group_score.mean + 0.2),
                    "slot_f1": replace(group_score, mean=group_score.mean + 0.3),
                    "well_formed": replace(group_score, mean=group_score.mean + 0.4),
                    "perplexity": replace(group_score, mean=group_score.mean * 20),
                    "agreement": replace(group_score, mean=group_score.mean + 0.05),
                },
            )
            for group, group_score in groups.items()
        }
        for part, groups in OWN.by_part.items()
    }
)
COST = {figure.name: 3.0 + number for number, figure in enumerate(COSTS) if figure.name != "wall_s"}
TRIAL = Trial(0, "COMPLETE", {}, scores=SCORES, cost=COST, wall_s=60.0, score_name="las", score_label="LAS")
TEACHER = Teacher("t", SCORES, COST, score_name="las", score_label="LAS")


def task_of(figure: Figure) -> tuple[str, Trial]:
    """The score's name, and a trial, of a task that has the figure."""
    name = figure.beside or "las"
    return name, replace(TRIAL, score_name=name)


each_figure = pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
each_cost = pytest.mark.parametrize("figure", COSTS, ids=lambda figure: figure.name)
each_selecting = pytest.mark.parametrize(
    "figure", [figure for figure in FIGURES if figure.selectable], ids=lambda figure: figure.name
)


@each_figure
def test_it_is_well_formed(figure: Figure):
    fields = {name for _, name, _, _ in string.Formatter().parse(figure.name) if name}
    assert fields == ({"score"} if figure.score and not figure.metric else set())
    assert figure.form in FORMS
    assert figure.read(TRIAL) is not None
    assert figure.read(Trial(1, "RUNNING")) is None
    assert figure.heading or figure.column is None


def test_no_name_is_used_twice():
    names = [name for figure in FIGURES for name in figure.accepted_names("las")]
    assert {"uas", "slot_f1", "score"} <= set(names)
    assert len(set(names)) == len(names)


def test_agreement_is_beside_every_score_and_only_where_it_is_known():
    without = replace(TRIAL, scores=OWN, score_name="f1")
    assert not [figure for figure in score_figures("f1", targets=True, among=[without]) if figure.metric]
    both = score_figures("f1", targets=False, among=[without, replace(TRIAL, score_name="f1")])
    assert [figure.full_name("f1") for figure in both] == [
        "dev_f1",
        "test_f1",
        "dev_agreement",
        "test_agreement",
    ]
    # Without gold labels the score itself is called so.
    figures = score_figures("agreement", targets=False, agreement=True)
    assert [figure.metric for figure in figures] == ["", ""]
    assert selectable_figures("agreement")["dev_agreement"].metric == ""


@each_figure
def test_it_is_a_column_of_csv_and_parquet(figure: Figure):
    name, trial = task_of(figure)
    column = trials_table([trial])[figure.full_name(name)]
    assert column.to_pylist() == [pytest.approx(figure.read(TRIAL))]
    assert str(column.type) == ("int64" if figure.form in ("count", "bytes") else "double")


@each_figure
def test_it_is_a_metric_in_mlflow(figure: Figure):
    name, trial = task_of(figure)
    assert results(trial)[figure.full_name(name)] == pytest.approx(figure.read(TRIAL))


@each_cost
def test_it_is_in_the_box_beside_a_marker(figure: Figure):
    assert FORMS[figure.form](figure.read(TRIAL)).replace(" ", "\u00a0") in " · ".join(student_facts(TRIAL))


@pytest.mark.parametrize("figure", COLUMNS, ids=lambda figure: figure.name)
def test_it_is_a_column_of_terminal_and_page(figure: Figure):
    console = Console(width=300, file=io.StringIO())
    console.print(front_table([TRIAL], [TEACHER], objectives=OBJECTIVES))
    headings = console.file.getvalue().splitlines()[2].split()  # type: ignore[attr-defined]
    assert (figure.short or figure.heading) in headings
    page = front_html([TRIAL], [TEACHER]).partition("<script>")[0]
    assert f"<th class=''>{figure.heading}</th>" in page
    assert page.count(f'data-value="{figure.read(TRIAL)}"') == 2, "student and teacher"


@each_selecting
def test_students_are_chosen_by_it(figure: Figure):
    value, (score_name, trial) = figure.read(TRIAL), task_of(figure)
    worse = Trial(1, "COMPLETE", score_name=score_name)
    for name in figure.accepted_names(score_name):
        assert parse_where(f"{name} == {value}", score_name).accepts(FrontRow(trial, None, None), None)
        assert best_first([worse, trial], name, score_name) == [trial]


@each_selecting
def test_it_may_be_an_objective(figure: Figure):
    if figure.metric:
        assert objective_fault(figure.name, figure.direction, figure.beside or "las"), (
            "only the score itself is searched for"
        )
        return
    name = "las" if figure.score else figure.name
    assert objective_fault(name, figure.direction, "las") is None
    wrong_direction = "min" if figure.direction == "max" else "max"
    fault = objective_fault(name, wrong_direction, "las")
    assert fault == f"got {wrong_direction!r}; write {name}: {figure.direction}"
    assert pareto_front([TRIAL], {name: figure.direction}) == [TRIAL]
    assert 0 <= front_hypervolume([TRIAL], [TEACHER], {name: figure.direction}) <= 1


@pytest.mark.parametrize(
    "figure", [figure for figure in FIGURES if not figure.selectable], ids=lambda figure: figure.name
)
def test_what_is_only_reported_cannot_select(figure: Figure):
    score_name, trial = task_of(figure)
    name = figure.full_name(score_name)
    assert "selection is on dev" in (objective_fault(name, figure.direction, score_name) or "")
    for refused in (
        lambda: parse_where(f"{name} > 0", score_name),
        lambda: best_first([trial], name, score_name),
    ):
        with pytest.raises(SpecError, match="selection is on dev"):
            refused()


@pytest.mark.parametrize(
    ("name", "score_name", "hint"),
    [
        ("f1", "accuracy", "unknown name 'f1'; allowed: accuracy, latency_ms"),
        ("f1", "accuracy", "; for the task's score write accuracy"),
        ("accuracy", "f1", "; for the task's score write f1"),
        ("latency", "f1", "unknown name 'latency'; did you mean 'latency_ms'?"),
        ("dev_f1", "f1", "; for the task's score write f1"),
        ("score", "f1", "; for the task's score write f1"),
    ],
)
def test_an_unknown_objective_is_refused_with_a_hint(name, score_name, hint):
    assert hint in (objective_fault(name, "max", score_name) or "")


def test_the_default_objectives_are_valid_for_every_task():
    for score_name in ("f1", "accuracy"):
        for name, direction in default_objectives(score_name).items():
            assert objective_fault(name, direction, score_name) is None
        assert set(OBJECTIVES) <= set(selectable_figures(score_name))


def test_sizes_of_several_models_add_up_and_a_sentence_is_labelled_by_one():
    costs = [
        Cost({"parameters": 10, "latency_ms": 2.0, "bytes": 40}), Cost({"parameters": 5, "latency_ms": 4.0})
    ]  # fmt: skip
    assert combine_model_costs(costs) == {"parameters": 15, "latency_ms": 3.0}
    assert combine_model_costs([]) == {}


def test_a_part_that_several_models_share_counts_once():
    encoder, table = {"parameters": 100, "bytes": 400}, {"parameters": 7, "bytes": 28}
    costs = [
        Cost({"parameters": 110, "bytes": 440}, shared={"e": encoder}),
        Cost({"parameters": 125, "bytes": 500}, shared={"e": encoder, "v": table}),
        Cost({"parameters": 9, "bytes": 36}, shared={"v": table}),
    ]
    assert combine_model_costs(costs) == {"parameters": 110 + 25 + 2, "bytes": 440 + 100 + 8}


def test_a_metric_beside_the_score_is_shown_by_language_everywhere():
    table, logged = trials_table([TRIAL]), results(TRIAL)
    assert table["dev_uas_en"].to_pylist() == table["test_uas_en"].to_pylist() == [0.7]
    assert logged["dev_uas/en"] == logged["test_uas/en"] == 0.7
    console = Console(width=400, file=io.StringIO())
    console.print(front_table([TRIAL], [TEACHER], objectives=OBJECTIVES))
    headings = console.file.getvalue().splitlines()[2]  # type: ignore[attr-defined]
    for heading in ("dev LAS", "test LAS, source", "dev UAS", "test UAS", "target UAS", " en ", "en UAS"):
        assert heading in headings
    page = front_html([TRIAL], [TEACHER]).partition("<script>")[0]
    for heading in ("dev UAS", "test UAS", "target UAS", "en UAS"):
        assert f">{heading}</th>" in page


def test_tasks_with_scores_of_one_name_show_their_own_beside_it():
    """Tables show the further metrics of the task alone: slots for utterances, well-formed outputs for trees."""
    beside = SCORES.get("dev").beside
    for task, present, absent in (("trees", "well_formed", "slot_f1"), ("slots", "slot_f1", "well_formed")):
        metrics = {name: beside[name] for name in ("intent_accuracy", present)}
        scores_ = Scores(
            {
                part: {group: replace(score, beside=metrics) for group, score in groups.items()}
                for part, groups in OWN.by_part.items()
            }
        )
        trial = replace(TRIAL, score_name="exact_match", score_label="exact match", scores=scores_)
        names = trials_table([trial]).column_names
        assert f"dev_{present}" in names, task
        assert f"dev_{present}_en" in names
        assert not [name for name in names if absent in name]
        page = front_html([trial], []).partition("<script>")[0]
        heading = {"well_formed": "dev trees", "slot_f1": "dev slot F1"}
        assert f">{heading[present]}</th>" in page
        assert f">{heading[absent]}</th>" not in page
        console = Console(width=400, file=io.StringIO())
        console.print(front_table([trial], [], objectives={"exact_match": "max", "latency_ms": "min"}))
        output = console.file.getvalue()  # type: ignore[attr-defined]
        assert heading[present] in output
        assert heading[absent] not in output
    assert "dev_slot_f1" in trials_table([replace(TRIAL, score_name="exact_match", scores=OWN)]).column_names


def test_it_is_no_figure_of_another_task():
    ner_trial = replace(TRIAL, score_name="f1", score_label="F1", scores=OWN)
    assert "uas" in selectable_figures("las")
    assert not {"uas", "dev_uas", "slot_f1"} & set(selectable_figures("f1"))
    assert "slot_f1" in selectable_figures("exact_match")
    assert not [name for name in trials_table([ner_trial]).column_names if "uas" in name]
    assert not [name for name in results(ner_trial) if "uas" in name]
    assert "UAS</th>" not in front_html([ner_trial], [])
