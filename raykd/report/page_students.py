"""The part of the HTML page about one student of the front: its score by language, and the curves of its training."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from raykd.report.curve_picture import curve_picture
from raykd.report.curves import Curve
from raykd.report.front_rows import FrontRow
from raykd.report.language_picture import Labels, language_picture
from raykd.results import Part
from raykd.trial import Teacher, Trial

Curves = Mapping[int, Sequence[Curve]]
"""Trial → the curves of its runs."""


def student_options(rows: Sequence[FrontRow], ship: Trial | None) -> str:
    """The students to choose from, as HTML; the one to ship is chosen, else the best on dev."""
    best = max((row.trial for row in rows), key=lambda trial: trial.scores.mean("dev") or 0.0, default=None)
    first = ship or best
    return "".join(_option(row.trial, ship, selected=row.trial is first) for row in rows)


def _option(trial: Trial, ship: Trial | None, *, selected: bool) -> str:
    name = f"{trial.name} – to ship" if trial is ship else trial.name
    return f"<option value='{trial.number}'{' selected' * selected}>{escape(name)}</option>"


def curve_pictures(rows: Sequence[FrontRow], curves: Curves, *, label: str) -> str:
    """The pictures of the students that have curves, by their numbers, as JSON."""
    shown = {row.trial.number: own for row in rows if (own := curves.get(row.trial.number))}
    return _json((str(number), curve_picture(own, label=label).to_json()) for number, own in shown.items())


def language_pictures(
    rows: Sequence[FrontRow],
    teachers: Sequence[Teacher],
    labels: Labels,
    colours: Mapping[str, str],
    parts: Sequence[Part],
    *,
    label: str,
) -> str:
    """The picture of each part that has scores of several languages, as JSON."""
    pictures = {
        part: language_picture(rows, teachers, labels, colours, part=part, label=label) for part in parts
    }
    return _json((part, picture.to_json()) for part, picture in pictures.items() if picture)


def _json(pictures: Iterable[tuple[str, str | None]]) -> str:
    """A JSON object of what is JSON already."""
    return "{" + ", ".join(f"{json.dumps(name)}: {picture}" for name, picture in pictures) + "}"
