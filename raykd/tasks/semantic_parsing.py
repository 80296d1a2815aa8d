"""Semantic parsing: the tree of intents and slots of an utterance, written step by step.

Trees are those of mTOP's files, or are made of intents and slots. The score is the share of trees that are right (exact
match); beside it the share of right intents at the root, and how much of what is generated is a tree at all. What is
none is wrong.
"""

from types import MappingProxyType

from raykd.forms import STEPS
from raykd.metrics.brackets import root_accuracy, tree_exact_match, well_formed
from raykd.tasks.task import Task

SEMANTIC_PARSING = Task(
    name="semantic_parsing",
    form=STEPS,
    score_name="exact_match",
    score_label="exact match",
    metric=tree_exact_match,
    other_metrics=MappingProxyType({"intent_accuracy": root_accuracy, "well_formed": well_formed}),
)
