"""How well tags were predicted: entity F1, tag accuracy, and either of them over languages."""

from raykd.metrics.accuracy import accuracy
from raykd.metrics.entities import F1, entity_f1
from raykd.metrics.languages import PerLanguage, TagMetric, evaluate_tags

__all__ = ["F1", "PerLanguage", "TagMetric", "accuracy", "entity_f1", "evaluate_tags"]
