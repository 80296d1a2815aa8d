"""Results of runs and measurements, typed: scores, the result of a run, the cost of a shape.

A score is a fraction between 0 and 1 everywhere below `report/`, which shows it in percent. Each class has a JSON form
(`to_plain`) that `from_plain` reads back to an equal value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean, pstdev, stdev
from typing import Literal

from raykd.identity import PlainObject

Part = Literal["dev", "test"]
"""Dev selects; test is only reported."""
Group = Literal["source", "target"]
"""Languages with labels, and languages without; targets have a test and no dev."""
GROUPS: tuple[Group, ...] = ("source", "target")


@dataclass(frozen=True)
class Score:
    """The task's metric on one part and one group of languages.

    Attributes:
        mean: Mean over languages, and over seeds if there are several.
        languages_sd: Population standard deviation over languages (mean of the seeds' deviations).
        by_language: Language → score, a mean over seeds.
        by_seed: Mean over languages of each seed, in the order of the seeds.
        beside: Other metrics of the same predictions by name, such as UAS for LAS.
        outside: Languages of `by_language` that the mean leaves out.
    """

    mean: float
    languages_sd: float
    by_language: Mapping[str, float]
    by_seed: tuple[float, ...]
    beside: Mapping[str, Score] = field(default_factory=dict)
    outside: tuple[str, ...] = ()

    @property
    def sd(self) -> float | None:
        """Sample standard deviation (n − 1) over seeds; None for one seed."""
        return stdev(self.by_seed) if len(self.by_seed) > 1 else None

    @staticmethod
    def from_languages(by_language: Mapping[str, float], outside: Collection[str] = ()) -> Score:
        """Return the score of one run: every language counts the same, however many sentences it has.

        Args:
            by_language: Language → score.
            outside: Languages that the mean leaves out, unless there are no others.
        """
        left_out = tuple(name for name in by_language if name in outside)
        left_out = left_out if len(left_out) < len(by_language) else ()
        values = [value for name, value in by_language.items() if name not in left_out]
        mean = fmean(values)
        return Score(mean, pstdev(values), dict(by_language), (mean,), outside=left_out)

    @staticmethod
    def from_plain(plain: PlainObject) -> Score:
        """Read a score back from the form of `to_plain`."""
        beside = {name: Score.from_plain(plain_score) for name, plain_score in plain["beside"].items()}
        by_seed, outside = tuple(plain["by_seed"]), tuple(plain["outside"])
        return Score(**{**plain, "by_seed": by_seed, "beside": beside, "outside": outside})

    def to_plain(self) -> PlainObject:
        """Return the JSON-able form."""
        return {
            **vars(self),
            "by_language": dict(self.by_language),
            "by_seed": list(self.by_seed),
            "beside": {name: score.to_plain() for name, score in self.beside.items()},
            "outside": list(self.outside),
        }

    def excluding(self, outside: Collection[str]) -> Score:
        """Return the score of one run with some languages left out of the mean."""
        beside = {name: score.excluding(outside) for name, score in self.beside.items()}
        return replace(Score.from_languages(self.by_language, outside), beside=beside)

    @staticmethod
    def over_seeds(scores: Sequence[Score]) -> Score:
        """Return one score for several runs with different seeds."""
        languages = scores[0].by_language
        return Score(
            mean=fmean(score.mean for score in scores),
            languages_sd=fmean(score.languages_sd for score in scores),
            by_language={name: fmean(score.by_language[name] for score in scores) for name in languages},
            by_seed=tuple(seed for score in scores for seed in score.by_seed),
            beside={
                name: Score.over_seeds([score_of_seed.beside[name] for score_of_seed in scores])
                for name in _common_metrics(scores)
            },
            outside=scores[0].outside,
        )

    @staticmethod
    def over_languages(scores: Sequence[Score]) -> Score:
        """Return one score for several runs of one seed, each with different languages."""
        by_language = {name: value for score in scores for name, value in score.by_language.items()}
        beside = {
            name: Score.over_languages([score_of_run.beside[name] for score_of_run in scores])
            for name in _common_metrics(scores)
        }
        outside = {name for score in scores for name in score.outside}
        return replace(Score.from_languages(by_language, outside), beside=beside)


def _common_metrics(scores: Sequence[Score]) -> list[str]:
    """Names of the metrics beside a score that all of some runs have."""
    return [name for name in scores[0].beside if all(name in score.beside for score in scores)]


@dataclass(frozen=True)
class Scores:
    """The scores of one run, trial or teacher, by part and group."""

    by_part: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)

    def get(self, part: Part, group: Group = "source", beside: str = "") -> Score | None:
        """Return the score of one part and group.

        Args:
            part: "dev" or "test".
            group: "source" or "target" languages.
            beside: Name of another metric of the same predictions; empty for the task's score.

        Returns:
            The score; None if there is none.
        """
        score = self.by_part.get(part, {}).get(group)
        return score.beside.get(beside) if beside and score is not None else score

    def mean(self, part: Part, group: Group = "source", beside: str = "") -> float | None:
        """Return the mean of one part and group.

        Args:
            part: "dev" or "test".
            group: "source" or "target" languages.
            beside: Name of another metric of the same predictions; empty for the task's score.

        Returns:
            The mean; None if there is none.
        """
        score = self.get(part, group, beside)
        return None if score is None else score.mean

    def by_language(self, part: Part, beside: str = "") -> dict[str, float]:
        """Return language → score, for the languages of both groups.

        Args:
            part: "dev" or "test".
            beside: Name of another metric of the same predictions; empty for the task's score.
        """
        scores = (self.get(part, group, beside) for group in GROUPS)
        return {language: value for score in scores if score for language, value in score.by_language.items()}

    @property
    def targets(self) -> tuple[str, ...]:
        """The target languages."""
        score = self.get("test", "target")
        return () if score is None else tuple(score.by_language)

    @property
    def outside(self) -> tuple[str, ...]:
        """The target languages left out of the mean."""
        score = self.get("test", "target")
        return () if score is None else score.outside

    def to_plain(self) -> PlainObject:
        """Return the JSON-able form."""
        return {
            part: {group: score.to_plain() for group, score in groups.items()}
            for part, groups in self.by_part.items()
        }

    @staticmethod
    def from_plain(plain: PlainObject) -> Scores:
        """Read scores back from the form of `to_plain`."""
        return Scores(
            {
                part: {group: Score.from_plain(score) for group, score in groups.items()}
                for part, groups in plain.items()
            }
        )

    @staticmethod
    def over_seeds(scores: Iterable[Scores]) -> Scores:
        """Return the scores of several runs with different seeds, as one."""
        return _combined(scores, Score.over_seeds)

    @staticmethod
    def over_languages(scores: Iterable[Scores]) -> Scores:
        """Return the scores of several runs of one seed, each with different languages, as one."""
        return _combined(scores, Score.over_languages)


def _combined(all_scores: Iterable[Scores], combine: Callable[[Sequence[Score]], Score]) -> Scores:
    """Combine scores by `combine`, part by part and group by group."""
    merged: dict[str, dict[str, list[Score]]] = {}
    for scores in all_scores:
        for part, groups in scores.by_part.items():
            for group, score in groups.items():
                merged.setdefault(part, {}).setdefault(group, []).append(score)
    return Scores(
        {
            part: {group: combine(group_scores) for group, group_scores in groups.items()}
            for part, groups in merged.items()
        }
    )


@dataclass(frozen=True)
class RunResult:
    """The result of one finished run.

    Attributes:
        best_epoch: The epoch, counted over all stages from 0, whose weights were kept; -1 if nothing was trained.
        epochs: One mapping of figures for each epoch.
        wall_s: Duration in seconds.
        parameters: Number of parameters of the model.
        bytes: Size of the weights in bytes.
    """

    run_id: str
    scores: Scores
    best_epoch: int
    epochs: tuple[PlainObject, ...]
    wall_s: float
    workers: int
    parameters: int
    bytes: int
    weights_sha256: str = ""

    @property
    def steps(self) -> int:
        """Number of optimiser steps of the run."""
        return self.epochs[-1]["steps"] if self.epochs else 0

    @property
    def still_rises(self) -> bool:
        """True if the best epoch is the last: longer training might have given more."""
        return bool(self.epochs) and self.best_epoch == self.epochs[-1]["epoch"]

    def to_plain(self) -> PlainObject:
        """Return the JSON-able form."""
        return {**vars(self), "scores": self.scores.to_plain(), "epochs": list(self.epochs)}

    @staticmethod
    def from_plain(plain: PlainObject) -> RunResult:
        """Read a result back from the form of `to_plain`."""
        scores = Scores.from_plain(plain["scores"])
        return RunResult(**{**plain, "scores": scores, "epochs": tuple(plain["epochs"])})


LOADED = 0.25
"""The share of a machine that other programs may use during a measurement; above it a latency says little."""


@dataclass(frozen=True)
class Cost:
    """The cost of a shape: its figures by their names in `raykd/figures/table.py`, and how they were measured.

    Attributes:
        figures: Name → value.
        shape: The configuration that decides the shape.
        hardware: The machine on which the shape was timed.
        shared: Parts that other models may have too, such as a frozen encoder → the part's figures.
        spreads: Timed figure → standard deviation of the passes that count, as a share of the figure.
        load: Share of the machine that other programs used before or during the measurement, whichever was more.
        no_export: Reason why the model has no export, and so no figures of it; empty if it has one.
        notes: Sentences on odd figures.
    """

    figures: Mapping[str, float]
    shape: PlainObject = field(default_factory=dict)
    hardware: PlainObject = field(default_factory=dict)
    shared: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    spreads: Mapping[str, float] = field(default_factory=dict)
    load: float = 0.0
    no_export: str = ""
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    @property
    def loaded(self) -> bool:
        """True if the machine was under load during the measurement."""
        return self.load > LOADED

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on missing or uncertain figures, for tables and cards."""
        speed = "so its speed is that of PyTorch" if self.figures else "and no cost"
        no_export = f"no export, {speed}: {self.no_export}"
        loaded = f"timed while other programs used {self.load:.0%} of the machine"
        return (*[no_export] * bool(self.no_export), *[loaded] * self.loaded, *self.notes)

    def to_plain(self) -> PlainObject:
        """Return the JSON-able form."""
        return {**asdict(self), "notes": list(self.notes)}

    @staticmethod
    def from_plain(plain: PlainObject) -> Cost:
        """Read a cost back from the form of `to_plain`."""
        return Cost(**{**plain, "notes": tuple(plain["notes"])})
