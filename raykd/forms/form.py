"""What every label form has in common.

A label form says what labels look like: flat tags, spans, an utterance, the steps of a tree, a tree of heads, pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class LabelForm:
    """One label form. It has no state: two of one class are equal."""

    name: ClassVar[str]
    """Its key in `FORMS`."""
