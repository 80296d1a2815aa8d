"""Aspect terms with polarity: F1 of exact spans and types.

A term's polarity is its type: a term found with the wrong polarity is wrong (SemEval-2016, task 5).
"""

from raykd.forms import SPANS
from raykd.tasks.task import Task, span_f1

ASPECT = Task(name="aspect", form=SPANS, score_name="f1", score_label="aspect F1", metric=span_f1)
