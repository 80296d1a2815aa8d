"""Several annotators as one teacher, combined by their token marginals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self, Union

from pydantic import Field, model_validator
from typing_extensions import override

from raykd.identity import identity
from raykd.teachers.annotations import AnnotationsTeacher
from raykd.teachers.annotator_config import AnnotatorTeacher, AnswerTeacher
from raykd.teachers.checkpoint_annotator import CheckpointAnnotator
from raykd.teachers.python_function import PythonTeacher
from raykd.teachers.spacy_pipeline import SpacyTeacher

ANNOTATORS = (AnnotationsTeacher, PythonTeacher, SpacyTeacher, CheckpointAnnotator)
"""The kinds of annotators."""

if TYPE_CHECKING:
    Member = AnnotatorTeacher
else:
    Member = Annotated[Union[ANNOTATORS], Field(discriminator="kind")]  # noqa: UP007


class CombinedTeacher(AnswerTeacher):
    """The weighted mean of the token marginals of several annotators.

    The best labelling is the best legal one of the mean. A text about which some have no usable answer has the mean of
    the others; a text without any is left out of the training text.
    """

    kind: Literal["combined"] = "combined"
    members: Annotated[tuple[Member, ...], Field(min_length=2)]
    """The annotators, each with its own settings."""
    weights: tuple[Annotated[float, Field(gt=0)], ...] = ()
    """Weight of each member, in their order; without it all have the same."""
    model_signals: ClassVar[tuple[str, ...]] = ("token_marginals", "kbest")

    @model_validator(mode="after")
    def _has_as_many_weights(self) -> Self:
        if self.weights and len(self.weights) != len(self.members):
            raise ValueError(
                f"weights: {len(self.weights)} for {len(self.members)} members; give one for each"
            )
        return self

    @property
    @override
    def title(self) -> str:
        return " + ".join(member.title for member in self.members)

    @property
    @override
    def annotators(self) -> tuple[AnnotatorTeacher, ...]:
        return self.members

    @property
    def shares(self) -> tuple[float, ...]:
        """Weights of the members, which add up to 1."""
        weights = self.weights or (1.0,) * len(self.members)
        return tuple(weight / sum(weights) for weight in weights)

    @override
    def pinned(self, language: str | None = None) -> Self:
        """Return the configuration with the identities of the members' answers."""
        members = tuple(member.pinned(language) for member in self.members)
        checksum = identity("answers", [member.checksum for member in members]).removeprefix("answers-")
        return self.model_copy(update={"members": members, "weights": self.shares, "checksum": checksum})
