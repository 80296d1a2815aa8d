"""Students trained on gold labels alone, beside the teacher and the distilled students.

They reveal a weak teacher, and a sweep in which distillation gained nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raykd.figures.front import GOLD, with_confirmed_scores
from raykd.figures.table import COMPRESSION, LATENCY, SPEEDUP
from raykd.figures.trial import Teacher, Trial, common_score_label, majority_score, teacher_score
from raykd.report.dev_scores import dev_score, seeds_in_words
from raykd.report.readable_numbers import costs_in_words, percent, tell_apart

GOOD_ENOUGH = 0.95
"""Share of the teacher's dev score that a student to ship keeps, unless the user sets conditions."""
WEAK_BELOW = 0.5
"""Lowest dev score of a teacher that is not weak, whatever the students reach."""
POINT = 0.01
"""Margin by which a teacher must be above a student with one seed to be clearly better."""
DEVIATIONS = 2
"""The same margin for a student with several seeds, in standard deviations over the seeds."""


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
    best = max(gold_only, key=dev_score, default=None)
    if best is not None and score <= dev_score(best) + _margin(best):
        reasons.append(f"labels alone give {percent(dev_score(best))} (#{best.number:02d})")
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
    bar = max(*map(dev_score, distilled), majority_score(teachers) or 0.0)
    better = [trial for trial in gold_only if dev_score(trial) > bar]
    good_enough = GOOD_ENOUGH * (teacher_score(teachers) or 0.0)
    fastest = min(
        (trial for trial in better if dev_score(trial) >= good_enough),
        key=lambda trial: LATENCY.read(trial) or 0.0,
        default=None,
    )
    return fastest or max(better, key=dev_score, default=None)


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
    best, score = max(distilled, key=dev_score), teacher_score(teachers)
    comparison = f"dev {label} {percent(dev_score(trial))}, above every distilled student"
    comparison += f" (the best, #{best.number:02d}: {percent(dev_score(best))})"
    if score and dev_score(trial) < GOOD_ENOUGH * score:
        keeps = below_bar_in_words(dev_score(trial) / score, label)
        return False, f"Do not ship yet: {name} is the one to export so far, {comparison}, but it {keeps}"
    reasons = [comparison, *costs_in_words(trial, (SPEEDUP, COMPRESSION)), seeds_in_words(trial)]
    return True, f"Ship {name}: {', '.join(reasons)}"


def _margin(trial: Trial) -> float:
    """Difference from which a teacher is clearly better than `trial`."""
    score = trial.scores.get("dev")
    sd = None if score is None else score.sd
    return POINT if sd is None else DEVIATIONS * sd
