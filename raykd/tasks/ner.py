"""Named-entity recognition: F1 of exact spans and types."""

from raykd.metrics import entity_f1
from raykd.tasks.labels import Labels, LabelTask


def span_f1(gold: Labels, predicted: Labels) -> float:
    """Micro-averaged F1 of exact spans and types, in BIOES tags."""
    return entity_f1(gold, predicted).f1


NER = LabelTask(name="ner", score_name="f1", score_label="F1", metric=span_f1, scheme="bioes")
