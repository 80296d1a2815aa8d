"""Intent and slots of an utterance: the share of utterances with both right (exact match), and a score of each."""

from types import MappingProxyType

from raykd.forms import UTTERANCES
from raykd.metrics import exact_match, intent_accuracy, slot_f1
from raykd.tasks.task import Task

INTENT_SLOTS = Task(
    name="intent_slots",
    form=UTTERANCES,
    score_name="exact_match",
    score_label="exact match",
    metric=exact_match,
    other_metrics=MappingProxyType({"intent_accuracy": intent_accuracy, "slot_f1": slot_f1}),
)
