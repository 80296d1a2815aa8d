"""Named-entity recognition: F1 of exact spans and types."""

from raykd.forms import SPANS
from raykd.tasks.task import Task, span_f1

NER = Task(name="ner", form=SPANS, score_name="f1", score_label="F1", metric=span_f1)
