"""A metric over languages: each language counts the same, however many sentences it has."""

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
    """`metric` of each language's sentences (gold, predicted), in the order of language names, by group of languages.

    `languages` names the language of each sentence, `targets` those that are a group of their own. There is no group
    "target" where no sentence is of a target language. Raises ValueError without any sentence of a source language, and
    where the numbers of sentences differ; what else is refused is up to `metric`.
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
    """`score_languages` of `metric`, each score with those of the metrics that stand `beside` it, by their names."""
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
