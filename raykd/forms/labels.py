"""What a model predicts: the tags of its corpus, or labels of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, SupportsIndex

from raykd.identity import PlainObject

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Bool

    from raykd.structures import LegalTransitions


class Labels(Protocol):
    """What a model predicts: the tags of its corpus, or labels of its own."""

    @property
    def tags(self) -> tuple[str, ...]:
        """The labels, by their numbers; empty where labels have numbers alone."""
        ...

    def __len__(self) -> int: ...

    def decode(self, numbers: Iterable[SupportsIndex]) -> list[str]:
        """The labels of these numbers."""
        ...

    def allowed_places(self) -> Bool[np.ndarray, "2 tag"] | None:
        """Which labels the first word of a sentence may have, and which the others; None: any of them."""
        ...

    def legal(self) -> LegalTransitions | None:
        """Which labels may follow each other; None where all may."""
        ...

    def to_plain(self) -> PlainObject:
        """JSON-able form, which `raykd.forms.labels_from` reads."""
        ...
