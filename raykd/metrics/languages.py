"""A metric over languages: each language counts the same, however many sentences it has."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean, pstdev
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from raykd.metrics.accuracy import accuracy
from raykd.metrics.entities import entity_f1

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

TagMetric = Literal["f1", "accuracy"]


@dataclass(frozen=True)
class PerLanguage:
    """A metric in 0..1: mean and population standard deviation over source languages, the same over target
    languages (None without any), and each language's own."""

    mean: float
    standard_deviation: float
    by_language: Mapping[str, float]
    targets: tuple[str, ...] = ()
    target_mean: float | None = None
    target_standard_deviation: float | None = None


def _f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    return entity_f1(gold, predicted).f1


METRICS: Mapping[str, Callable[[Sequence[Sequence[str]], Sequence[Sequence[str]]], float]]
METRICS = MappingProxyType({"f1": _f1, "accuracy": accuracy})


def evaluate_tags(
    metric: TagMetric,
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    languages: Sequence[str],
    *,
    targets: Collection[str] = (),
) -> PerLanguage:
    """Entity F1 (BIOES tags) or tag accuracy of each language's sentences, in the order of language names.

    `languages` names each sentence's language, `targets` those whose mean stands apart. Raises ValueError
    without any sentence of a source language, for an unknown metric, and where the sentences differ in
    number or length.
    """
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}; allowed: {', '.join(METRICS)}")
    if set(languages) <= set(targets):
        raise ValueError("there are no sentences to evaluate")
    parts: dict[str, tuple[list[Sequence[str]], list[Sequence[str]]]] = defaultdict(lambda: ([], []))
    for language, one, other in zip(languages, gold, predicted, strict=True):
        parts[language][0].append(one)
        parts[language][1].append(other)
    scores = {language: METRICS[metric](*parts[language]) for language in sorted(parts)}
    own = [score for language, score in scores.items() if language not in targets]
    foreign = {language: score for language, score in scores.items() if language in targets}
    if not foreign:
        return PerLanguage(fmean(own), pstdev(own), scores)
    apart = (tuple(foreign), fmean(foreign.values()), pstdev(foreign.values()))
    return PerLanguage(fmean(own), pstdev(own), scores, *apart)
