"""The common configuration of all students."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

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

    @property
    def layers_in_teacher(self) -> tuple[int, ...]:
        """Number in the teacher's encoder of each layer of the student, from the input, 0; empty if not cut from it."""
        return ()

    def with_teacher_path(self, teacher: ModelConfig) -> Self:
        """Return the configuration with the checkpoint of the teacher in place of `path: teacher`.

        Args:
            teacher: configuration of the teacher.
        """
        return self

    @property
    def starts_from_member(self) -> int | None:
        """Member of the teacher from whose weights training starts, 0 of a single teacher; None: from none."""
        return None


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
