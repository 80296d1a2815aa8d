"""What the script of the page draws from: of every complete student its numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from raykd.figures.trial import Teacher, Trial, score_label_of
from raykd.report.curve_data import Curves, curve_data, every_nth
from raykd.report.findings import Judgement
from raykd.report.hover import hover
from raykd.report.language_data import Labels, Languages
from raykd.report.look import DARK, Look


def students_of(trials: Sequence[Trial], judged: Judgement) -> list[Trial]:
    """The complete ones, which can be looked at: those of the front first, then by their numbers, baselines last."""
    front = [row.trial for row in judged.rows]
    standing = {trial.number for trial in front}
    others = [trial for trial in trials if _shown(trial) and trial.number not in standing]
    return front + sorted(others, key=lambda trial: (trial.role == "baseline", trial.number))


def _shown(trial: Trial) -> bool:
    """A confirmation is shown as the figures of its student."""
    return trial.state == "COMPLETE" and trial.role != "confirm"


def page_data(
    trials: Sequence[Trial],
    teachers: Sequence[Teacher],
    judged: Judgement,
    *,
    kinds: Mapping[str, Look],
    curves: Curves,
    labels: Labels,
) -> dict[str, Any]:
    """As JSON-able data; the pictures of the whole sweep are added beside it.

    `students`: of each, by its number, its box (HTML), its scores by language, its gold twin, its curves.
    """
    students = students_of(trials, judged)
    rows = {row.trial.number: row for row in judged.rows}
    languages = Languages([*teachers, *students], labels)
    several, every = languages.data(teachers, judged.rows), every_nth(curves)
    data: dict[str, Any] = {}
    for trial in students:
        row, own = rows.get(trial.number), curves.get(trial.number)
        look = kinds.get(trial.kind)
        data[str(trial.number)] = {
            "name": escape(f"#{trial.number:02d} {trial.method}"),
            "box": hover(trial, row),
            **({"colour": look.colour, "symbol": look.symbol} if look else {}),
            **(languages.of(trial) if several else {}),
            **({"twin": row.baseline.number} if row and row.baseline else {}),
            **({"curves": curve_data(own, every=every)} if own else {}),
        }
    return {
        "label": escape(score_label_of([*teachers, *trials])),
        "dark": dict(DARK),
        "languages": several,
        "students": data,
    }


def student_options(students: Sequence[Trial], judged: Judgement) -> str:
    """The students to choose from, as HTML; the one to ship is chosen, else the best of the front on dev."""
    ship = judged.verdict.ship
    front = {row.trial.number for row in judged.rows}
    best = max(
        (row.trial for row in judged.rows), key=lambda trial: trial.scores.mean("dev") or 0.0, default=None
    )
    first = ship or best
    groups = (
        ("on the front", [trial for trial in students if trial.number in front]),
        ("other students", [t for t in students if t.number not in front and t.role != "baseline"]),
        ("gold baselines", [t for t in students if t.number not in front and t.role == "baseline"]),
    )
    return "".join(
        f"<optgroup label='{label}'>{''.join(_option(t, ship, selected=t is first) for t in own)}</optgroup>"
        for label, own in groups
        if own
    )


def _option(trial: Trial, ship: Trial | None, *, selected: bool) -> str:
    name = f"{trial.name} – to ship" if ship and trial.number == ship.number else trial.name
    return f"<option value='{trial.number}'{' selected' * selected}>{escape(name)}</option>"


def as_json(data: Mapping[str, Any]) -> str:
    """Compact, and without a character that could end the script it stands in."""
    # A setting may hold "</script>".
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
