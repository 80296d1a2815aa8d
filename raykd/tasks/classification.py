"""Text classification: one label per sentence, the share of sentences with the right one."""

from raykd.forms import FLAT
from raykd.metrics import accuracy
from raykd.tasks.labels import LabelTask

CLASSIFICATION = LabelTask(
    name="classification",
    score_name="accuracy",
    score_label="accuracy",
    metric=accuracy,
    scheme="flat",
    form=FLAT,
    unit="sentence",
)
