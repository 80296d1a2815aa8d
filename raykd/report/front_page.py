"""The results of a sweep as one HTML page without external files.

It shows the chart of the front, a switch from dev to test, a sortable table, the scores by language and the training
curves of each complete student, and the course of the search. The template `assets/page.html` is filled with texts,
tables and one JSON document (`page_document.py`), from which the scripts in `assets/` draw with plotly.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from raykd.figures.front import candidates
from raykd.figures.table import LATENCY, OBJECTIVES, PARAMETERS, Directions, selectable_figures
from raykd.figures.trial import (
    Teacher,
    Trial,
    TrialOrTeacher,
    common_score_label,
    common_score_name,
    languages_outside_mean,
    target_languages,
)
from raykd.report.cost_notes import cost_notes
from raykd.report.dev_scores import dev_score
from raykd.report.findings import judge
from raykd.report.key_figures import key_figures
from raykd.report.language_scores import PARTS, Labels
from raykd.report.page_document import MARKERS, as_json, kind_numbers, listed_students, page_document
from raykd.report.provenance import Provenance
from raykd.report.search_growth import Importances
from raykd.report.stopped_trials import StoppedTrial, stopped_in_words
from raykd.report.student_columns import LEARNT_BY, source_languages
from raykd.report.student_table import table_columns, table_lines
from raykd.report.terminal_table import headline
from raykd.report.training_curves import Curves

RELOADED_S = 30
"""Seconds after which the page of a running sweep reloads."""
MOST_NAMED = 12
"""Largest number of languages listed in a sentence."""
MOST_OPEN = 12
"""Largest number of stopped trials in a table that is open at first."""
SCRIPTS = ("charts.js", "front_chart.js", "student_charts.js", "search_charts.js", "page.js")
"""The page's script in parts, in their order: what charts share, the charts, the controls."""
PLOTLY = "plotly-basic.min.js"
"""The build of plotly.js with basic charts only, as its authors publish it: `npm pack plotly.js-basic-dist-min`."""


def front_html(
    trials: Iterable[Trial],
    teachers: Sequence[Teacher] = (),
    *,
    sweep: str = "",
    objectives: Directions = OBJECTIVES,
    dev_labels: int | None = None,
    curves: Curves = MappingProxyType({}),
    training_labels: Labels = MappingProxyType({}),
    importances: Importances = MappingProxyType({}),
    no_importances: str = "it was not computed",
    stopped: Sequence[StoppedTrial] = (),
    running: str = "",
    provenance: Provenance | None = None,
) -> str:
    """Return the whole page as text. It opens from a file, without a network.

    Args:
        trials: All trials of the sweep.
        teachers: Its teachers.
        sweep: Name of the sweep.
        objectives: Objectives of the front.
        dev_labels: Number of labels counted by the score on dev; None if unknown.
        curves: Training curves of complete trials by number, as far as known.
        training_labels: Labels by language in the training text of complete trials, by number.
        importances: Importance of settings for each objective.
        no_importances: Reason why there are no importances.
        stopped: Trials that were stopped early or failed.
        running: Progress of a running sweep in words; the page then reloads itself. Empty: the sweep has ended.
        provenance: Origin of the figures.
    """
    trials = list(trials)
    scored = [*teachers, *trials]
    judged = judge(trials, teachers, objectives=objectives, dev_labels=dev_labels)
    front = {row.trial.number: row.trial for row in judged.rows}
    measured = {trial.number for trial in candidates(trials, objectives)}
    # A confirmation has no row: its student is shown with its scores.
    listed = [trial for trial in trials if trial.role != "confirm"]
    students = listed_students(trials, judged)
    best = max(front.values(), key=dev_score, default=None)
    document = page_document(
        trials, teachers, judged, objectives=objectives, curves=curves, labels=training_labels,
        importances=importances, stopped=stopped,
    )  # fmt: skip
    return _template().render(
        heading=headline(trials, judged.rows, sweep=sweep),
        label=common_score_label(scored),
        provenance=provenance or Provenance(),
        running=running,
        reloaded_s=RELOADED_S,
        verdict=judged.verdict,
        findings=[*judged.findings, *cost_notes(front.values(), teachers)],
        reference=_reference(teachers),
        key_figures={part: key_figures(judged.rows, teachers, part) for part in PARTS},
        chosen_on=_chosen_on(objectives, scored),
        languages=_languages(scored),
        columns=table_columns(scored, objectives),
        column_with_marker=LEARNT_BY,
        lines=list(table_lines(listed, judged.rows, teachers, measured)),
        kinds={kind: place % len(MARKERS) for kind, place in kind_numbers(trials).items()},
        markers=MARKERS,
        trial_count=len(listed),
        stopped=stopped,
        stopped_in_words=stopped_in_words(stopped),
        most_open=MOST_OPEN,
        groups={
            "on the front": list(front.values()),
            "other students": [t for t in students if t.number not in front and t.role != "baseline"],
            "gold baselines": [t for t in students if t.number not in front and t.role == "baseline"],
        },
        selected=judged.verdict.ship or best,
        no_volume="" if document["volume"] else "it needs a teacher and two complete trials",
        no_importances="" if importances else no_importances,
        scores_of_both=bool(document["scores"]),
        style=Markup(read_asset("page.css")),
        script=Markup("\n".join(map(read_asset, SCRIPTS))),
        plotly=_packed_plotly(),
        document=Markup(as_json(document)),
    )


@cache
def read_asset(name: str) -> str:
    """Return the text of a file in `assets/`."""
    return (files("raykd.report") / "assets" / name).read_text(encoding="utf-8")


@cache
def _packed_plotly() -> Markup:
    """Plotly as gzip in base64, half a megabyte instead of 1.2: pages are stored with each sweep, logged and mailed."""
    return Markup(base64.b64encode(gzip.compress(read_asset(PLOTLY).encode(), mtime=0)).decode())


@cache
def _template() -> Template:
    """The page's template, which escapes all values except `Markup`."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(read_asset("page.html"))


def _chosen_on(objectives: Directions, scored: Sequence[TrialOrTeacher]) -> str:
    """The figures of the front in words."""
    figures = [selectable_figures(common_score_name(scored))[name] for name in objectives]
    words = {LATENCY.name: "latency", PARAMETERS.name: "size (marker area)"}
    *names, last = [
        figure.heading.format(label=common_score_label(scored))
        if figure.score
        else words.get(figure.name, figure.words)
        for figure in figures
    ]
    return " and ".join(filter(None, [", ".join(names), last]))


def _reference(teachers: Sequence[Teacher]) -> str:
    """A sentence on the teachers behind "the teacher's score"; empty with fewer than two teachers."""
    if len(teachers) < 2:
        return ""
    best: dict[str, list[str]] = {}
    scores = {id(teacher): teacher.scores.by_language("dev") for teacher in teachers}
    for language in source_languages(teachers):
        teacher = max(teachers, key=lambda teacher: scores[id(teacher)].get(language, -1.0))
        best.setdefault(teacher.name, []).append(language)
    by_language = "; ".join(f"{name} for {_names_or_count(languages)}" for name, languages in best.items())
    text = f"“The teacher” is the best of {len(teachers)} teachers for each language, on dev"
    return f"{text}: {by_language}." if by_language else f"{text}."


def _languages(scored: Sequence[TrialOrTeacher]) -> str:
    """A sentence on the languages behind the means."""
    sources, targets = source_languages(scored), target_languages(scored)
    if not sources:
        return ""
    source = f"{common_score_label(scored)} in percent, mean over {_names_or_count(sources)}"
    if not targets:
        return source
    outside = languages_outside_mean(scored)
    inside = [name for name in targets if name not in outside]
    without = f", without {_names_or_count(outside)}" if outside else ""
    return f"{source}; target: mean over {_names_or_count(inside)}{without}"


def _names_or_count(languages: Sequence[str]) -> str:
    """Names of the languages, or their number if they are too many for a line."""
    return ", ".join(languages) if len(languages) <= MOST_NAMED else f"{len(languages)} languages"
