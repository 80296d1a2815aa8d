"""Flat tags: one for each word, or for each sentence, without structure."""

from dataclasses import dataclass
from typing import ClassVar

from raykd.forms.form import LabelForm


@dataclass(frozen=True)
class Flat(LabelForm):
    """Flat tags: one for each word, or for each sentence, without structure."""

    name: ClassVar[str] = "flat"


FLAT = Flat()
