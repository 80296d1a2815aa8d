"""The common configuration of all students."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from raykd.layers.model_config import ModelConfig
from raykd.students.vocabulary import TeacherVocabulary

if TYPE_CHECKING:
    from raykd.forms.tree.codes import Encoding
    from raykd.students.embeddings import EmbeddingsConfig
    from raykd.students.vocabulary import StudentVocabulary


class Student(ModelConfig):
    """The configuration of a student; entries of the table set `kind` and state their capabilities."""

    trained: ClassVar[bool] = True

    if TYPE_CHECKING:
        tokenizer: StudentVocabulary
        embeddings: EmbeddingsConfig | None
        """Initial values of the piece vectors; None: those of the new model or of the checkpoint."""
        projection: int | Literal["teacher"] | None
        """Width of the projection, `teacher` for that of the teacher's states; None: no projection."""
        encoding: Encoding
        """Encoding of a word's head as a label."""
        word_dropout: float
        """Share of words read as unknown in training."""

    @property
    def taken_from_teacher(self) -> tuple[str, ...]:
        """Names of settings copied from the teacher."""
        stand_ins = {
            "vocabulary": isinstance(self.tokenizer, TeacherVocabulary),
            "projection": self.projection == "teacher",
        }
        return tuple(name for name, is_stand_in in stand_ins.items() if is_stand_in)


def refuse_uneven_heads(embedding_dim: int, heads: int) -> None:
    """Refuse an embedding size not divisible by the number of attention heads.

    Args:
        embedding_dim: components E of a state.
        heads: attention heads.

    Raises:
        ValueError: E is not divisible by `heads`.
    """
    if embedding_dim % heads:
        nearest = heads * max(1, round(embedding_dim / heads))
        problem = f"embedding_dim {embedding_dim} is not divisible by heads {heads}"
        raise ValueError(f"{problem}; set embedding_dim: {nearest}, or another number of heads")
