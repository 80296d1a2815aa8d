"""One HTML page that needs nothing else: the picture, a switch from dev to test, a table that sorts, and for each
student of the front its scores by language and its curves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from statistics import median
from types import MappingProxyType

from plotly.offline import get_plotlyjs

from raykd.figures import LATENCY, OBJECTIVES, SPEEDUP, Directions
from raykd.front import candidates
from raykd.report.findings import GOOD_ENOUGH, judge
from raykd.report.form import costs_in_words, gain, main_costs, percent
from raykd.report.front_rows import FrontRow
from raykd.report.language_picture import Labels
from raykd.report.page_students import Curves, curve_pictures, language_pictures, student_options
from raykd.report.page_table import Heads, body, head
from raykd.report.page_template import PAGE
from raykd.report.picture import colours, front_picture
from raykd.report.table import headline, languages_of
from raykd.results import Part
from raykd.trial import Teacher, Trial, score_label_of, targets_of, teacher_score

PARTS: tuple[Part, ...] = ("dev", "test")
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
) -> str:
    """The whole page as text; it opens from a file, without a network.

    `curves` and `training_labels`: of the trials on the front, by their numbers, as far as they are known.
    """
    trials = list(trials)
    judged = judge(trials, teachers, objectives=objectives, dev_labels=dev_labels)
    rows, ship = judged.rows, judged.verdict.ship
    scored = [*teachers, *trials]
    heads = Heads(languages_of(scored), targets_of(scored), score_label_of(scored))
    colour, label = colours(row.trial for row in rows), heads.label
    pictures = {
        part: front_picture(trials, teachers, part=part, objectives=objectives, ship=ship).to_json()
        for part in PARTS
    }
    by_language = language_pictures(rows, teachers, training_labels, colour, PARTS, label=label)
    figures = (
        f'{{"dev": {pictures["dev"]}, "test": {pictures["test"]}, "languages": {by_language}, '
        f'"curves": {curve_pictures(rows, curves, label=label)}}}'
    )
    heading = escape(headline(trials, rows, sweep=sweep))
    tiles = (
        f"<div class='tile on-{part}'><b>{value}</b><span>{text}</span></div>"
        for part in PARTS
        for value, text in _tiles(rows, teachers, part, heads)
    )
    measured = {trial.number for trial in candidates(trials, objectives)}
    return PAGE.substitute(
        title=heading,
        heading=heading,
        verdict=escape(judged.verdict.text),
        decided="ship" if ship else "wait",
        findings="".join(f"<li>{escape(str(finding))}</li>" for finding in judged.findings),
        tiles="".join(tiles),
        label=escape(label),
        languages=escape(_means(heads)),
        all=len(trials),
        head=head(heads),
        body=body(trials, rows, teachers, heads, colour, measured),
        students=student_options(rows, ship),
        plotly=get_plotlyjs(),
        # A setting may hold "</script>".
        figures=figures.replace("<", "\\u003c"),
    )


def _means(heads: Heads) -> str:
    """Over which languages the means are."""
    if not heads.sources:
        return ""
    source = f"{heads.label} in percent, mean over {_named(heads.sources)}"
    return f"{source}; target: mean over {_named(heads.targets)}" if heads.targets else source


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
        tiles.append((_both(reference, there, part), f"teacher, {means}<br>{main_costs(best)}"))
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
    return f"#{trial.number:02d} · {main_costs(trial)}"
