"""What students have in common that are an encoder of pieces between embeddings and a head."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from raykd.corpora.vocabulary import WordPieceConfig
from raykd.forms import FLAT, SPANS, TREE, UTTERANCES, LabelForm
from raykd.forms.tree.codes import Encoding
from raykd.identity import PlainObject
from raykd.layers.tagger_config import Size, TaggerConfig
from raykd.students.embeddings import EmbeddingsConfig, RandomEmbeddings, VectorEmbeddings
from raykd.students.student_config import Student
from raykd.students.vocabulary import StudentVocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from raykd.forms import TagSet


class TaggerStudent(Student, TaggerConfig):
    """Embedded pieces through an encoder to a CRF or MaxEnt decoder (Mukherjee & Awadallah 2020, §3).

    Predicts one label per word, at the word's first piece, or one per sentence.
    """

    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS, UTTERANCES, TREE)
    scope: Literal["language", "all"] = "all"
    """One student for each language, or one for all. Of one per language the score is the mean, the size the sum."""
    layers: Size = 1
    """Of its encoder."""
    projection: Size | Literal["teacher"] | None = None
    """Width of a layer GELU(W h + b) between encoder and head (Mukherjee & Awadallah 2020, Eq. 5), which counts in
    latency and size; `teacher`: that of the teacher's hidden states; null: no such layer."""
    decoder: Literal["crf", "maxent"] = "crf"
    encoding: Encoding = "relative_pos"
    """Of a task of trees: how a word's head is written as a label, by parts of speech (Strzyz et al. 2019) or by the
    number of words between."""
    vocabulary: StudentVocabulary = WordPieceConfig(kind="wordpiece")
    embeddings: EmbeddingsConfig | None = None
    """Where the vectors of pieces start; null: drawn at random. They are trained on, like everything else."""

    @field_validator("embeddings", mode="after")
    @classmethod
    def _random_is_none(cls, given: EmbeddingsConfig | None) -> EmbeddingsConfig | None:
        return None if isinstance(given, RandomEmbeddings) else given

    @model_validator(mode="after")
    def _has_embeddings(self) -> Self:
        if self.embeddings is not None and not self.embedding_dim:
            raise ValueError(
                "embeddings start somewhere, and it has none: set embedding_dim, or omit embeddings"
            )
        return self

    def pinned(self, language: str | None = None) -> Self:
        own = super().pinned(language)
        if not isinstance(own.embeddings, VectorEmbeddings):
            return own
        return own.model_copy(update={"embeddings": own.embeddings.pinned(language)})

    @property
    def tokenizer(self) -> StudentVocabulary:
        return self.vocabulary

    @property
    def depth(self) -> int:
        return self.layers + (self.projection is not None)

    @property
    def projected_size(self) -> int:
        """Width of its projection, 0 where it has none.

        Raises:
            ValueError: it is the teacher's, and not known yet.
        """
        if self.projection == "teacher":
            raise ValueError("projection: teacher stands for a number, and none has taken its place")
        return self.projection or 0

    def shape(self) -> PlainObject:
        shown = {"decoder"} if self.projection is None else {"decoder", "projection"}
        return {**super().shape(), **self.model_dump(include=shown)}

    def _head(self, tag_set: TagSet, dropout: float) -> Callable[[int], nn.Module]:
        from raykd.layers.heads import head_of

        return head_of(self.decoder, len(tag_set), tag_set.allowed_places())
