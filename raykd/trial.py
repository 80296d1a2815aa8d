"""A trial as the sweep records it: plain data that the store, the tracking server and the reports share.

F1 is a fraction between 0 and 1 everywhere below `report/`, which shows it in percent. `dev_*` selects,
`test_*` is only reported. Spread: `*_sd` is the sample standard deviation over seeds, `*_languages_sd` the one
over languages.

`*_f1` is the score of the task's own metric, whatever that is: `metric` says what people call it. Means are
over source languages, those with labels; `*_f1_target` is the mean over the others, the `targets`, which
have a test and no dev. `*_by_language` holds both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

State = Literal["COMPLETE", "PRUNED", "FAILED", "RUNNING"]
Role = Literal["search", "baseline"]

LABELLED = {"embedding_dim": "E", "hidden_dim": "H", "character_dim": "C"}
"""Sizes that a student's short name shows where they are not 0, and by which letter."""

LISTS = ("run_ids", "dev_f1_by_seed", "test_f1_by_seed", "test_f1_target_by_seed", "targets")
"""Fields that JSON gives back as lists."""


@dataclass(frozen=True)
class Trial:
    """One setting of a sweep: what was tried, in which state it ended, what came out (None: not known)."""

    number: int
    state: State
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Dotted path → plain value, as the sweep resolved it: `student.embedding_dim`, `objective.kind`, …"""
    role: Role = "search"
    objective: str = "gold"
    """The objective's kind."""
    run_ids: tuple[str, ...] = ()
    """One per seed."""
    dev_f1: float | None = None
    dev_f1_sd: float | None = None
    dev_f1_by_seed: tuple[float, ...] = ()
    """Each run's own, in the order of `run_ids`; their mean is `dev_f1`."""
    dev_f1_languages_sd: float | None = None
    dev_f1_by_language: Mapping[str, float] = field(default_factory=dict)
    test_f1: float | None = None
    test_f1_sd: float | None = None
    test_f1_by_seed: tuple[float, ...] = ()
    test_f1_languages_sd: float | None = None
    test_f1_by_language: Mapping[str, float] = field(default_factory=dict)
    test_f1_target: float | None = None
    test_f1_target_sd: float | None = None
    test_f1_target_by_seed: tuple[float, ...] = ()
    test_f1_target_languages_sd: float | None = None
    targets: tuple[str, ...] = ()
    metric: str = "F1"
    """What `dev_f1` and `test_f1` are called: F1, aspect F1, accuracy."""
    latency_ms: float | None = None
    """p50 of one sentence at batch 1."""
    latency_ms_p90: float | None = None
    latency_ms_batch32: float | None = None
    """p50 of one whole batch of 32."""
    parameters: int | None = None
    bytes: int | None = None
    compression: float | None = None
    """The teacher's parameters over the student's."""
    speedup: float | None = None
    """The teacher's latency over the student's."""
    wall_s: float | None = None
    message: str = ""
    """Why it failed or was stopped."""

    @property
    def shape(self) -> str:
        """The student's short name, such as `E32 H64 crf`: trials of one shape differ in how they were
        trained only.
        """
        return shape_name(section(self.settings, "student"))

    @property
    def method(self) -> str:
        """The objective's short name with its hyper-parameters, such as `top_wk k=3 T=2`."""
        return method_name(self.objective, section(self.settings, "objective"))

    @property
    def name(self) -> str:
        """How people call the trial: `#07 top_wk k=3 T=2 · E32 H64 crf`."""
        return f"#{self.number:02d} {self.method} · {self.shape}".rstrip(" ·")

    def to_plain(self) -> dict[str, Any]:
        """JSON-able form; `from_plain` reads it back."""
        return asdict(self)

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Trial:
        """The trial that `to_plain` wrote (lists become tuples again).

        Raises TypeError for a key no trial has.
        """
        return Trial(**{**plain, **{name: tuple(plain.get(name, ())) for name in LISTS}})


@dataclass(frozen=True)
class Teacher:
    """What students are compared with: one teacher of all languages, or one row for the teachers of each
    language.
    """

    name: str
    dev_f1: float | None = None
    test_f1: float | None = None
    dev_f1_by_language: Mapping[str, float] = field(default_factory=dict)
    test_f1_by_language: Mapping[str, float] = field(default_factory=dict)
    test_f1_target: float | None = None
    targets: tuple[str, ...] = ()
    metric: str = "F1"
    parameters: int | None = None
    bytes: int | None = None
    latency_ms: float | None = None
    members: tuple[Teacher, ...] = ()
    """Of an ensemble, what it is the mean of: one row per seed."""

    def to_plain(self) -> dict[str, Any]:
        """JSON-able form; `from_plain` reads it back."""
        return asdict(self)

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Teacher:
        """The teacher that `to_plain` wrote. Raises TypeError for a key no teacher has."""
        members = tuple(Teacher.from_plain(member) for member in plain.get("members", ()))
        return Teacher(**{**plain, "targets": tuple(plain.get("targets", ())), "members": members})


def teacher_f1(teachers: Sequence[Teacher], part: Literal["dev", "test"] = "dev") -> float | None:
    """F1 that students are held against, a fraction: the mean over source languages of the best teacher of
    each language.

    Teachers without F1 by language count by their own F1, the best of them. None without teachers or scores.
    """
    best: dict[str, float] = {}
    for teacher in teachers:
        for language, f1 in getattr(teacher, f"{part}_f1_by_language").items():
            if language not in teacher.targets:
                best[language] = max(f1, best.get(language, 0.0))
    if best:
        return sum(best.values()) / len(best)
    return max((f1 for t in teachers if (f1 := getattr(t, f"{part}_f1")) is not None), default=None)


def section(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The settings below `name`, by their last word: `objective.top_wk.k` and `objective.k` both give `k`.

    Where two paths end in the same word the shallower counts: `student.kind` before
    `student.vocabulary.kind`.
    """
    below = sorted(
        (path for path in settings if path.startswith(f"{name}.")), key=lambda path: -path.count(".")
    )
    return {path.rsplit(".", 1)[-1]: settings[path] for path in below}


def shape_name(student: Mapping[str, Any]) -> str:
    """Short name of a student's shape: `E32 H64 crf`; with characters and two layers `E32 H64 C25 L2 crf`."""
    parts = [f"{letter}{student[key]}" for key, letter in LABELLED.items() if student.get(key)]
    if student.get("layers", 1) != 1:
        parts.append(f"L{student['layers']}")
    if "decoder" in student:
        parts.append(str(student["decoder"]))
    return " ".join(parts) or str(student.get("kind", ""))


def method_name(kind: str, objective: Mapping[str, Any]) -> str:
    """Short name of an objective: its kind, k and temperature (left out at 1), and the mode when it is
    global.
    """
    parts = [kind]
    if objective.get("k") is not None:
        parts.append(f"k={objective['k']}")
    if objective.get("temperature", 1) != 1:
        parts.append(f"T={objective['temperature']:g}")
        if objective.get("temperature_mode") == "global":
            parts.append("global")
    return " ".join(parts)


def metric_of(scored: Iterable[Trial | Teacher]) -> str:
    """What the score of these trials and teachers is called; all of a sweep have one task."""
    return next((each.metric for each in scored), "F1")


def scores_of(scored: Trial | Teacher) -> str:
    """Its means in percent, as a sentence goes on: `dev F1 84.1, test F1 83.0`, and those of target languages:
    `dev F1 84.1, test F1 83.0 (target 61.5)`."""
    dev, test, target = (
        100 * (mean or 0.0) for mean in (scored.dev_f1, scored.test_f1, scored.test_f1_target)
    )
    apart = "" if scored.test_f1_target is None else f" (target {target:.1f})"
    return f"dev {scored.metric} {dev:.1f}, test {scored.metric} {test:.1f}{apart}"


def targets_of(scored: Iterable[Trial | Teacher]) -> list[str]:
    """The languages whose mean stands apart, in the order met."""
    return list(dict.fromkeys(language for each in scored for language in each.targets))
