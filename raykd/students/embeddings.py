"""Initial values of a student's input embeddings, and ways to reduce those of a teacher to the student's width."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from typing_extensions import override

from raykd.layers.word_vectors import WordVectorsConfig
from raykd.spec import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


class RandomEmbeddings(Frozen):
    """Vectors drawn at random from the run's seed; the default."""

    kind: Literal["random"]


class FromTeacher(Frozen, ABC):
    """Rows of the teacher's embedding, by piece; pieces that the teacher lacks get random vectors."""

    weights: Literal["fine_tuned", "pretrained"] = "fine_tuned"
    """`fine_tuned`: the vectors of the teacher as it labels text; `pretrained`: those of its published checkpoint."""

    def fault(self, size: int, width: int) -> tuple[str, str] | None:
        """Return problem and hint if the teacher's vectors cannot be reduced to the student's width, else None.

        Args:
            size: components of the student's vectors.
            width: components of the teacher's vectors.
        """
        if size <= width:
            return None
        problem = f"the teacher's embeddings have {width} components, too few for the student's {size}"
        return problem, f"set student.embedding_dim to at most {width}"

    @abstractmethod
    def reduce(self, rows_ND: Tensor, size: int) -> Tensor:
        """Return the vectors with fewer components.

        Args:
            rows_ND: vectors of the teacher.
            size: components of the student's vectors.
        """


class TeacherEmbeddings(FromTeacher):
    """The teacher's vectors unchanged; the student's must be as wide."""

    kind: Literal["teacher"]

    @override
    def fault(self, size: int, width: int) -> tuple[str, str] | None:
        if size == width:
            return None
        problem = f"the teacher's embeddings have {width} components, the student's {size}"
        return problem, f"set student.embedding_dim: {width}, or use svd or pca"

    @override
    def reduce(self, rows_ND: Tensor, size: int) -> Tensor:
        return rows_ND


class SVDEmbeddings(FromTeacher):
    """A truncated singular value decomposition of the teacher's vectors (Mukherjee & Awadallah 2020, §4.2)."""

    kind: Literal["svd"]

    @override
    def reduce(self, rows_ND: Tensor, size: int) -> Tensor:
        from raykd.layers.reduction import svd

        return svd(rows_ND, size)


class PCAEmbeddings(FromTeacher):
    """The first principal components of the teacher's vectors: `svd` after subtracting the mean.

    The code of Mukherjee & Awadallah does this.
    """

    kind: Literal["pca"]

    @override
    def reduce(self, rows_ND: Tensor, size: int) -> Tensor:
        from raykd.layers.reduction import pca

        return pca(rows_ND, size)


class PPAEmbeddings(FromTeacher):
    """The principal components of the teacher's vectors, post-processed before and after (Raunak et al. 2019)."""

    kind: Literal["ppa"]
    remove: Annotated[int, Field(ge=1)] = 14
    """Number of first components removed by each post-processing; as many components of the student's vectors start at
    zero. The paper's tables have 14 and 17."""

    @override
    def fault(self, size: int, width: int) -> tuple[str, str] | None:
        if self.remove < size <= width - self.remove:
            return None
        shares = (
            f"{self.remove} of the teacher's {width} components and {self.remove} of the student's {size}"
        )
        problem = f"ppa removes {shares}"
        return (
            problem,
            f"set student.embedding_dim from {self.remove + 1} to {width - self.remove}, or another remove",
        )

    @override
    def reduce(self, rows_ND: Tensor, size: int) -> Tensor:
        from raykd.layers.reduction import ppa

        return ppa(rows_ND, size, remove=self.remove)


class VectorEmbeddings(Frozen):
    """Word vectors from a text file, looked up by the text of a piece without the mark of its place in a word.

    Pieces that the file lacks, in lower case too, get random vectors.
    """

    kind: Literal["vectors"]
    path: Annotated[str, Field(min_length=1)]
    """The file (`.vec`, `.txt`, also `.gz`) or its URI; with `{lang}` for the language, where there is one student for
    each. The student's embeddings must be as wide."""
    checksum: str | None = None
    """Checksum of the file (raykd sets it); a file that changed is refused."""

    @property
    def vectors(self) -> WordVectorsConfig:
        """Configuration of the file."""
        return WordVectorsConfig(vectors=self.path, checksum=self.checksum)

    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        """Check the first lines of the files.

        Args:
            languages: languages that `{lang}` stands for.

        Raises:
            StoreError: a file is missing, or holds no word vectors.
        """
        self.vectors.refuse_unreadable(languages)

    def pinned(self, language: str | None) -> VectorEmbeddings:
        """Return the configuration with file and checksum of a language.

        Args:
            language: the student's language; None for a student of several.

        Raises:
            StoreError: there is no such file.
        """
        vectors = self.vectors.pinned(language)
        return self.model_copy(update={"path": vectors.vectors, "checksum": vectors.checksum})


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
