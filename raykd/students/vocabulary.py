"""The vocabulary of a student."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from raykd.corpora.vocabulary_config import (
    BertConfig,
    PiecesConfig,
    PretrainedConfig,
    RobertaConfig,
    WordConfig,
    WordPieceConfig,
)


class TeacherVocabulary(PiecesConfig):
    """The teacher's kind of vocabulary: a checkpoint's own tokenizer, or words or WordPieces built as the teacher's."""

    kind: Literal["teacher"]
    has_mask: ClassVar[bool] = True
    pruned: bool | None = None
    """Prune a checkpoint's vocabulary to the pieces of the student's training and unlabelled text, never of its test;
    null: as the teacher's."""


StudentVocabulary = Annotated[
    WordConfig | WordPieceConfig | BertConfig | RobertaConfig | PretrainedConfig | TeacherVocabulary,
    Field(discriminator="kind"),
]
