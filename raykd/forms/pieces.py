"""Pieces that are hidden in text."""

from dataclasses import dataclass
from typing import ClassVar

from raykd.forms.form import LabelForm


@dataclass(frozen=True)
class Pieces(LabelForm):
    """Pieces that are hidden in text."""

    name: ClassVar[str] = "pieces"


PIECES = Pieces()
