"""An utterance with its intent and the slots of its words."""

from dataclasses import dataclass
from typing import ClassVar

from raykd.forms.form import LabelForm


@dataclass(frozen=True)
class Utterance(LabelForm):
    """An utterance with its intent and the slots of its words."""

    name: ClassVar[str] = "utterance"


UTTERANCES = Utterance()
