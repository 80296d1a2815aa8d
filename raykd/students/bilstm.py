"""The BiLSTM student."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from raykd.corpora.vocabulary import WordPieceConfig
from raykd.layers import BiLSTMTagger, BiLSTMTaggerShape
from raykd.spec import Frozen
from raykd.students.vocabulary import StudentVocabulary

if TYPE_CHECKING:
    from raykd.corpora.tags import TagSet
    from raykd.layers import Tagger

Size = Annotated[int, Field(ge=1)]


class BiLSTMStudent(Frozen):
    """Embedded pieces through a BiLSTM to a CRF or MaxEnt decoder (Mukherjee & Awadallah 2020, §3).

    Predicts one tag per word, at the word's first piece.
    """

    kind: Literal["bilstm"] = "bilstm"
    embedding_dim: Size
    """E, components of a piece's vector."""
    hidden_dim: Size
    """H, hidden size of each direction."""
    layers: Size = 1
    decoder: Literal["crf", "maxent"] = "crf"
    vocabulary: StudentVocabulary = WordPieceConfig(kind="wordpiece")
    reads_characters: ClassVar[bool] = False

    def build(
        self, *, vocabulary_size: int, tag_set: TagSet, characters: int = 0, dropout: float = 0.0
    ) -> Tagger:
        """The untrained student, drawn from torch's generator.

        Args:
            vocabulary_size: how many pieces the embedding has.
            tag_set: the tags it predicts.
            characters: ignored; it reads none.
            dropout: variational dropout of the BiLSTM's inputs and outputs, active in training.
        """
        shape = BiLSTMTaggerShape(
            pieces=vocabulary_size,
            tags=len(tag_set),
            embedding_dim=self.embedding_dim,
            hidden_dim=self.hidden_dim,
            layers=self.layers,
            decoder=self.decoder,
        )
        return BiLSTMTagger(shape, dropout=dropout)

    def shape(self) -> dict[str, Any]:
        """What its latency depends on, apart from the numbers of pieces and tags."""
        return self.model_dump(include={"kind", "embedding_dim", "hidden_dim", "layers", "decoder"})
