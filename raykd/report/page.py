"""One HTML page that needs nothing else: the picture of the front, a switch from dev to test, a table that sorts, of
each complete student its scores by language and its curves, and what the search was like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from statistics import median
from types import MappingProxyType

import plotly.graph_objects as go

from raykd.figures.front import candidates
from raykd.figures.results import Part
from raykd.figures.table import (
    BYTES,
    LATENCY,
    OBJECTIVES,
    PARAMETERS,
    SPEEDUP,
    TARGET_DEV,
    Directions,
    read_of_any,
    selecting,
)
from raykd.figures.trial import (
    Scored,
    Teacher,
    Trial,
    outside_of,
    score_label_of,
    score_name_of,
    targets_of,
    teacher_score,
)
from raykd.report.cost_notes import cost_notes
from raykd.report.curve_data import Curves
from raykd.report.findings import GOOD_ENOUGH, judge
from raykd.report.front_rows import FrontRow
from raykd.report.language_data import PARTS, Labels
from raykd.report.look import COLOURS, LOOKS, looks
from raykd.report.page_data import as_json, page_data, student_options, students_of
from raykd.report.page_table import Heads, body, head
from raykd.report.page_template import filled
from raykd.report.picture import front_picture
from raykd.report.provenance import Provenance
from raykd.report.readable_numbers import costs_in_words, gain, main_costs, percent
from raykd.report.search_picture import Importances, importance_picture, scores_picture, volume_picture
from raykd.report.stopped import Stopped, stopped_table
from raykd.report.terminal_table import headline, languages_of

AGAIN_S = 30
"""Seconds after which the page of a sweep that runs is loaded again."""
NAMED = 12
"""Most languages that are named in a sentence."""


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
    stopped: Sequence[Stopped] = (),
    running: str = "",
    provenance: Provenance | None = None,
) -> str:
    """The whole page as text; it opens from a file, without a network.

    `curves` and `training_labels`: of the complete trials, by their numbers, as far as they are known; `importances`:
    of the settings to each objective, and why there are none; `stopped`: the trials that did not come to their end;
    `running`: how far the sweep is, in words, where it goes on: the page then loads itself again.
    """
    trials = list(trials)
    judged = judge(trials, teachers, objectives=objectives, dev_labels=dev_labels)
    rows, ship = judged.rows, judged.verdict.ship
    scored = [*teachers, *trials]
    heads = Heads(
        languages_of(scored), targets_of(scored), score_label_of(scored), score_name_of(scored),
        outside_of(scored), read_of_any(TARGET_DEV, scored), scored, objectives,
    )  # fmt: skip
    kinds, label = looks(trials), heads.label
    volume, importance = volume_picture(trials, teachers, objectives), importance_picture(importances, scored)
    both = scores_picture(trials, teachers, objectives)
    data = {
        "front": {
            part: front_picture(
                trials, teachers, part=part, objectives=objectives, ship=ship, stopped=stopped
            ).to_plotly_json()
            for part in PARTS
        },
        "volume": volume and volume.to_plotly_json(),
        "importance": importance and importance.to_plotly_json(),
        "scores": both and both.to_plotly_json(),
        "look": _look(),
        **page_data(trials, teachers, judged, kinds=kinds, curves=curves, labels=training_labels),
    }
    heading = escape(headline(trials, rows, sweep=sweep))
    tiles = (
        f"<div class='tile on-{part}'><b>{value}</b><span>{text}</span></div>"
        for part in PARTS
        for value, text in _tiles(rows, teachers, part, heads)
    )
    known, notes = provenance or Provenance(), cost_notes([row.trial for row in rows], teachers)
    shown = [trial for trial in trials if trial.role != "confirm"]  # its figures are those of its student
    measured = {trial.number for trial in candidates(trials, objectives)}
    return filled(
        title=heading,
        heading=heading,
        facts=known.facts(),
        again=_again(known) if running else "",
        running=_running(running) if running else "",
        verdict=escape(f"So far: {judged.verdict.text}" if running else judged.verdict.text),
        decided="ship" if ship else "wait",
        findings="".join(f"<li>{escape(str(each))}</li>" for each in (*judged.findings, *notes)),
        reference=_reference(teachers),
        tiles="".join(tiles),
        label=escape(label),
        chosen=escape(_chosen_on(objectives, heads)),
        languages=escape(_means(heads)),
        all=str(len(shown)),
        head=head(heads),
        body=body(shown, rows, teachers, heads, kinds, measured),
        stopped=stopped_table(stopped),
        students=student_options(students_of(trials, judged), judged),
        scores=_costs(both),
        volume=_place("volume", "The share of the box between the teacher’s cost and none, and between score 0 and 1, "
            "that all trials so far dominate. Flat at the end: more trials of this search would add little.",
            "" if volume else "it needs a teacher and two complete trials"),
        importance=_place("importance", "The share of an objective’s variance over the trials that each setting "
            "explains (fANOVA). It says what moved in this search, not what would move in another.",
            "" if importance else no_importances),
        file=known.folded(),
        figures=as_json(data),
    )  # fmt: skip


def _chosen_on(objectives: Directions, heads: Heads) -> str:
    """The figures of the front in words."""
    known, words = selecting(heads.name), {LATENCY.name: "latency", PARAMETERS.name: "size (marker area)"}
    figures = [known[name] for name in objectives]
    named = [
        each.heading.format(label=heads.label) if each.score else words.get(each.name, each.words)
        for each in figures
    ]
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def _again(known: Provenance) -> str:
    """What makes a browser load the page again; with JavaScript it keeps its place."""
    written = f"{known.written:%Y-%m-%dT%H:%M:%SZ}"
    return (
        f"<noscript><meta http-equiv='refresh' content='{AGAIN_S}'></noscript>\n"
        f"<meta name='raykd-again' content='{AGAIN_S}' data-written='{written}'>"
    )


def _running(words: str) -> str:
    return (
        f"<p class='running' role='status'><b>running: {escape(words)}</b> <span class='note'>This page is written "
        f"again as trials end, and loads itself every {AGAIN_S} seconds.</span> <span id='old' hidden></span></p>"
    )


def _place(name: str, note: str, missing: str) -> str:
    """Where a picture is drawn, with what it shows, or why it is not there."""
    if missing:
        return f"<p class='note'>Not shown: {escape(missing)}.</p>"
    return f"<span class='note'>{note}</span><div id='{name}'></div>"


def _costs(picture: go.Figure | None) -> str:
    """Where scores of source and target languages are drawn, for a search for both."""
    if picture is None:
        return ""
    note = "The front from the student that is best in the source languages to the one that is best in the targets."
    return f"<h3>What one score costs the other</h3>{_place('scores', note, '')}"


def _look() -> dict[str, str]:
    """The colours of what the page's script draws itself."""
    kinds = {f"kind{place}": look.colour for place, look in enumerate(LOOKS)}
    return {**{name: light for name, (light, _) in COLOURS.items()}, **kinds}


def _reference(teachers: Sequence[Teacher]) -> str:
    """Which teacher a share of the teacher's score is of, where there are several."""
    if len(teachers) < 2:
        return ""
    best: dict[str, list[str]] = {}
    scores = {id(teacher): teacher.scores.by_language("dev") for teacher in teachers}
    for language in languages_of(teachers):
        own = max(teachers, key=lambda teacher: scores[id(teacher)].get(language, -1.0))
        best.setdefault(own.name, []).append(language)
    of = "; ".join(f"{name} for {_named(languages)}" for name, languages in best.items())
    text = f"“The teacher” is the best of {len(teachers)} teachers for each language, on dev"
    return f"<p class='note'>{escape(f'{text}: {of}.' if of else f'{text}.')}</p>"


def _means(heads: Heads) -> str:
    """Over which languages the means are."""
    if not heads.sources:
        return ""
    source = f"{heads.label} in percent, mean over {_named(heads.sources)}"
    if not heads.targets:
        return source
    within = [name for name in heads.targets if name not in heads.outside]
    apart = f", without {_named(heads.outside)}" if heads.outside else ""
    return f"{source}; target: mean over {_named(within)}{apart}"


def _named(languages: Sequence[str]) -> str:
    """Their names, which are the headings of columns too; of more than fit into a line the number."""
    return ", ".join(languages) if len(languages) <= NAMED else f"{len(languages)} languages"


def _tiles(
    rows: Sequence[FrontRow], teachers: Sequence[Teacher], part: Part, heads: Heads
) -> list[tuple[str, str]]:
    """The figures that matter most: (figure, what it is of), as HTML.

    Students are chosen on dev in both parts.
    """
    tiles, score = [], escape(f"{part} {heads.label}")
    means = f"{score}, source · target" if part == "test" and heads.targets else score
    reference = teacher_score(teachers, part)
    if reference is not None:
        there = max((mean for t in teachers if (mean := t.scores.mean("test", "target"))), default=None)
        best = max(teachers, key=lambda teacher: teacher.scores.mean(part) or 0)
        tiles.append((_both(reference, there, part), f"teacher, {means}<br>{_sizes(best)}"))
    if rows:
        student = max(rows, key=lambda row: row.trial.scores.mean("dev") or 0).trial
        value = _both(student.scores.mean(part), student.scores.mean("test", "target"), part)
        tiles.append((value, f"best student, {means}<br>{_cost(student)}"))
    good = [row.trial for row in rows if row.kept is not None and row.kept >= GOOD_ENOUGH]
    if good:
        text = f"with {GOOD_ENOUGH:.0%} of the teacher’s dev {escape(heads.label)}<br>{_cost(good[0])}"
        tiles.append((_fast(good[0]), text))
    gains = [g for row in rows if (g := row.gain(part)) is not None]
    if gains:
        students = f"{len(gains)} student{'s' * (len(gains) != 1)}"
        text = f"over gold labels alone<br>median of {students} on the front"
        tiles.append((f"{gain(median(gains))} {score}", text))
    return tiles


def _both(source: float | None, target: float | None, part: Part) -> str:
    """A mean, and on test that of target languages beside it where there is one."""
    after = "" if part == "dev" or target is None else f" · {percent(target)}"
    return percent(source) + after


def _fast(trial: Trial) -> str:
    """How fast it is against the teacher, or where there is none, in milliseconds."""
    return next(iter([*costs_in_words(trial, [SPEEDUP]), *costs_in_words(trial, [LATENCY])]), "")


def _cost(trial: Trial) -> str:
    return f"#{trial.number:02d} · {_sizes(trial)}"


def _sizes(scored: Scored) -> str:
    costs = [main_costs(scored), *costs_in_words(scored, [BYTES])]
    return " · ".join(costs).replace(" ", "\u00a0").replace("·\u00a0", "· ")
