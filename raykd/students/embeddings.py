"""Where a student's input embeddings start, and how those of its teacher become as narrow as its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from raykd.layers.word_vectors import WordVectorsConfig
from raykd.spec import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


class RandomEmbeddings(Frozen):
    """Drawn by the run's seed, which is the default."""

    kind: Literal["random"]


class OfTeacher(Frozen, ABC):
    """Rows of the teacher's embedding, by piece; pieces that it lacks are drawn."""

    weights: Literal["fine_tuned", "pretrained"] = "fine_tuned"
    """The teacher's as it labels text, or those of its checkpoint as it was given."""

    def fault(self, size: int, width: int) -> tuple[str, str] | None:
        """Problem and hint where vectors of `width` components cannot become vectors of `size`."""
        if size <= width:
            return None
        problem = f"the teacher's embeddings have {width} components, which cannot become {size}"
        return problem, f"set student.embedding_dim to at most {width}"

    @abstractmethod
    def reduced(self, rows_ND: Tensor, size: int) -> Tensor:
        """The vectors with `size` components."""


class TeacherEmbeddings(OfTeacher):
    """The teacher's as they are; the student's must be as wide."""

    kind: Literal["teacher"]

    def fault(self, size: int, width: int) -> tuple[str, str] | None:
        if size == width:
            return None
        problem = f"the teacher's embeddings have {width} components, the student's {size}"
        return problem, f"set student.embedding_dim: {width}, or use svd or pca"

    def reduced(self, rows_ND: Tensor, size: int) -> Tensor:
        return rows_ND


class SVDEmbeddings(OfTeacher):
    """The teacher's in the subspace of the student's width that keeps most of their sum of squares
    (Mukherjee & Awadallah 2020, §4.2).
    """

    kind: Literal["svd"]

    def reduced(self, rows_ND: Tensor, size: int) -> Tensor:
        from raykd.layers.reduction import svd

        return svd(rows_ND, size)


class PCAEmbeddings(OfTeacher):
    """The first principal components of the teacher's: `svd` less the mean (what the authors' code does)."""

    kind: Literal["pca"]

    def reduced(self, rows_ND: Tensor, size: int) -> Tensor:
        from raykd.layers.reduction import pca

        return pca(rows_ND, size)


class PPAEmbeddings(OfTeacher):
    """The principal components of the teacher's, post-processed before and after (Raunak et al. 2019)."""

    kind: Literal["ppa"]
    remove: Annotated[int, Field(ge=1)] = 14
    """First components that each post-processing removes, so that as many of the student's start at zero; the paper's
    tables have 14 and 17."""

    def fault(self, size: int, width: int) -> tuple[str, str] | None:
        if self.remove < size <= width - self.remove:
            return None
        problem = f"of the teacher's {width} components ppa removes {self.remove}, and of the student's {size} as many"
        return (
            problem,
            f"set student.embedding_dim from {self.remove + 1} to {width - self.remove}, or another remove",
        )

    def reduced(self, rows_ND: Tensor, size: int) -> Tensor:
        from raykd.layers.reduction import ppa

        return ppa(rows_ND, size, remove=self.remove)


class VectorEmbeddings(Frozen):
    """Word vectors from a text file, by the text of a piece without the mark of its place in a word; pieces that the
    file lacks, in lower case too, are drawn.
    """

    kind: Literal["vectors"]
    path: Annotated[str, Field(min_length=1)]
    """The file (`.vec`, `.txt`, also `.gz`) or its URI; with `{lang}` for the language, where there is one student for
    each. The student's embeddings must be as wide."""
    checksum: str | None = None
    """Checksum of the file (raykd sets it); a file that changed is refused."""

    @property
    def vectors(self) -> WordVectorsConfig:
        """The file."""
        return WordVectorsConfig(vectors=self.path, checksum=self.checksum)

    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        """Raise StoreError where a file is missing or holds no word vectors."""
        self.vectors.refuse_unreadable(languages)

    def pinned(self, language: str | None) -> VectorEmbeddings:
        """The same vectors with their checksum and the language's file. Raises StoreError where there is none."""
        own = self.vectors.pinned(language)
        return self.model_copy(update={"path": own.vectors, "checksum": own.checksum})


EMBEDDINGS = MappingProxyType(
    {
        "random": RandomEmbeddings,
        "teacher": TeacherEmbeddings,
        "svd": SVDEmbeddings,
        "pca": PCAEmbeddings,
        "ppa": PPAEmbeddings,
        "vectors": VectorEmbeddings,
    }
)
EmbeddingsConfig = Annotated[
    RandomEmbeddings | TeacherEmbeddings | SVDEmbeddings | PCAEmbeddings | PPAEmbeddings | VectorEmbeddings,
    Field(discriminator="kind"),
]
