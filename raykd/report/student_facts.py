"""Facts on a student or a teacher in lines of text, for the box beside the marker."""

from __future__ import annotations

from raykd.figures.results import Part
from raykd.figures.trial import Teacher, Trial, TrialOrTeacher
from raykd.report.front_rows import FrontRow
from raykd.report.readable_numbers import costs_in_words, gain, main_costs, percent, spread


def student_facts(trial: Trial, row: FrontRow | None = None) -> list[str]:
    """Return the figures of a trial: scores, scores by language, costs with notes, and the gain from distillation."""
    by_language = trial.scores.by_language("dev").items()
    # No line break between a number and its unit.
    costs = [cost.replace(" ", "\u00a0") for cost in costs_in_words(trial)]
    gained = row and row.gain("dev")
    lines = [
        f"dev {_with_spread(trial, 'dev')} · test {_with_spread(trial, 'test')}{_target(trial)}",
        " ".join(f"{name} {percent(score)}" for name, score in by_language),
        " · ".join(costs),
        *trial.cost_notes,
    ]
    if gained is not None:
        lines.append(f"{gain(gained)} dev {trial.score_label} over the same student on gold labels alone")
    return [line for line in lines if line]


def settings_in_words(trial: Trial) -> list[str]:
    """Return all settings, a line for each section."""
    sections: dict[str, list[str]] = {}
    for path, value in trial.settings.items():
        section, _, name = path.partition(".")
        sections.setdefault(section, []).append(f"{name} {value}".strip())
    return [f"{section}: {', '.join(values)}" for section, values in sections.items()]


def teacher_facts(teacher: Teacher, part: Part) -> str:
    """Return a teacher's score on one part, and its costs."""
    target = _target(teacher) if part == "test" else ""
    score = percent(teacher.scores.mean(part))
    return f"{part} {teacher.score_label} {score}{target} · {main_costs(teacher)}"


def _with_spread(trial: Trial, part: Part) -> str:
    """A score; for dev with several seeds, also the score of each."""
    score = trial.scores.get(part)
    if score is None:
        return f"{trial.score_label} {percent(None)}"
    text = f"{trial.score_label} {percent(score.mean)}{spread(score.sd)}"
    if len(score.by_seed) > 1 and part == "dev":
        text += f" over {len(score.by_seed)} seeds ({', '.join(map(percent, score.by_seed))})"
    return text


def _target(scored: TrialOrTeacher) -> str:
    """The mean over target languages as a continuation of the test score; empty if there are none."""
    score = scored.scores.get("test", "target")
    return "" if score is None else f", target {percent(score.mean)}{spread(score.sd)}"
