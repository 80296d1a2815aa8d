"""Values of figures: scores with their deviations, sizes of a shape, and the combined costs of several models."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from raykd.figures.results import Cost
from raykd.figures.sizes import Shape
from raykd.figures.table import COSTS, SIZES, Figure
from raykd.figures.trial import TrialOrTeacher


def has_values(figure: Figure, scored: Iterable[TrialOrTeacher]) -> bool:
    """True if any of the trials and teachers has a value for the figure.

    Args:
        figure: The figure.
        scored: Trials and teachers.
    """
    return any(figure.read(row) is not None for row in scored)


def score_values(figure: Figure, scored: TrialOrTeacher) -> dict[str, float | None]:
    """Return the mean of a score and the standard deviations over seeds and languages, by names in CSV and MLflow.

    Args:
        figure: A score.
        scored: A trial or teacher.

    Raises:
        ValueError: The figure is not a score.
    """
    if figure.score is None:
        raise ValueError(f"{figure.name} is not a score")
    name, score = figure.full_name(scored.score_name), scored.scores.get(*figure.score)
    return {
        name: score and score.mean,
        f"{name}_sd": score and score.sd,
        f"{name}_languages_sd": score and score.languages_sd,
    }


def language_values(figure: Figure, scored: TrialOrTeacher) -> dict[str, float]:
    """Return language → mean on the score's part; for a test score, of source and target languages.

    Args:
        figure: A score.
        scored: A trial or teacher.

    Raises:
        ValueError: The figure is not a score.
    """
    if figure.score is None:
        raise ValueError(f"{figure.name} is not a score")
    return scored.scores.by_language(figure.score[0], figure.metric)


def compute_sizes(shape: Shape) -> dict[str, float]:
    """Return name → size of a shape, without sizes that are unknown.

    Args:
        shape: An untrained model.
    """
    return {
        figure.name: value
        for figure in SIZES
        if figure.of_shape is not None and (value := figure.of_shape(shape)) is not None
    }


def combine_model_costs(costs: Iterable[Cost]) -> dict[str, float]:
    """Return the cost of several models, one for each language or group of languages.

    Each figure is summed or averaged as its entry says. A part that several models share, such as one frozen encoder,
    counts once.

    Args:
        costs: One cost per model.

    Returns:
        Name → value, for figures that every model has.
    """
    model_costs = list(costs)
    parts = [part for cost in model_costs for part in cost.shared.items()]
    repeated_parts = [
        part_figures for place, (key, part_figures) in enumerate(parts) if key in dict(parts[:place])
    ]
    combined: dict[str, float] = {}
    for figure in COSTS:
        values = [cost.figures[figure.name] for cost in model_costs if figure.name in cost.figures]
        if values and len(values) == len(model_costs):
            repeated = sum(part_figures.get(figure.name, 0) for part_figures in repeated_parts)
            combined[figure.name] = sum(values) - repeated if figure.over_models == "sum" else fmean(values)
    return combined
