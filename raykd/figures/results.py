"""What runs and measurements give, typed: scores, the result of a run, the cost of a shape.

A score is a fraction between 0 and 1 everywhere below `report/`, which shows it in percent. Each of them has a JSON
form (`to_plain`) that `from_plain` reads back to an equal value: a result that was found is the result that was made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean, pstdev, stdev
from typing import Literal

from raykd.identity import PlainObject

Part = Literal["dev", "test"]
"""Dev selects, test is only reported."""
Group = Literal["source", "target"]
"""Languages with labels, and those without; targets have a test and no dev."""
GROUPS: tuple[Group, ...] = ("source", "target")


@dataclass(frozen=True)
class Score:
    """The task's metric on one part and one group of languages."""

    mean: float
    """Over languages, and over seeds where there are several."""
    languages_sd: float
    """Population standard deviation over languages (the mean of the seeds' own)."""
    by_language: Mapping[str, float]
    """Each language's own, a mean over seeds."""
    by_seed: tuple[float, ...]
    """Each seed's mean over languages, in the order of the seeds."""
    beside: Mapping[str, Score] = field(default_factory=dict)
    """Other metrics of the same predictions, by their names: UAS beside LAS."""
    outside: tuple[str, ...] = ()
    """Languages of `by_language` over which the mean is not."""

    @property
    def sd(self) -> float | None:
        """Sample standard deviation (n − 1) over seeds; None for one seed."""
        return stdev(self.by_seed) if len(self.by_seed) > 1 else None

    @staticmethod
    def from_languages(by_language: Mapping[str, float], outside: Collection[str] = ()) -> Score:
        """The score of one run: every language counts the same, however many sentences it has; those `outside` count
        in no mean, unless there are no others.
        """
        apart = tuple(name for name in by_language if name in outside)
        apart = apart if len(apart) < len(by_language) else ()
        values = [value for name, value in by_language.items() if name not in apart]
        mean = fmean(values)
        return Score(mean, pstdev(values), dict(by_language), (mean,), outside=apart)

    @staticmethod
    def from_plain(plain: PlainObject) -> Score:
        """The score that `to_plain` wrote."""
        beside = {name: Score.from_plain(own) for name, own in plain["beside"].items()}
        by_seed, outside = tuple(plain["by_seed"]), tuple(plain["outside"])
        return Score(**{**plain, "by_seed": by_seed, "beside": beside, "outside": outside})

    def to_plain(self) -> PlainObject:
        """JSON-able form."""
        return {
            **vars(self),
            "by_language": dict(self.by_language),
            "by_seed": list(self.by_seed),
            "beside": {name: score.to_plain() for name, score in self.beside.items()},
            "outside": list(self.outside),
        }

    def excluding(self, outside: Collection[str]) -> Score:
        """The score of one run with these languages outside of its mean."""
        beside = {name: own.excluding(outside) for name, own in self.beside.items()}
        return replace(Score.from_languages(self.by_language, outside), beside=beside)

    @staticmethod
    def over_seeds(scores: Sequence[Score]) -> Score:
        """One score of several runs that differ by their seed."""
        languages = scores[0].by_language
        return Score(
            mean=fmean(score.mean for score in scores),
            languages_sd=fmean(score.languages_sd for score in scores),
            by_language={name: fmean(score.by_language[name] for score in scores) for name in languages},
            by_seed=tuple(seed for score in scores for seed in score.by_seed),
            beside={
                name: Score.over_seeds([one.beside[name] for one in scores]) for name in scores[0].beside
            },
            outside=scores[0].outside,
        )

    @staticmethod
    def over_languages(scores: Sequence[Score]) -> Score:
        """One score of several runs of one seed, each with languages of its own."""
        by_language = {name: value for score in scores for name, value in score.by_language.items()}
        beside = {
            name: Score.over_languages([one.beside[name] for one in scores]) for name in scores[0].beside
        }
        outside = {name for score in scores for name in score.outside}
        return replace(Score.from_languages(by_language, outside), beside=beside)


@dataclass(frozen=True)
class Scores:
    """The scores of one run, trial or teacher, by part and group."""

    by_part: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)

    def get(self, part: Part, group: Group = "source", beside: str = "") -> Score | None:
        """The score of one part and group, or the metric `beside` it; None where there is none."""
        score = self.by_part.get(part, {}).get(group)
        return score.beside.get(beside) if beside and score is not None else score

    def mean(self, part: Part, group: Group = "source", beside: str = "") -> float | None:
        """Its mean; None where there is none."""
        score = self.get(part, group, beside)
        return None if score is None else score.mean

    def by_language(self, part: Part, beside: str = "") -> dict[str, float]:
        """Each language's own, of both groups."""
        found = (self.get(part, group, beside) for group in GROUPS)
        return {language: value for score in found if score for language, value in score.by_language.items()}

    @property
    def targets(self) -> tuple[str, ...]:
        """The target languages."""
        score = self.get("test", "target")
        return () if score is None else tuple(score.by_language)

    @property
    def outside(self) -> tuple[str, ...]:
        """Those of them over which the mean is not."""
        score = self.get("test", "target")
        return () if score is None else score.outside

    def to_plain(self) -> PlainObject:
        """JSON-able form."""
        return {
            part: {group: score.to_plain() for group, score in groups.items()}
            for part, groups in self.by_part.items()
        }

    @staticmethod
    def from_plain(plain: PlainObject) -> Scores:
        """The scores that `to_plain` wrote."""
        return Scores(
            {
                part: {group: Score.from_plain(score) for group, score in groups.items()}
                for part, groups in plain.items()
            }
        )

    @staticmethod
    def over_seeds(scores: Iterable[Scores]) -> Scores:
        """One of several runs that differ by their seed."""
        return _combined(scores, Score.over_seeds)

    @staticmethod
    def over_languages(scores: Iterable[Scores]) -> Scores:
        """One of several runs of one seed, each with languages of its own."""
        return _combined(scores, Score.over_languages)


def _combined(every: Iterable[Scores], combine: Callable[[Sequence[Score]], Score]) -> Scores:
    """What `combine` makes of the scores of each part and group."""
    merged: dict[str, dict[str, list[Score]]] = {}
    for each in every:
        for part, groups in each.by_part.items():
            for group, score in groups.items():
                merged.setdefault(part, {}).setdefault(group, []).append(score)
    return Scores(
        {part: {group: combine(own) for group, own in groups.items()} for part, groups in merged.items()}
    )


@dataclass(frozen=True)
class RunResult:
    """What one finished run gives."""

    run_id: str
    scores: Scores
    best_epoch: int
    """The epoch, counted over all stages from 0, whose weights were kept; -1 where nothing was trained."""
    epochs: tuple[PlainObject, ...]
    """One mapping of figures for each epoch."""
    wall_s: float
    workers: int
    parameters: int
    bytes: int
    weights_sha256: str = ""

    @property
    def steps(self) -> int:
        """Optimiser steps that it took."""
        return self.epochs[-1]["steps"] if self.epochs else 0

    @property
    def still_rises(self) -> bool:
        """Whether its best epoch is its last: longer training might have given more."""
        return bool(self.epochs) and self.best_epoch == self.epochs[-1]["epoch"]

    def to_plain(self) -> PlainObject:
        """JSON-able form."""
        return {**vars(self), "scores": self.scores.to_plain(), "epochs": list(self.epochs)}

    @staticmethod
    def from_plain(plain: PlainObject) -> RunResult:
        """The result that `to_plain` wrote."""
        scores = Scores.from_plain(plain["scores"])
        return RunResult(**{**plain, "scores": scores, "epochs": tuple(plain["epochs"])})


LOADED = 0.25
"""The share of a machine that other programs may use while it is timed; above it a latency says little."""


@dataclass(frozen=True)
class Cost:
    """The cost of a shape: its figures by their names in `raykd/figures/table.py`, and how they were measured."""

    figures: Mapping[str, float]
    shape: PlainObject = field(default_factory=dict)
    hardware: PlainObject = field(default_factory=dict)
    shared: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What of the sizes are parts that other models may have too: their own figures, by what they are."""
    spreads: Mapping[str, float] = field(default_factory=dict)
    """Of figures that are timed: the standard deviation of the passes that count, as a share of the figure."""
    load: float = 0.0
    """The share of the machine that other programs used before or during the measurement, whichever was more."""
    no_export: str = ""
    """Why the model has no export, and so no figure of it; empty where it has one."""
    notes: tuple[str, ...] = ()
    """Sentences on what is odd about the figures."""

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    @property
    def loaded(self) -> bool:
        """Whether the machine was under load when it was timed."""
        return self.load > LOADED

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on what is missing or uncertain, for tables and cards."""
        no_export = f"no export, so its speed is that of PyTorch: {self.no_export}"
        loaded = f"timed while other programs used {self.load:.0%} of the machine"
        return (*[no_export] * bool(self.no_export), *[loaded] * self.loaded, *self.notes)

    def to_plain(self) -> PlainObject:
        """JSON-able form."""
        return {**asdict(self), "notes": list(self.notes)}

    @staticmethod
    def from_plain(plain: PlainObject) -> Cost:
        """The cost that `to_plain` wrote."""
        return Cost(**{**plain, "notes": tuple(plain["notes"])})
