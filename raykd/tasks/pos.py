"""Part-of-speech tagging: the share of words with the right tag."""

from raykd.forms import FLAT
from raykd.metrics import accuracy
from raykd.tasks.task import Task

POS = Task(name="pos", form=FLAT, score_name="accuracy", score_label="accuracy", metric=accuracy)
