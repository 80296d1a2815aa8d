"""Students: each is its shape, and builds itself.

Every configuration in the table has

    scope                      one student per "language", or one for "all"
    tokenizer                  how its text becomes pieces
    reads_characters           whether it reads words' characters too
    contextual                 the frozen encoders and word vectors that it reads too, or None
    pinned(language)           the same student with the checksums of what it is given
    decoder                    "crf" or "maxent"
    embeddings                 where its vectors of pieces start, or None
    projection                 width of its projection, "teacher", or None
    depth                      layers of its encoder, and its projection
    build(vocabulary_size=, characters=, tag_set=, unit=, dropout=) -> Model
    shape() -> dict            what its latency depends on
"""

from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from raykd.students.bilstm import BiLSTMStudent
from raykd.students.encoder import EncoderStudent
from raykd.students.pretrained import PretrainedStudent
from raykd.students.pretrained_encoder import PretrainedEncoderStudent
from raykd.students.seq2seq import Seq2SeqStudent
from raykd.students.transformer import TransformerStudent

STUDENTS = MappingProxyType(
    {
        "bilstm": BiLSTMStudent,
        "transformer": TransformerStudent,
        "encoder": EncoderStudent,
        "pretrained": PretrainedStudent,
        "pretrained_encoder": PretrainedEncoderStudent,
        "seq2seq": Seq2SeqStudent,
    }
)

StudentConfig = Annotated[
    BiLSTMStudent
    | TransformerStudent
    | EncoderStudent
    | PretrainedStudent
    | PretrainedEncoderStudent
    | Seq2SeqStudent,
    Field(discriminator="kind"),
]

__all__ = [
    "STUDENTS",
    "BiLSTMStudent",
    "EncoderStudent",
    "PretrainedEncoderStudent",
    "PretrainedStudent",
    "Seq2SeqStudent",
    "StudentConfig",
    "TransformerStudent",
]
