"""Spans of words with a type."""

from dataclasses import dataclass
from typing import ClassVar

from raykd.forms.form import LabelForm


@dataclass(frozen=True)
class Spans(LabelForm):
    """Spans of words with a type."""

    name: ClassVar[str] = "spans"


SPANS = Spans()
