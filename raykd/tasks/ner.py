"""Named-entity recognition: F1 of exact spans and types."""

from raykd.forms import SPANS
from raykd.tasks.labels import LabelTask, span_f1

NER = LabelTask(name="ner", score_name="f1", score_label="F1", metric=span_f1, scheme="bioes", form=SPANS)
