"""Text classification: one label per sentence, the share of sentences with the right one."""

from raykd.forms import FLAT
from raykd.metrics import accuracy
from raykd.tasks.task import Task

CLASSIFICATION = Task(
    name="classification",
    form=FLAT,
    one_label_per="sentence",
    score_name="accuracy",
    score_label="accuracy",
    metric=accuracy,
)
