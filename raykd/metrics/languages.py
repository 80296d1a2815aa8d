"""Scores over languages: all languages count the same, however many sentences they have."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from raykd.figures.results import Group, Score

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    Metric = Callable[..., float]
    """From gold and predicted labellings of sentences, as a label form compares them, to 0..1."""


def score_languages(
    metric: Metric,
    gold: Sequence[object],
    predicted: Sequence[object],
    languages: Sequence[str],
    targets: Collection[str] = (),
) -> Mapping[Group, Score]:
    """Score the languages, and average the scores of each group of languages.

    Args:
        metric: Function of gold and predicted labellings to a score in 0..1.
        gold: Gold labellings of all sentences.
        predicted: Predicted labellings of all sentences.
        languages: Language of each sentence.
        targets: Languages in the group "target"; the others are in the group "source".

    Returns:
        Group → score, the languages in alphabetical order. The group "target" is missing if no sentence is of a target
        language.

    Raises:
        ValueError: No sentence is of a source language, the numbers of sentences differ, or `metric` refuses its input.
    """
    if set(languages) <= set(targets):
        raise ValueError("there are no sentences to evaluate")
    parts: dict[str, tuple[list[object], list[object]]] = defaultdict(lambda: ([], []))
    for language, gold_labelling, predicted_labelling in zip(languages, gold, predicted, strict=True):
        parts[language][0].append(gold_labelling)
        parts[language][1].append(predicted_labelling)
    values = {language: metric(*parts[language]) for language in sorted(parts)}
    source = {language: value for language, value in values.items() if language not in targets}
    target = {language: value for language, value in values.items() if language in targets}
    scores: dict[Group, Score] = {"source": Score.from_languages(source)}
    return {**scores, "target": Score.from_languages(target)} if target else scores


def score_metrics(
    metric: Metric,
    secondary: Mapping[str, Metric],
    gold: Sequence[object],
    predicted: Sequence[object],
    languages: Sequence[str],
    targets: Collection[str] = (),
) -> Mapping[Group, Score]:
    """Score the languages by a metric and by secondary metrics.

    Args:
        metric: The task's metric.
        secondary: Name → further metric, reported beside it.
        gold: Gold labellings of all sentences.
        predicted: Predicted labellings of all sentences.
        languages: Language of each sentence.
        targets: Languages in the group "target".

    Returns:
        Group → score of `metric`, with the scores of the secondary metrics in `beside`.

    Raises:
        ValueError: See `score_languages`.
    """
    scores, *secondary_scores = (
        score_languages(measure, gold, predicted, languages, targets=targets)
        for measure in (metric, *secondary.values())
    )
    return {
        group: replace(
            score,
            beside={name: groups[group] for name, groups in zip(secondary, secondary_scores, strict=True)},
        )
        for group, score in scores.items()
    }
