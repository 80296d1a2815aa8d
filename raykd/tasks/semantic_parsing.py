"""Semantic parsing: the tree of intents and slots of an utterance, written step by step.

Trees come from mTOP's files, or are made from intents and slots. The score is the share of right trees (exact match).
Further metrics are the share of right intents at the root, and the share of outputs that are well-formed trees. An
output that is no tree counts as wrong.
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
