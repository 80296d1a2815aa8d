"""Scores of predictions: entity F1, tag accuracy, scores over languages, and significance of a few seeds."""

from raykd.metrics.accuracy import accuracy
from raykd.metrics.entities import F1, entity_f1
from raykd.metrics.intents import exact_match, intent_accuracy, slot_f1
from raykd.metrics.languages import score_languages, score_metrics
from raykd.metrics.significance import epsilon_min, seeds_needed, violation_ratio

__all__ = [
    "F1",
    "accuracy",
    "entity_f1",
    "epsilon_min",
    "exact_match",
    "intent_accuracy",
    "score_languages",
    "score_metrics",
    "seeds_needed",
    "slot_f1",
    "violation_ratio",
]
