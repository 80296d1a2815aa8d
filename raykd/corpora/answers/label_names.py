"""Other names for the labels of an annotator or a checkpoint: `{PERSON: PER, GPE: LOC, "*": O}`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from raykd.corpora.answers.labellings import AnswerError, UnmappedError
from raykd.forms.tag_schemes import has_span_form
from raykd.metrics.bioes import OUTSIDE

REST = "*"
"""Key of the name of all labels that are not named."""


class LeftOutError(AnswerError):
    """A label with the name null: a labelling that has it is impossible, and its probability is left out."""


@dataclass(frozen=True)
class LabelNames:
    """The labels of an annotator or a checkpoint as labels of a corpus.

    Attributes:
        labels: Labels of the corpus: types of spans, tags or classes.
        names: Other label → label of the corpus; `O` for none, null to leave out whatever has the label.
    """

    labels: frozenset[str]
    names: Mapping[str, str | None]

    @staticmethod
    def of(labels: Collection[str], names: Mapping[str, str | None]) -> LabelNames:
        """Return the names for the labels of a corpus.

        Args:
            labels: Labels of the corpus.
            names: Other label → label of the corpus.
        """
        return LabelNames(frozenset(labels), dict(names))

    def rename(self, label: str) -> str:
        """Return the corpus' label for another label, or `O`.

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

    def rename_tag(self, tag: str, *, spans: bool) -> str:
        """Return a tag with the corpus' label in place of its own: `B-PERSON` becomes `B-PER` or `O`.

        Args:
            tag: Tag of a word.
            spans: True if tags are letters with types of spans; false if a tag is a label itself.

        Raises:
            UnmappedError: As of `rename`, with the type of the tag.
            LeftOutError: As of `rename`.
        """
        if tag == OUTSIDE:
            return OUTSIDE
        if not spans or not has_span_form(tag):
            return self.rename(tag)
        name = self.rename(tag[2:])
        # Corpora of opinions have spans of a type O.
        return OUTSIDE if name == OUTSIDE and name not in self.labels else f"{tag[0]}-{name}"

    def faults(self) -> list[str]:
        """Return the names that are no labels of the corpus, as sentences."""
        unknown = {name for name in self.names.values() if name is not None} - self.labels - {OUTSIDE}
        return [
            f"{name!r} is no label of the corpus ({', '.join(sorted(self.labels))})"
            for name in sorted(unknown)
        ]
