"""What every student's configuration states, whatever its encoder is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from raykd.layers.model_config import ModelConfig
from raykd.students.vocabulary import TeacherVocabulary

if TYPE_CHECKING:
    from raykd.forms.tree.codes import Encoding
    from raykd.students.embeddings import EmbeddingsConfig
    from raykd.students.vocabulary import StudentVocabulary


class Student(ModelConfig):
    """A model that learns. Entries of the table set `kind`, and state what they can do."""

    trained: ClassVar[bool] = True

    if TYPE_CHECKING:
        tokenizer: StudentVocabulary
        embeddings: EmbeddingsConfig | None
        """Where its vectors of pieces start; None: as the model is drawn or given."""
        projection: int | Literal["teacher"] | None
        """Width of its projection."""
        encoding: Encoding
        """How the head of a word is written as a label."""
        word_dropout: float
        """Share of words that are read as unknown in training."""

    @property
    def taken_from_teacher(self) -> tuple[str, ...]:
        """The settings that stand for its teacher's."""
        named = {
            "vocabulary": isinstance(self.tokenizer, TeacherVocabulary),
            "projection": self.projection == "teacher",
        }
        return tuple(name for name, stands in named.items() if stands)


def refuse_uneven_heads(embedding_dim: int, heads: int) -> None:
    """ValueError where attention heads do not divide E."""
    if embedding_dim % heads:
        nearest = heads * max(1, round(embedding_dim / heads))
        got = f"embedding_dim {embedding_dim} is not divisible by heads {heads}"
        raise ValueError(f"{got}; set embedding_dim: {nearest}, or another number of heads")
