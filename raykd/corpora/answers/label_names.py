"""Other names for the labels of an annotator or a checkpoint: `{PERSON: PER, GPE: LOC, "*": O}`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from raykd.corpora.answers.labellings import AnswerError, UnmappedError
from raykd.metrics.bioes import OUTSIDE

REST = "*"
"""Key of the name of all labels that are not named."""


class LeftOutError(AnswerError):
    """A label with the name null: a labelling that has it is impossible."""


@dataclass(frozen=True)
class LabelNames:
    """The labels of an annotator as labels of a corpus.

    Attributes:
        labels: Labels of the corpus: types of spans, tags or classes.
        names: Label of the annotator → label of the corpus; `O` for none, null to leave labellings out that have it.
    """

    labels: frozenset[str]
    names: Mapping[str, str | None]

    @staticmethod
    def of(labels: Collection[str], names: Mapping[str, str | None]) -> LabelNames:
        """Return the names for the labels of a corpus.

        Args:
            labels: Labels of the corpus.
            names: Label of the annotator → label of the corpus.
        """
        return LabelNames(frozenset(labels), dict(names))

    def rename(self, label: str) -> str:
        """Return the corpus' label for a label of the annotator, or `O`.

        Raises:
            UnmappedError: The label is none of the corpus, and has no other name.
            LeftOutError: The label's name is null.
        """
        name = self.names.get(label, label if label in self.labels else self.names.get(REST, label))
        if name is None:
            raise LeftOutError(f"label {label!r} is left out (teachers.labels)")
        if name != OUTSIDE and name not in self.labels:
            raise UnmappedError(label)
        return name

    def faults(self) -> list[str]:
        """Return the names that are no labels of the corpus, as sentences."""
        unknown = {name for name in self.names.values() if name is not None} - self.labels - {OUTSIDE}
        return [
            f"{name!r} is no label of the corpus ({', '.join(sorted(self.labels))})"
            for name in sorted(unknown)
        ]
