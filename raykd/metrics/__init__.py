"""How well tags were predicted: entity F1, tag accuracy, either of them over languages, and what a few seeds prove."""

from raykd.metrics.accuracy import accuracy
from raykd.metrics.entities import F1, entity_f1
from raykd.metrics.languages import PerLanguage, TagMetric, evaluate_tags
from raykd.metrics.significance import epsilon_min, seeds_needed, violation_ratio

__all__ = [
    "F1",
    "PerLanguage",
    "TagMetric",
    "accuracy",
    "entity_f1",
    "epsilon_min",
    "evaluate_tags",
    "seeds_needed",
    "violation_ratio",
]
