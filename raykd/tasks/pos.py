"""Part-of-speech tagging: the share of words with the right tag."""

from raykd.forms import FLAT
from raykd.metrics import accuracy
from raykd.tasks.labels import LabelTask

POS = LabelTask(
    name="pos", score_name="accuracy", score_label="accuracy", metric=accuracy, scheme="flat", form=FLAT
)
