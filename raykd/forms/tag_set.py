"""The tags of a corpus and their numbers.

Shapes: Y tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, SupportsIndex

from raykd.identity import PlainObject

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Bool, Int16

    from raykd.forms import form as label_form  # the module, not the class: form.py imports this file
    from raykd.structures import LegalTransitions


@dataclass(frozen=True)
class TagSet:
    """The tags of a corpus in a fixed order; the number of a tag is its place.

    Attributes:
        tags: The tags, in the order of their numbers.
        form: The form that knows the meaning of the tags.

    Raises:
        ValueError: A tag occurs twice, or the tags are not a complete set of the form.
    """

    tags: tuple[str, ...]
    form: label_form.LabelForm

    def __post_init__(self) -> None:
        if len(self._numbers) != len(self.tags):
            twice = sorted({tag for tag in self.tags if self.tags.count(tag) > 1})
            raise ValueError(f"tags occur twice: {', '.join(twice)}")
        self.form.check_tags(self.tags)

    def to_plain(self) -> PlainObject:
        """Return a JSON-able object, read by `raykd.forms.labels_from`."""
        return {"scheme": self.form.scheme, "tags": list(self.tags)}

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {tag: number for number, tag in enumerate(self.tags)}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Counted labels: span types, intents, opening brackets of trees, or the tags themselves."""
        labels = (self.form.label_of(tag) for tag in self.tags)
        return tuple(dict.fromkeys(label for label in labels if label is not None))

    def __len__(self) -> int:
        return len(self.tags)

    def index(self, tag: str) -> int:
        """Return the number of a tag.

        Raises:
            ValueError: The set has no such tag.
        """
        number = self._numbers.get(tag)
        if number is None:
            raise ValueError(f"unknown tag {tag!r} ({', '.join(self.tags)})")
        return number

    def encode(self, tags: Sequence[str]) -> Int16[np.ndarray, " token"]:
        """Return the numbers of tags.

        Raises:
            ValueError: The set lacks one of the tags.
        """
        try:
            return self.form.encode(tags, self._numbers)
        except KeyError as error:
            raise ValueError(f"unknown tag {error.args[0]!r} ({', '.join(self.tags)})") from None

    def decode(self, numbers: Iterable[SupportsIndex]) -> list[str]:
        """Return the tags with the given numbers."""
        return self.form.decode(numbers, self.tags)

    def allowed_places(self) -> Bool[np.ndarray, "2 tag"] | None:
        """Tags allowed at the first word and at later words, bool [2, Y]; None: all tags everywhere."""
        return self.form.allowed_places(self.tags)

    def legal(self) -> LegalTransitions | None:
        """Legal transitions between tags; None where all are legal."""
        if not self.form.constrained:
            return None
        from raykd.structures import LegalTransitions

        return LegalTransitions.from_masks(*self.form.allowed_transitions(self.tags))
