"""The steps that write a tree of intents and slots."""

from dataclasses import dataclass
from typing import ClassVar

from raykd.forms.form import LabelForm


@dataclass(frozen=True)
class Steps(LabelForm):
    """The steps that write a tree of intents and slots."""

    name: ClassVar[str] = "steps"


STEPS = Steps()
