"""Classification of pairs of texts, such as entailment: one label per pair, the share of pairs with the right one."""

from raykd.forms import FLAT
from raykd.metrics import accuracy
from raykd.tasks.labels import LabelTask

PAIRS = LabelTask(
    name="pairs",
    score_name="accuracy",
    score_label="accuracy",
    metric=accuracy,
    scheme="flat",
    form=FLAT,
    unit="sentence",
    pairs=True,
)
