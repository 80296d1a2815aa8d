"""Students trained on gold labels alone, beside the teacher and the distilled students.

They reveal a weak teacher, and a sweep in which distillation gained nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raykd.figures.front import GOLD, with_confirmed_scores
from raykd.figures.table import COMPRESSION, LATENCY, SPEEDUP
from raykd.figures.trial import Teacher, Trial, common_score_label, majority_score, teacher_score
from raykd.pluralise import pluralise
from raykd.report.readable_numbers import costs_in_words, percent, tell_apart

GOOD_ENOUGH = 0.95
"""Share of the teacher's dev score that a student to ship keeps, unless the user sets conditions."""
WEAK_BELOW = 0.5
"""Dev score below which a teacher is weak, whatever its students reach."""
POINT = 0.01
"""Margin above a student with one seed, from which a teacher is clearly better."""
DEVIATIONS = 2
"""Margin for a student with several seeds, in standard deviations over its seeds."""


def dev(trial: Trial) -> float:
    """Return the dev score, the mean over seeds and languages; 0 if there is none."""
    return trial.scores.mean("dev") or 0.0


def complete_students(trials: Iterable[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Return the complete students within the constraints: those on gold labels alone, and the distilled ones.

    A confirmed student has the scores of its confirmation. A baseline on the teacher's labels belongs to neither group.
    """
    trials = list(trials)
    confirmations = [trial for trial in trials if trial.role == "confirm"]
    students = [
        with_confirmed_scores(trial, confirmations)
        for trial in trials
        if trial.state == "COMPLETE" and trial.role != "confirm" and trial.feasible
    ]
    alone = [trial for trial in students if trial.objective == GOLD]
    distilled = [trial for trial in students if trial.objective != GOLD and trial.role == "search"]
    return alone, distilled


def teacher_weakness(
    teachers: Sequence[Teacher], gold_only: Sequence[Trial], *, dev_labels: int | None
) -> str:
    """Return a sentence on a weak teacher; empty if the teacher is not weak.

    A teacher is weak if its dev score is not above that of the most frequent label, not clearly above that of the best
    student on gold labels alone, or below a half.

    Args:
        teachers: Teachers of the sweep.
        gold_only: Students trained on gold labels alone.
        dev_labels: Number of labels counted by the score on dev. None (a masked language model): a half means nothing.
    """
    score = teacher_score(teachers)
    if score is None:
        return ""
    reasons = []
    majority = majority_score(teachers)
    if majority is not None and score <= majority:
        reasons.append(f"the most frequent label gives {percent(majority)}")
    best = max(gold_only, key=dev, default=None)
    if best is not None and score <= dev(best) + _margin(best):
        reasons.append(f"labels alone give {percent(dev(best))} (#{best.number:02d})")
    if not reasons and dev_labels is not None and score < WEAK_BELOW:
        reasons.append("its students can hardly be better")
    label = common_score_label(teachers)
    return (
        f"The teacher is weak: dev {label} {percent(score)}, and {' and '.join(reasons)}." if reasons else ""
    )


def best_gold_only(
    teachers: Sequence[Teacher], gold_only: Sequence[Trial], distilled: Sequence[Trial]
) -> Trial | None:
    """Return the student on gold labels to export if one beats all distilled students on dev.

    Returns:
        The fastest that keeps `GOOD_ENOUGH` of the teacher's score, otherwise the best. None if no student beats them
        all, or if nothing was distilled.
    """
    if not distilled:
        return None
    bar = max(*map(dev, distilled), majority_score(teachers) or 0.0)
    better = [trial for trial in gold_only if dev(trial) > bar]
    good_enough = GOOD_ENOUGH * (teacher_score(teachers) or 0.0)
    fast = sorted(
        (trial for trial in better if dev(trial) >= good_enough), key=lambda t: LATENCY.read(t) or 0.0
    )
    return fast[0] if fast else max(better, key=dev, default=None)


def below_bar_in_words(teacher_share: float, label: str) -> str:
    """Return words on a student below `GOOD_ENOUGH` of the teacher's score."""
    keeps, required = tell_apart(teacher_share, GOOD_ENOUGH)
    advice = "search larger students, use more unlabelled text, or train longer"
    return f"keeps {keeps} of the teacher's {label}, below {required}; {advice}"


def gold_only_verdict(
    trial: Trial, teachers: Sequence[Teacher], distilled: Sequence[Trial]
) -> tuple[bool, str]:
    """Decide on `trial`, trained on gold labels alone and better than all distilled students.

    Returns:
        Whether to ship it, and the verdict in a sentence.
    """
    label = common_score_label([*teachers, trial])
    name = f"#{trial.number:02d} (trained on labels alone)"
    best, score = max(distilled, key=dev), teacher_score(teachers)
    comparison = f"dev {label} {percent(dev(trial))}, above every distilled student"
    comparison += f" (the best, #{best.number:02d}: {percent(dev(best))})"
    if score and dev(trial) < GOOD_ENOUGH * score:
        keeps = below_bar_in_words(dev(trial) / score, label)
        return False, f"Do not ship yet: {name} is the one to export so far, {comparison}, but it {keeps}"
    score_on_dev = trial.scores.get("dev")
    seeds = pluralise(len(score_on_dev.by_seed) if score_on_dev else 0, "seed")
    return (
        True,
        f"Ship {name}: {', '.join([comparison, *costs_in_words(trial, (SPEEDUP, COMPRESSION)), seeds])}",
    )


def _margin(trial: Trial) -> float:
    score = trial.scores.get("dev")
    sd = None if score is None else score.sd
    return POINT if sd is None else DEVIATIONS * sd
