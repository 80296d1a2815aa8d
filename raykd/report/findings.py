"""Warnings about the figures of a sweep, and the verdict on its front."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from raykd.figures.front import same_step_count
from raykd.figures.table import AGREEMENT, COMPRESSION, OBJECTIVES, SPEEDUP, Directions
from raykd.figures.trial import Teacher, Trial, common_score_label, teacher_score
from raykd.pluralise import pluralise
from raykd.report.dev_scores import dev_by_seed, dev_score, seeds_in_words
from raykd.report.front_rows import FrontRow, front_rows
from raykd.report.labels_alone import (
    GOOD_ENOUGH,
    below_bar_in_words,
    best_gold_only,
    complete_students,
    gold_only_verdict,
    teacher_weakness,
)
from raykd.report.readable_numbers import costs_in_words, gain, percent, share

FEW = 300
"""Number of dev labels (spans, words or sentences) below which a handful of them moves the score by a point."""


@dataclass(frozen=True)
class Finding:
    """A warning about figures, in one sentence."""

    text: str
    trials: tuple[int, ...] = ()
    """Trials concerned; none: the whole sweep."""
    blocks: bool = False
    """True if the finding is a reason not to ship such a student."""

    def __str__(self) -> str:
        numbers = ", ".join(f"#{number:02d}" for number in self.trials)
        return f"{numbers}: {self.text}" if numbers else self.text


@dataclass(frozen=True)
class Verdict:
    """The decision on shipping.

    Attributes:
        ship: The trial to ship; None if none is good enough yet.
        text: The decision in one sentence, with the figures behind it, or with what to do first.
    """

    ship: Trial | None
    text: str


@dataclass(frozen=True)
class Judgement:
    """The front, the findings and the verdict."""

    rows: Sequence[FrontRow]
    findings: Sequence[Finding]
    verdict: Verdict


def judge(
    trials: Iterable[Trial],
    teachers: Sequence[Teacher],
    *,
    objectives: Directions = OBJECTIVES,
    dev_labels: int | None = None,
    chosen: Trial | None = None,
) -> Judgement:
    """Judge the front of a sweep.

    The verdict begins with the teacher if the teacher is weak. If gold labels alone beat every distilled student, one
    of the students on gold labels is the one to ship.

    Args:
        trials: All trials of the sweep.
        teachers: Its teachers.
        objectives: Objectives of the front.
        dev_labels: Number of labels counted by the score on dev; None if unknown.
        chosen: The student to judge; None: the one that the front suggests.
    """
    trials = list(trials)
    rows = front_rows(trials, teachers, objectives=objectives)
    warnings = findings(rows, teachers, dev_labels=dev_labels)
    gold_only, distilled = complete_students(trials)
    best_on_gold = best_gold_only(teachers, gold_only, distilled) if chosen is None and rows else None
    if best_on_gold is not None:
        ships, text = gold_only_verdict(best_on_gold, teachers, distilled)
        decided = Verdict(best_on_gold if ships else None, text)
    elif not rows and (closest := _closest(trials)):
        decided = Verdict(None, closest)
    else:
        decided = verdict(rows, teachers, warnings, chosen=chosen)
    weak = teacher_weakness(teachers, gold_only, dev_labels=dev_labels)
    return Judgement(rows, warnings, Verdict(decided.ship, f"{weak} {decided.text}".lstrip()))


def infeasible_students(trials: Iterable[Trial]) -> list[Trial]:
    """Return the complete students of the search with a missed constraint."""
    return [
        trial
        for trial in trials
        if trial.state == "COMPLETE" and trial.role == "search" and not trial.feasible
    ]


def most_missed_constraint(trials: Sequence[Trial]) -> tuple[str, int]:
    """Return the constraint missed by most of these trials, and their number; ties go to the largest margin."""
    missed: dict[str, list[float]] = defaultdict(list)
    for trial in trials:
        for source, margin in trial.violations.items():
            if margin > 0:
                missed[source].append(margin)
    source = max(missed, key=lambda constraint: (len(missed[constraint]), max(missed[constraint])))
    return source, len(missed[source])


def empty_front_reason(trials: Iterable[Trial]) -> str:
    """Return the reason why no student is on the front, in a few words."""
    complete = infeasible_students(trials)
    return (
        f"none of {pluralise(len(complete), 'student')} meets search.constraints"
        if complete
        else "no complete student yet"
    )


def _closest(trials: Iterable[Trial]) -> str:
    """The student closest to meeting the constraints of the search, in a sentence; empty if none is complete."""
    complete = infeasible_students(trials)
    if not complete:
        return ""
    best = min(complete, key=lambda trial: max(trial.violations.values()))
    source, margin = max(best.violations.items(), key=lambda item: item[1])
    return (
        f"Do not ship yet: no student meets search.constraints; the closest, #{best.number:02d}, misses {source} by "
        f"{share(margin, 1)}. Relax it, or search other students"
    )


def findings(
    rows: Sequence[FrontRow], teachers: Sequence[Teacher], *, dev_labels: int | None = None
) -> list[Finding]:
    """Return the warnings about the figures of a front.

    Args:
        rows: Students of the front.
        teachers: Teachers of the sweep.
        dev_labels: Number of labels counted by the score on dev; None if unknown.
    """
    label = common_score_label([*teachers, *(row.trial for row in rows)])
    return [
        *_teacher_findings(teachers, label),
        *_student_findings(rows, teachers, label),
        *_baseline_findings(rows),
        *_dev_findings(dev_labels, label),
        *_agreement_findings(label),
    ]


def _teacher_findings(teachers: Sequence[Teacher], label: str) -> Iterable[Finding]:
    for teacher in teachers:
        score, majority = teacher.scores.mean("dev"), teacher.majority_score
        if score == 0.0:
            text = f"the teacher {teacher.name} predicts nothing (dev {label} 0.0); train it longer or in another way"
            yield Finding(text, blocks=True)
        elif majority is not None and (score or 0.0) <= majority:
            text = f"is no better than the most frequent label (dev {label} {percent(majority)}); train it longer"
            yield Finding(f"the teacher {teacher.name} {text}", blocks=True)
        elif teacher.unlearnt:
            text = f"predicts no more than the most frequent label in {', '.join(teacher.unlearnt)}"
            yield Finding(f"the teacher {teacher.name} {text}")
        if teacher.still_rises:
            yield Finding(
                f"the teacher {teacher.name} was best in its last epoch; raise teachers.epochs or teachers.max_steps"
            )


def _student_findings(rows: Sequence[FrontRow], teachers: Sequence[Teacher], label: str) -> Iterable[Finding]:
    yield from _finding_on(
        (row.trial for row in rows if row.trial.still_rises),
        "best in the last epoch, so longer training may give more; raise schedule.epochs or max_steps",
    )
    if reference := teacher_score(teachers):
        yield from _finding_on(
            (row.trial for row in rows if dev_score(row.trial) > reference),
            f"above the teacher (dev {label} {percent(reference)}), which was not at its best; train it longer",
        )
        yield from _finding_on(
            (row.trial for row in rows if row.baseline and dev_score(row.baseline) > reference),
            f"above the teacher (dev {label} {percent(reference)}) even when trained on labels alone; distillation "
            "gains nothing here",
        )
    yield from _finding_on(
        (row.trial for row in rows if not row.trial.feasible),
        "confirmed over more seeds, misses search.constraints",
        blocks=True,
    )
    if any(len(dev_by_seed(row.trial)) == 1 for row in rows):
        text = "one seed a setting, so differences of a point may be chance; set search.confirm: {seeds: 5}"
        yield Finding(text)


def _baseline_findings(rows: Sequence[FrontRow]) -> Iterable[Finding]:
    pairs = [(row.trial, row.baseline, row.gain("dev")) for row in rows if row.baseline is not None]
    below = (trial for trial, _, gained in pairs if gained is not None and gained < 0)
    yield from _finding_on(below, "below the same student on labels alone", blocks=True)
    within = (
        trial
        for trial, twin, gained in pairs
        if gained is not None and (sd := _spread(trial, twin)) is not None and 0 <= gained <= sd
    )
    yield from _finding_on(within, "the gain over labels alone is within the spread of the seeds")
    rising = (trial for trial, twin, _ in pairs if twin.still_rises)
    yield from _finding_on(rising, "their students on labels alone were best in their last epoch")
    epochs = (trial for trial, twin, _ in pairs if not same_step_count(trial, twin))
    text = "compared with students on labels alone of as many epochs, not steps; set baseline: gold"
    yield from _finding_on(epochs, text)


def _finding_on(trials: Iterable[Trial], text: str, *, blocks: bool = False) -> list[Finding]:
    """Zero or one finding on a group of trials."""
    numbers = tuple(sorted(trial.number for trial in trials))
    return [Finding(text, numbers, blocks)] if numbers else []


def _agreement_findings(label: str) -> Iterable[Finding]:
    if label == AGREEMENT:
        yield Finding(
            "agreement is with the teacher's own labels of dev and test, as there are no gold ones; the teacher's is "
            "that of one of its answers with the others: 100 where it has one answer, and no ceiling for students"
        )


def _dev_findings(labels: int | None, label: str) -> Iterable[Finding]:
    if labels is not None and labels < FEW:
        yield Finding(
            f"dev has {labels} labels, so its {label} is uncertain by points; use a larger dev part"
        )


def verdict(
    rows: Sequence[FrontRow],
    teachers: Sequence[Teacher],
    findings: Sequence[Finding],
    *,
    chosen: Trial | None = None,
) -> Verdict:
    """Return whether to ship `chosen`, and why.

    Args:
        rows: Students of the front, the fastest first.
        teachers: Teachers of the sweep.
        findings: Warnings about the front's figures.
        chosen: The student to judge; None: the fastest that keeps `GOOD_ENOUGH` of the teacher's score.
    """
    if not rows:
        return Verdict(
            None,
            "Do not ship yet: no student is complete; see why the trials failed, and go on with --resume",
        )
    label = common_score_label([*teachers, *(row.trial for row in rows)])
    row = _chosen(rows, chosen)
    blocking = [
        finding
        for finding in findings
        if finding.blocks and (not finding.trials or row.trial.number in finding.trials)
    ]
    name = f"#{row.trial.number:02d}"
    if chosen is None and row.teacher_share is not None and row.teacher_share < GOOD_ENOUGH:
        keeps = below_bar_in_words(row.teacher_share, label)
        return Verdict(None, f"Do not ship yet: the best student, {name}, {keeps}")
    if blocking:
        # Only the text: the trial is named already.
        return Verdict(None, f"Do not ship {name} yet: {'; '.join(finding.text for finding in blocking)}")
    if row.teacher_share is None:
        kept_score = f"dev {label} {percent(row.trial.scores.mean('dev'))}"
    else:
        kept_score = f"{share(row.teacher_share)} of the teacher's {label}"
    costs = costs_in_words(row.trial, (SPEEDUP, COMPRESSION))
    gained = row.gain("dev")
    over = [] if gained is None else [f"{gain(gained)} over labels alone"]
    reasons = [kept_score, *costs, *over, seeds_in_words(row.trial)]
    return Verdict(row.trial, f"Ship {name}: {', '.join(reasons)}")


def _chosen(rows: Sequence[FrontRow], chosen: Trial | None) -> FrontRow:
    """The row of `chosen`; by default the fastest good enough, or the best if none is. Rows are sorted by latency."""
    if chosen is not None:
        return next(row for row in rows if row.trial.number == chosen.number)
    good = [row for row in rows if row.teacher_share is not None and row.teacher_share >= GOOD_ENOUGH]
    return good[0] if good else max(rows, key=lambda row: dev_score(row.trial))


def _spread(trial: Trial, twin: Trial) -> float | None:
    """Standard deviation of the difference of two trials over seeds; None with one seed."""
    sds = [score.sd for student in (trial, twin) if (score := student.scores.get("dev")) is not None]
    return None if None in sds or len(sds) < 2 else math.hypot(*(sd or 0.0 for sd in sds))
