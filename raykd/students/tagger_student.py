"""Students with an encoder of pieces between embeddings and a head."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import field_validator, model_validator
from typing_extensions import override

from raykd.corpora.vocabulary_config import WordPieceConfig
from raykd.forms import FLAT, SPANS, TREE, UTTERANCES, LabelForm
from raykd.forms.tree.codes import Encoding
from raykd.identity import PlainObject
from raykd.layers.tagger_config import Size, TaggerConfig
from raykd.students.embeddings import EmbeddingsConfig, RandomEmbeddings, VectorEmbeddings
from raykd.students.student_config import Student
from raykd.students.vocabulary import StudentVocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from raykd.forms import TagSet
    from raykd.layers.heads import Head


class TaggerStudent(Student, TaggerConfig):
    """Embedded pieces through an encoder to a CRF or MaxEnt decoder (Mukherjee & Awadallah 2020, §3).

    Predicts one label per word, at the word's first piece, or one per sentence.
    """

    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS, UTTERANCES, TREE)
    scope: Literal["language", "all"] = "all"
    """One student for each language, or one for all. With one per language the score is the mean, and the size the
    sum."""
    layers: Size = 1
    """Number of layers of the encoder."""
    projection: Size | Literal["teacher"] | None = None
    """Width of a layer GELU(W h + b) between encoder and head (Mukherjee & Awadallah 2020, Eq. 5), which counts in
    latency and size; `teacher`: that of the teacher's hidden states; null: no such layer."""
    decoder: Literal["crf", "maxent"] = "crf"
    encoding: Encoding = "relative_pos"
    """For a task of trees, the encoding of a word's head as a label. `relative_pos`: the head's part of speech, and its
    place among the words of this part of speech to the left or right (Strzyz et al. 2019); `relative_position`: its
    distance in words."""
    vocabulary: StudentVocabulary = WordPieceConfig(kind="wordpiece")
    embeddings: EmbeddingsConfig | None = None
    """Initial values of the piece vectors; null: drawn at random. They are trained like all other parameters."""

    @field_validator("embeddings", mode="after")
    @classmethod
    def _random_is_none(cls, embeddings: EmbeddingsConfig | None) -> EmbeddingsConfig | None:
        return None if isinstance(embeddings, RandomEmbeddings) else embeddings

    @model_validator(mode="after")
    def _has_embeddings(self) -> Self:
        if self.embeddings is not None and not self.embedding_dim:
            raise ValueError("embeddings needs embedding_dim above 0: set embedding_dim, or omit embeddings")
        return self

    @override
    def pinned(self, language: str | None = None) -> Self:
        student = super().pinned(language)
        if not isinstance(student.embeddings, VectorEmbeddings):
            return student
        return student.model_copy(update={"embeddings": student.embeddings.pinned(language)})

    @property
    @override
    def tokenizer(self) -> StudentVocabulary:
        return self.vocabulary

    @property
    @override
    def depth(self) -> int:
        return self.layers + (self.projection is not None)

    @property
    def projected_size(self) -> int:
        """Width of the projection, 0 where there is none.

        Raises:
            ValueError: it is the teacher's width, which has not been filled in yet.
        """
        if self.projection == "teacher":
            raise ValueError("projection: the teacher's width has not been filled in yet")
        return self.projection or 0

    @override
    def shape(self) -> PlainObject:
        keys = {"decoder"} if self.projection is None else {"decoder", "projection"}
        return {**super().shape(), **self.model_dump(include=keys)}

    @override
    def _head(self, tag_set: TagSet, dropout: float) -> Callable[[int], Head]:
        from raykd.layers.heads import head_builder

        return head_builder(self.decoder, len(tag_set), tag_set.allowed_places())
