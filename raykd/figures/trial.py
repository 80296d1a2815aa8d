"""A trial as the sweep records it: plain data that the store, the tracking server and the reports share.

Scores are fractions between 0 and 1 everywhere below `report/`, which shows them in percent. Dev selects, test is only
reported. What else is known of a trial, and by which name, is listed in `raykd/figures/table.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal

from raykd.figures.cost_grid import Grid
from raykd.figures.results import Group, Part, Scores
from raykd.identity import PlainObject

State = Literal["COMPLETE", "PRUNED", "FAILED", "RUNNING"]
Role = Literal["search", "confirm", "baseline"]
UNFINISHED = ("RUNNING", "FAILED")
"""The states of trials that the next driver begins again."""

STRATEGY = "strategy.name"
"""The setting that names how a trial is trained, where its stages have a name of their own."""
MOST_APART = 3
"""So many differing settings are shown of a trial."""
INDEPENDENT = "independent"
"""The decoding that every table names: the papers' one of MaxEnt models."""
SIZES = {"embedding_dim": "E", "hidden_dim": "H", "character_dim": "C"}
"""Sizes that a student's short name shows where they are not 0, and by which letter."""


@dataclass(frozen=True)
class Trial:
    """One setting of a sweep: what was tried, in which state it ended, and its result."""

    number: int
    state: State
    settings: PlainObject = field(default_factory=dict)
    """Dotted path → plain value, as the sweep resolved it: `student.embedding_dim`, `objective.kind`, …"""
    role: Role = "search"
    objective: str = "gold"
    """The kind of its objective, as it is shown."""
    run_ids: tuple[str, ...] = ()
    """One per seed, and of a student per language one for each."""
    scores: Scores = field(default_factory=Scores)
    cost: Mapping[str, float] = field(default_factory=dict)
    """What its shape costs, absolute and against the teachers, by the names in `raykd/figures/table.py`."""
    wall_s: float | None = None
    """Seconds that its runs took together."""
    violations: Mapping[str, float] = field(default_factory=dict)
    """Constraint of the search → by how much the trial misses it, as a share of what is asked for; 0 or less: it does
    not."""
    steps: int | None = None
    """Optimiser steps that its longest run took."""
    still_rises: int = 0
    """How many of its runs were best in their last epoch: longer training might have given more."""
    message: str = ""
    """Why it failed or was stopped."""
    score_name: str = "f1"
    """The name of the task's score in sweep files, MLflow and CSV: `f1`, `accuracy`."""
    score_label: str = "F1"
    """What people call that score: F1, aspect F1, accuracy."""
    apart: str = ""
    """What sets it apart from the sweep's other trials of the same method and shape, such as `layer=7`; not stored."""
    grid: Grid = field(default_factory=dict)
    """The grid on which the sweep compares each cost that is timed."""
    cost_notes: tuple[str, ...] = ()
    """Sentences on what of its cost is missing or uncertain."""

    @property
    def feasible(self) -> bool:
        """Whether it meets the constraints of its search."""
        return all(margin <= 0 for margin in self.violations.values())

    @property
    def shape(self) -> str:
        """The student's short name, such as `E32 H64 crf`: trials of one shape differ only in how they were trained.
        Where each word is given its own best label, whether or not these are a labelling, it says so.
        """
        name = shape_name(section(self.settings, "student"))
        return f"{name} {INDEPENDENT}" if self.settings.get("decoding") == INDEPENDENT else name

    @property
    def kind(self) -> str:
        """The name of its strategy, such as `D4.2`, or else the kind of its objective."""
        return str(self.settings.get(STRATEGY, self.objective))

    @property
    def method(self) -> str:
        """How it was trained, in short: its strategy, or its objective with the hyper-parameters, `top_wk k=3 T=2`, and
        what sets it apart.
        """
        objective = {} if STRATEGY in self.settings else section(self.settings, "objective")
        return f"{method_name(self.kind, objective)} {self.apart}".rstrip()

    @property
    def name(self) -> str:
        """The trial's short name: `#07 top_wk k=3 T=2 · E32 H64 crf`."""
        return f"#{self.number:02d} {self.method} · {self.shape}".rstrip(" ·")

    def to_plain(self) -> PlainObject:
        """JSON-able form; `from_plain` reads it back."""
        plain = {name: value for name, value in vars(self).items() if name != "apart"}
        return {
            **plain,
            "settings": dict(self.settings),
            "run_ids": list(self.run_ids),
            "scores": self.scores.to_plain(),
            "cost": dict(self.cost),
            "grid": dict(self.grid),
            "cost_notes": list(self.cost_notes),
            "violations": dict(self.violations),
        }

    @staticmethod
    def from_plain(plain: PlainObject) -> Trial:
        """The trial that `to_plain` wrote.

        Raises TypeError for a key that no trial has.
        """
        scores, run_ids = Scores.from_plain(plain["scores"]), tuple(plain["run_ids"])
        return Trial(
            **{**plain, "scores": scores, "run_ids": run_ids, "cost_notes": tuple(plain["cost_notes"])}
        )


@dataclass(frozen=True)
class Teacher:
    """What students are compared with: one teacher of all languages, or one row for the teachers of each language."""

    name: str
    scores: Scores = field(default_factory=Scores)
    cost: Mapping[str, float] = field(default_factory=dict)
    """What all of them cost together."""
    still_rises: int = 0
    """How many of them were best in their last epoch."""
    members: tuple[Teacher, ...] = ()
    """Of an ensemble, what it is the mean of: one row per seed."""
    score_name: str = "f1"
    score_label: str = "F1"
    majority: Mapping[str, float] = field(default_factory=dict)
    """Language → dev score of its most frequent label (`tasks/majority.py`); empty of tasks without such labels."""
    cost_notes: tuple[str, ...] = ()
    """Sentences on what of their cost is missing or uncertain."""

    @property
    def majority_score(self) -> float | None:
        """Mean over languages of the dev score of the most frequent label; None where it is not known."""
        return fmean(self.majority.values()) if self.majority else None

    @property
    def unlearnt(self) -> dict[str, float]:
        """Language → dev score, of the languages in which it predicts no more than the most frequent label.

        A language whose dev has one label only is left out: nothing can be better there.
        """
        score = self.scores.get("dev")
        by_language = {} if score is None else score.by_language
        return {
            name: value for name, value in by_language.items() if value <= self.majority.get(name, 0.0) < 1.0
        }

    def to_plain(self) -> PlainObject:
        """JSON-able form; `from_plain` reads it back."""
        members = [member.to_plain() for member in self.members]
        return {
            **vars(self), "scores": self.scores.to_plain(), "cost": dict(self.cost), "members": members,
            "cost_notes": list(self.cost_notes), "majority": dict(self.majority),
        }  # fmt: skip

    @staticmethod
    def from_plain(plain: PlainObject) -> Teacher:
        """The teacher that `to_plain` wrote. Raises TypeError for a key that no teacher has."""
        members = tuple(Teacher.from_plain(member) for member in plain["members"])
        scores, notes = Scores.from_plain(plain["scores"]), tuple(plain["cost_notes"])
        return Teacher(**{**plain, "scores": scores, "members": members, "cost_notes": notes})


TrialOrTeacher = Trial | Teacher


def teacher_score(teachers: Sequence[Teacher], part: Part = "dev", group: Group = "source") -> float | None:
    """The score that students are compared with: the mean over languages of the best teacher of each language.

    Teachers without scores by language count by their mean, the best of them. None without teachers or scores.
    """
    scores = [score for teacher in teachers if (score := teacher.scores.get(part, group)) is not None]
    best: dict[str, float] = {}
    for score in scores:
        for language, value in score.by_language.items():
            best[language] = max(value, best.get(language, 0.0))
    if best:
        return sum(best.values()) / len(best)
    return max((score.mean for score in scores), default=None)


def majority_score(teachers: Sequence[Teacher]) -> float | None:
    """The dev score of the most frequent label; None where it is not known."""
    return max((each.majority_score for each in teachers if each.majority_score is not None), default=None)


def section(settings: PlainObject, name: str) -> PlainObject:
    """The settings below `name`, by their last word: `objective.top_wk.k` and `objective.k` both give `k`.

    Where two paths end in the same word the shallower counts: `student.kind` before
    `student.vocabulary.kind`.
    """
    below = sorted(
        (path for path in settings if path.startswith(f"{name}.")), key=lambda path: -path.count(".")
    )
    return {path.rsplit(".", 1)[-1]: settings[path] for path in below}


def shape_name(student: PlainObject) -> str:
    """Short name of a student's shape: `E32 H64 crf`; with characters and two layers `E32 H64 C25 L2 crf`."""
    parts = [f"{letter}{student[key]}" for key, letter in SIZES.items() if student.get(key)]
    if (layers := student.get("layers") or 1) != 1:  # a checkpoint's are not said
        parts.append(f"L{layers}")
    if "decoder" in student:
        parts.append(str(student["decoder"]))
    return " ".join(parts) or str(student.get("kind", ""))


def method_name(kind: str, objective: PlainObject) -> str:
    """Short name of an objective: its kind, k, the temperature unless it is 1, and the mode if that is global."""
    parts = [kind]
    if objective.get("k") is not None:
        parts.append(f"k={objective['k']}")
    if objective.get("temperature", 1) != 1:
        parts.append(f"T={objective['temperature']:g}")
        if objective.get("temperature_mode") == "global":
            parts.append("global")
    return " ".join(parts)


def with_distinguishing_settings(trials: Sequence[Trial]) -> list[Trial]:
    """The trials, each with the settings in which it differs from others of the same role, method and shape."""
    alike: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in trials:
        alike.setdefault((trial.role, trial.method, trial.shape), []).append(trial)
    found = {}
    for own in alike.values():
        paths = dict.fromkeys(path for trial in own for path in trial.settings)
        differing = [path for path in paths if len({repr(trial.settings.get(path)) for trial in own}) > 1]
        for trial in own:
            parts = [
                f"{_last(path, differing)}={_shown(trial.settings[path])}"
                for path in differing
                if path in trial.settings
            ]
            found[trial.number, trial.role] = " ".join(
                [*parts[:MOST_APART], *(["…"] if len(parts) > MOST_APART else [])]
            )
    return [replace(trial, apart=found[trial.number, trial.role]) for trial in trials]


def _last(path: str, among: Sequence[str]) -> str:
    """As many of the path's last words as tell it from the others."""
    words = path.split(".")
    for count in range(1, len(words)):
        name = ".".join(words[-count:])
        if sum(other == name or other.endswith(f".{name}") for other in among) == 1:
            return name
    return path


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def common_score_name(scored: Iterable[TrialOrTeacher]) -> str:
    """The score's name in sweep files, MLflow and CSV; all trials and teachers of a sweep have one task."""
    return next((each.score_name for each in scored), "f1")


def common_score_label(scored: Iterable[TrialOrTeacher]) -> str:
    """What people call the score of these trials and teachers."""
    return next((each.score_label for each in scored), "F1")


def format_scores(scored: TrialOrTeacher) -> str:
    """Its means in percent: `dev F1 84.1, test F1 83.0`; with target languages `dev F1 84.1, test F1 83.0 (target
    61.5)`.
    """
    means = (scored.scores.mean("dev"), scored.scores.mean("test"), scored.scores.mean("test", "target"))
    dev, test, target = (100 * (mean or 0.0) for mean in means)
    after = "" if means[2] is None else f" (target {target:.1f})"
    return f"dev {scored.score_label} {dev:.1f}, test {scored.score_label} {test:.1f}{after}"


def target_languages(scored: Iterable[TrialOrTeacher]) -> list[str]:
    """The target languages, in the order in which they occur."""
    return list(dict.fromkeys(language for each in scored for language in each.scores.targets))


def languages_outside_mean(scored: Iterable[TrialOrTeacher]) -> list[str]:
    """The target languages over which no mean is, in the order in which they occur."""
    return list(dict.fromkeys(language for each in scored for language in each.scores.outside))


def can_resume(trials: Sequence[Trial]) -> bool:
    """Whether `--resume` would begin a trial: what these need is not known before they are complete."""
    return not trials or any(trial.state in UNFINISHED for trial in trials)


def all_trials_ended(trials: Sequence[Trial]) -> bool:
    """Whether a sweep with these trials has none to do."""
    return bool(trials) and all(trial.state != "RUNNING" for trial in trials)
