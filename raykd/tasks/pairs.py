"""Classification of pairs of texts, such as entailment: one label per pair, the share of pairs with the right one."""

from raykd.forms import FLAT
from raykd.metrics import accuracy
from raykd.tasks.task import Task

PAIRS = Task(
    name="pairs",
    form=FLAT,
    one_label_per="pair",
    score_name="accuracy",
    score_label="accuracy",
    metric=accuracy,
)
