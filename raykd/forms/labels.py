"""The labels of a model: the tags of its corpus, or labels made from these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, SupportsIndex

from raykd.identity import PlainObject

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Bool

    from raykd.structures import LegalTransitions


class Labels(Protocol):
    """The labels of a model."""

    @property
    def tags(self) -> tuple[str, ...]:
        """The labels, in the order of their numbers; empty for labels that are numbers only."""
        ...

    def __len__(self) -> int: ...

    def decode(self, numbers: Iterable[SupportsIndex]) -> list[str]:
        """Return the labels with the given numbers."""
        ...

    def allowed_places(self) -> Bool[np.ndarray, "2 tag"] | None:
        """Labels allowed at the first word and at later words, bool [2, Y]; None: all labels everywhere."""
        ...

    def legal(self) -> LegalTransitions | None:
        """Legal transitions between labels; None where all are legal."""
        ...

    def to_plain(self) -> PlainObject:
        """Return a JSON-able object, read by `raykd.forms.labels_from`."""
        ...
