"""The JSON document for the page's script: numbers and plain text, no HTML and no layout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from raykd.figures.front import candidates
from raykd.figures.results import Part
from raykd.figures.table import LATENCY, PARAMETERS, Directions, main_latency
from raykd.figures.trial import Teacher, Trial, TrialOrTeacher, common_score_label, teacher_score
from raykd.identity import PlainObject
from raykd.report.findings import Judgement, empty_front_reason
from raykd.report.language_scores import PARTS, Labels, LanguageScores
from raykd.report.readable_numbers import in_words, percent
from raykd.report.search_growth import Importances, most_important, source_and_target_scores, volume_growth
from raykd.report.stopped_trials import StoppedTrial
from raykd.report.student_facts import settings_in_words, student_facts, teacher_facts
from raykd.report.training_curves import Curves, drawn_curves, epoch_stride

MARKERS = (
    ("circle", "●"), ("square", "■"), ("diamond", "◆"), ("pentagon", "⬟"),
    ("hexagon", "⬢"), ("triangle-up", "▲"), ("cross", "✚"), ("hourglass", "⧗"),
)  # fmt: skip
"""The marker of each kind, as plotly's name and as a character; the page has a colour for each."""


def kind_numbers(trials: Sequence[Trial]) -> dict[str, int]:
    """Number the strategies or objectives of a sweep, in the same way for all charts."""
    kinds = sorted({trial.kind for trial in trials if trial.role == "search"})
    return dict(zip(kinds, range(len(kinds)), strict=True))


def listed_students(trials: Sequence[Trial], judged: Judgement) -> list[Trial]:
    """Return the complete students for selection: first the front, then by number, baselines last.

    A confirmation appears as the figures of its student.
    """
    front = [row.trial for row in judged.rows]
    on_front = {trial.number for trial in front}
    rest = [
        trial
        for trial in trials
        if trial.state == "COMPLETE" and trial.role != "confirm" and trial.number not in on_front
    ]
    return front + sorted(rest, key=lambda trial: (trial.role == "baseline", trial.number))


def page_document(
    trials: Sequence[Trial],
    teachers: Sequence[Teacher],
    judged: Judgement,
    *,
    objectives: Directions,
    curves: Curves,
    labels: Labels,
    importances: Importances,
    stopped: Sequence[StoppedTrial],
) -> PlainObject:
    """Return the document as JSON-able data: scores in percent, latencies in ms, trials by their numbers.

    Args:
        trials: All trials of the sweep.
        teachers: Its teachers.
        judged: Front, findings and verdict of the sweep.
        objectives: Objectives of the front.
        curves: Training curves of complete trials, as far as known.
        labels: Labels by language in the training text of complete trials.
        importances: Importance of settings for each objective.
        stopped: Trials that were stopped early or failed.
    """
    scored, latency = [*teachers, *trials], main_latency(objectives)
    front = [row.trial.number for row in judged.rows]
    dominated = [trial.number for trial in candidates(trials, objectives) if trial.number not in front]
    return {
        "label": common_score_label(scored),
        "latency": "latency, ms per sentence (p50 of the export, one thread)"
        if latency is LATENCY
        else f"latency, {latency.words} (one thread)",
        "none": "" if front else empty_front_reason(trials),
        "kinds": [
            {"name": kind, "symbol": MARKERS[place % len(MARKERS)][0]}
            for kind, place in kind_numbers(trials).items()
        ],
        "front": front,
        "dominated": dominated,
        "ship": judged.verdict.ship and judged.verdict.ship.number,
        "teacher": _teacher(teachers, objectives),
        "stopped": [_stopped(trial, objectives) for trial in stopped],
        "volume": volume_growth(trials, teachers, objectives),
        "scores": source_and_target_scores(trials, teachers, objectives),
        "importance": most_important(importances, scored),
        **_students(trials, teachers, judged, objectives, curves, labels),
    }


def as_json(document: PlainObject) -> str:
    """Return compact JSON without characters that could end the surrounding script."""
    # A setting may hold "</script>".
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _students(
    trials: Sequence[Trial],
    teachers: Sequence[Teacher],
    judged: Judgement,
    objectives: Directions,
    curves: Curves,
    labels: Labels,
) -> PlainObject:
    """The students, and the shared values of their charts by language."""
    students = listed_students(trials, judged)
    languages, kinds = LanguageScores([*teachers, *students], labels), kind_numbers(trials)
    rows, stride = {row.trial.number: row for row in judged.rows}, epoch_stride(curves)
    latency, common = main_latency(objectives), languages.common(teachers)
    documents: dict[str, Any] = {}
    for trial in students:
        row, trial_curves = rows.get(trial.number), curves.get(trial.number)
        documents[str(trial.number)] = {
            "name": trial.name,
            "facts": student_facts(trial, row),
            "settings": settings_in_words(trial),
            "kind": kinds.get(trial.kind),
            "ms": latency.read(trial),
            "parameters": PARAMETERS.read(trial) or 1,
            "mean": {part: _percent(trial, part) for part in PARTS},
            "sd": {part: 100 * (score.sd or 0) for part in PARTS if (score := trial.scores.get(part))},
            "twin": row.baseline.number if row and row.baseline else None,
            **(languages.student(trial) if common else {}),
            **({"curves": drawn_curves(trial_curves, stride=stride)} if trial_curves else {}),
        }
    return {"languages": common, "students": documents}


def _teacher(teachers: Sequence[Teacher], objectives: Directions) -> PlainObject:
    """The scores to reach, the latency of the slowest teacher, and the facts on all teachers."""
    latency = main_latency(objectives)
    slowest = max((ms for teacher in teachers if (ms := latency.read(teacher))), default=None)
    reference = {part: teacher_score(teachers, part) for part in PARTS}
    return {
        "mean": {part: None if score is None else 100 * score for part, score in reference.items()},
        "words": {part: percent(score) for part, score in reference.items()},
        "ms": slowest,
        "cost": in_words(latency, slowest) if slowest else "",
        "facts": {
            part: [[teacher.name, teacher_facts(teacher, part)] for teacher in teachers] for part in PARTS
        },
    }


def _stopped(stopped: StoppedTrial, objectives: Directions) -> PlainObject:
    dev = f"dev {stopped.trial.score_label} {percent(stopped.dev)} then"
    return {
        "name": stopped.trial.name,
        "ms": main_latency(objectives).read(stopped.trial),
        "dev": None if stopped.dev is None else 100 * stopped.dev,
        "facts": [dev, f"stopped after epoch {stopped.epoch}: {stopped.reason}"],
    }


def _percent(scored: TrialOrTeacher, part: Part) -> float | None:
    mean = scored.scores.mean(part)
    return None if mean is None else 100 * mean
