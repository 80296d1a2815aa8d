"""The record of a trial: plain data for the store, the tracking server and the reports.

Scores are fractions between 0 and 1 everywhere below `report/`, which shows them in percent. Dev selects, test is only
reported. `raykd/figures/table.py` lists all figures of a trial and their names.
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
"""The setting with the name of a trial's strategy, if its stages have one."""
MOST_APART = 3
"""Maximum number of differing settings shown for a trial."""
INDEPENDENT = "independent"
"""The decoding that every table names: the one of the papers for MaxEnt models."""
SIZE_LETTERS = {"embedding_dim": "E", "hidden_dim": "H", "character_dim": "C"}
"""Setting of a size → its letter in a student's short name; a size of 0 is left out."""
CUT_SIZES = {"heads": "heads", "feed_forward": "neurons", "embedding_rank": "rank"}
"""Setting of a student that is cut from a checkpoint → its word in the student's short name."""


@dataclass(frozen=True)
class Trial:
    """One setting of a sweep: its settings, the state in which it ended, and its result.

    Attributes:
        settings: Dotted path → plain value, as the sweep resolved it: `student.embedding_dim`, `objective.kind`, …
        objective: The kind of the objective, as it is shown.
        run_ids: Ids of its runs: one per seed, or one per seed and language.
        cost: Cost of its shape, absolute and against the teachers, by the names in `raykd/figures/table.py`.
        wall_s: Duration of all its runs in seconds, added up.
        violations: Constraint of the search → the share by which the trial misses it; 0 or less if it meets it.
        steps: Optimiser steps of its longest run.
        still_rises: Number of its runs that were best in their last epoch: longer training might have given more.
        message: Why it failed or was stopped.
        score_name: The name of the task's score in sweep files, MLflow and CSV: `f1`, `accuracy`.
        score_label: The readable name of the score: F1, aspect F1, accuracy.
        apart: Settings that tell it from other trials of the same method and shape, such as `layer=7`; not stored.
        grid: The grid on which the sweep compares each timed cost.
        cost_notes: Sentences on missing or uncertain costs.
    """

    number: int
    state: State
    settings: PlainObject = field(default_factory=dict)
    role: Role = "search"
    objective: str = "gold"
    run_ids: tuple[str, ...] = ()
    scores: Scores = field(default_factory=Scores)
    cost: Mapping[str, float] = field(default_factory=dict)
    wall_s: float | None = None
    violations: Mapping[str, float] = field(default_factory=dict)
    steps: int | None = None
    still_rises: int = 0
    message: str = ""
    score_name: str = "f1"
    score_label: str = "F1"
    apart: str = ""
    grid: Grid = field(default_factory=dict)
    cost_notes: tuple[str, ...] = ()

    @property
    def feasible(self) -> bool:
        """True if the trial meets the constraints of the search."""
        return all(margin <= 0 for margin in self.violations.values())

    @property
    def shape(self) -> str:
        """The student's short name, such as `E32 H64 crf`; trials of one shape differ only in how they were trained.

        It ends in `independent` if each word gets its best label, even where the labels together are no legal
        labelling.
        """
        name = shape_name(section(self.settings, "student"))
        return f"{name} {INDEPENDENT}" if self.settings.get("decoding") == INDEPENDENT else name

    @property
    def kind(self) -> str:
        """The name of the strategy, such as `D4.2`, or else the kind of the objective."""
        return str(self.settings.get(STRATEGY, self.objective))

    @property
    def method(self) -> str:
        """The training method in short, such as `top_wk k=3 T=2`.

        Strategy, or objective with its hyper-parameters, and the settings that tell the trial from similar ones.
        """
        objective = {} if STRATEGY in self.settings else section(self.settings, "objective")
        return f"{method_name(self.kind, objective)} {self.apart}".rstrip()

    @property
    def name(self) -> str:
        """The trial's short name: `#07 top_wk k=3 T=2 · E32 H64 crf`."""
        return f"#{self.number:02d} {self.method} · {self.shape}".rstrip(" ·")

    def to_plain(self) -> PlainObject:
        """Return the JSON-able form; `from_plain` reads it back."""
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
        """Read a trial back from the form of `to_plain`.

        Raises:
            TypeError: A key is no field of a trial.
        """
        scores, run_ids = Scores.from_plain(plain["scores"]), tuple(plain["run_ids"])
        return Trial(
            **{**plain, "scores": scores, "run_ids": run_ids, "cost_notes": tuple(plain["cost_notes"])}
        )


@dataclass(frozen=True)
class Teacher:
    """The baseline of the students: one teacher of all languages, or the teachers of each language together.

    Attributes:
        cost: Cost of all of them together.
        still_rises: Number of them that were best in their last epoch.
        members: Of an ensemble: one row per seed.
        majority: Language → dev score of its most frequent label (`tasks/majority.py`); empty for tasks without such
            labels.
        cost_notes: Sentences on missing or uncertain costs.
    """

    name: str
    scores: Scores = field(default_factory=Scores)
    cost: Mapping[str, float] = field(default_factory=dict)
    still_rises: int = 0
    members: tuple[Teacher, ...] = ()
    score_name: str = "f1"
    score_label: str = "F1"
    majority: Mapping[str, float] = field(default_factory=dict)
    cost_notes: tuple[str, ...] = ()

    @property
    def majority_score(self) -> float | None:
        """Mean over languages of the dev score of the most frequent label; None if unknown."""
        return fmean(self.majority.values()) if self.majority else None

    @property
    def unlearnt(self) -> dict[str, float]:
        """Language → dev score, for languages in which the teacher is no better than the most frequent label.

        A language whose dev has one label only is left out: no score can be better there.
        """
        score = self.scores.get("dev")
        by_language = {} if score is None else score.by_language
        return {
            name: value for name, value in by_language.items() if value <= self.majority.get(name, 0.0) < 1.0
        }

    def to_plain(self) -> PlainObject:
        """Return the JSON-able form; `from_plain` reads it back."""
        members = [member.to_plain() for member in self.members]
        return {
            **vars(self), "scores": self.scores.to_plain(), "cost": dict(self.cost), "members": members,
            "cost_notes": list(self.cost_notes), "majority": dict(self.majority),
        }  # fmt: skip

    @staticmethod
    def from_plain(plain: PlainObject) -> Teacher:
        """Read a teacher back from the form of `to_plain`.

        Raises:
            TypeError: A key is no field of a teacher.
        """
        members = tuple(Teacher.from_plain(member) for member in plain["members"])
        scores, notes = Scores.from_plain(plain["scores"]), tuple(plain["cost_notes"])
        return Teacher(**{**plain, "scores": scores, "members": members, "cost_notes": notes})


TrialOrTeacher = Trial | Teacher


def teacher_score(teachers: Sequence[Teacher], part: Part = "dev", group: Group = "source") -> float | None:
    """Return the score to compare students with: the mean over languages of the best teacher of each language.

    Teachers without scores by language count by their mean; the best of them is returned.

    Args:
        teachers: The teachers' rows.
        part: "dev" or "test".
        group: "source" or "target" languages.

    Returns:
        The score, 0 to 1; None without teachers or scores.
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
    """Return the dev score of the most frequent label; None if unknown.

    Args:
        teachers: The teachers' rows.
    """
    return max(
        (teacher.majority_score for teacher in teachers if teacher.majority_score is not None), default=None
    )


def section(settings: PlainObject, name: str) -> PlainObject:
    """Return the settings below `name`, by the last word of their path.

    `objective.top_wk.k` and `objective.k` both give `k`. If two paths end in the same word the shallower counts:
    `student.kind` before `student.vocabulary.kind`.

    Args:
        settings: Dotted path → value.
        name: First word of the paths.
    """
    below = sorted(
        (path for path in settings if path.startswith(f"{name}.")), key=lambda path: -path.count(".")
    )
    return {path.rsplit(".", 1)[-1]: settings[path] for path in below}


def shape_name(student: PlainObject) -> str:
    """Return the short name of a student's shape: `E32 H64 crf`; with characters and two layers `E32 H64 C25 L2 crf`.

    A student that is cut from an encoder is called by what stays of it: `layers 0,1,2 heads 6 neurons 512 rank 64`.

    Args:
        student: Settings of the student, as `section` returns them.
    """
    parts = [f"{letter}{student[key]}" for key, letter in SIZE_LETTERS.items() if student.get(key)]
    layers = student.get("layers") or 1
    if isinstance(layers, list):
        parts.append(f"layers {','.join(map(str, layers))}")
    elif layers != 1:
        parts.append(f"L{layers}")
    parts += [
        f"{word} {student[key]}" for key, word in CUT_SIZES.items() if "path" in student and student.get(key)
    ]
    if "decoder" in student:
        parts.append(str(student["decoder"]))
    return " ".join(parts) or str(student.get("kind", ""))


def method_name(kind: str, objective: PlainObject) -> str:
    """Return the short name of an objective: kind, k, the temperature unless it is 1, and the mode if it is global."""
    parts = [kind]
    if objective.get("k") is not None:
        parts.append(f"k={objective['k']}")
    if objective.get("temperature", 1) != 1:
        parts.append(f"T={objective['temperature']:g}")
        if objective.get("temperature_mode") == "global":
            parts.append("global")
    return " ".join(parts)


def with_distinguishing_settings(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials, each with the settings that tell it from others of the same role, method and shape.

    Args:
        trials: All trials that are shown together.
    """
    groups: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.role, trial.method, trial.shape), []).append(trial)
    distinguishing = {}
    for similar in groups.values():
        paths = dict.fromkeys(path for trial in similar for path in trial.settings)
        differing = [path for path in paths if len({repr(trial.settings.get(path)) for trial in similar}) > 1]
        for trial in similar:
            parts = [
                f"{_shortest_name(path, differing)}={_format_value(trial.settings[path])}"
                for path in differing
                if path in trial.settings
            ]
            distinguishing[trial.number, trial.role] = " ".join(
                [*parts[:MOST_APART], *(["…"] if len(parts) > MOST_APART else [])]
            )
    return [replace(trial, apart=distinguishing[trial.number, trial.role]) for trial in trials]


def _shortest_name(path: str, paths: Sequence[str]) -> str:
    """Return the path's last words, as many as are unique among the paths."""
    words = path.split(".")
    for count in range(1, len(words)):
        name = ".".join(words[-count:])
        if sum(candidate == name or candidate.endswith(f".{name}") for candidate in paths) == 1:
            return name
    return path


def _format_value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def common_score_name(scored: Iterable[TrialOrTeacher]) -> str:
    """Return the score's name in sweep files, MLflow and CSV; all trials and teachers of a sweep share it.

    Args:
        scored: Trials and teachers.
    """
    return next((row.score_name for row in scored), "f1")


def common_score_label(scored: Iterable[TrialOrTeacher]) -> str:
    """Return the readable name of the score of trials and teachers.

    Args:
        scored: Trials and teachers.
    """
    return next((row.score_label for row in scored), "F1")


def format_scores(scored: TrialOrTeacher) -> str:
    """Return the means in percent as text: `dev F1 84.1, test F1 83.0 (target 61.5)`.

    Args:
        scored: A trial or teacher; without target languages the part in brackets is missing.
    """
    means = (scored.scores.mean("dev"), scored.scores.mean("test"), scored.scores.mean("test", "target"))
    dev, test, target = (100 * (mean or 0.0) for mean in means)
    target_text = "" if means[2] is None else f" (target {target:.1f})"
    return f"dev {scored.score_label} {dev:.1f}, test {scored.score_label} {test:.1f}{target_text}"


def target_languages(scored: Iterable[TrialOrTeacher]) -> list[str]:
    """Return the target languages, in the order in which they occur.

    Args:
        scored: Trials and teachers.
    """
    return list(dict.fromkeys(language for row in scored for language in row.scores.targets))


def languages_outside_mean(scored: Iterable[TrialOrTeacher]) -> list[str]:
    """Return the target languages left out of means, in the order in which they occur.

    Args:
        scored: Trials and teachers.
    """
    return list(dict.fromkeys(language for row in scored for language in row.scores.outside))


def can_resume(trials: Sequence[Trial]) -> bool:
    """True if `--resume` would begin a trial; without trials it always would.

    Args:
        trials: All trials of the sweep.
    """
    return not trials or any(trial.state in UNFINISHED for trial in trials)


def all_trials_ended(trials: Sequence[Trial]) -> bool:
    """True if there are trials and none is running.

    Args:
        trials: All trials of the sweep.
    """
    return bool(trials) and all(trial.state != "RUNNING" for trial in trials)
