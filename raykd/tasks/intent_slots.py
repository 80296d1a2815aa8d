"""Intent and slots of an utterance: the share of utterances with both right (exact match), each beside it.

An utterance is a sentence with one more word in front, whose label is the intent (`corpora/utterances.py`), so that
this is a task of labels like any other.
"""

from types import MappingProxyType

from raykd.forms import UTTERANCES
from raykd.metrics import exact_match, intent_accuracy, slot_f1
from raykd.tasks.labels import LabelTask

INTENT_SLOTS = LabelTask(
    name="intent_slots",
    score_name="exact_match",
    score_label="exact match",
    metric=exact_match,
    scheme="utterance",
    form=UTTERANCES,
    beside=MappingProxyType({"intent_accuracy": intent_accuracy, "slot_f1": slot_f1}),
)
