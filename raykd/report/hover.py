"""The boxes beside the markers of the picture, as HTML."""

from __future__ import annotations

from html import escape
from textwrap import wrap

from raykd.figures.results import Part
from raykd.figures.trial import Scored, Teacher, Trial
from raykd.report.front_rows import FrontRow
from raykd.report.readable_numbers import costs_in_words, gain, main_costs, percent, spread

WIDTH = 76
"""Characters of a line."""


def hover(trial: Trial, row: FrontRow | None = None) -> str:
    """All that is known of a trial, for the box beside its marker: figures first, then every setting."""
    lines = [
        f"<b>{escape(trial.name)}</b>",
        f"dev {_with_spread(trial, 'dev')} · test {_with_spread(trial, 'test')}{_target(trial)}",
        " ".join(
            f"{escape(name)} {percent(score)}" for name, score in trial.scores.by_language("dev").items()
        ),
        # A figure is not broken between its number and its words.
        *wrap(" · ".join(cost.replace(" ", "\u00a0") for cost in costs_in_words(trial)), WIDTH),
    ]
    lines += [escape(line) for note in trial.cost_notes for line in wrap(note, WIDTH)]
    gained = row and row.gain("dev")
    if gained is not None:
        label = escape(trial.score_label)
        lines.append(f"<b>{gain(gained)}</b> dev {label} over the same student on gold labels alone")
    return "<br>".join([line for line in lines if line] + ["", *_settings(trial)])


def teacher_hover(teacher: Teacher, part: Part) -> str:
    """What is known of a teacher, for the box beside its marker."""
    score = percent(teacher.scores.mean(part))
    target = _target(teacher) if part == "test" else ""
    label = f"{part} {escape(teacher.score_label)}"
    return f"<b>{escape(teacher.name)}</b><br>{label} {score}{target} · {main_costs(teacher)}"


def _with_spread(trial: Trial, part: Part) -> str:
    """A score; that of dev in bold, and with each seed's own where there are several."""
    label, score = escape(trial.score_label), trial.scores.get(part)
    if score is None:
        return f"{label} {percent(None)}"
    if part == "test":
        return f"{label} {percent(score.mean)}{spread(score.sd)}"
    own, number = ", ".join(map(percent, score.by_seed)), len(score.by_seed)
    seeds = f" over {number} seeds ({own})" if number > 1 else ""
    return f"{label} <b>{percent(score.mean)}</b>{spread(score.sd)}{seeds}"


def _settings(trial: Trial) -> list[str]:
    """Every setting, a paragraph for each section, so that a long configuration stays inside the picture."""
    sections: dict[str, list[str]] = {}
    for path, value in trial.settings.items():
        section, _, name = path.partition(".")
        sections.setdefault(section, []).append(f"{name} {value}".strip())
    paragraphs = (f"{section}: {', '.join(values)}" for section, values in sections.items())
    return [
        escape(line) for paragraph in paragraphs for line in wrap(paragraph, WIDTH, subsequent_indent="    ")
    ]


def _target(scored: Scored) -> str:
    """The mean over target languages, as the test's score is continued; nothing where there are none."""
    score = scored.scores.get("test", "target")
    return "" if score is None else f", target {percent(score.mean)}{spread(score.sd)}"
