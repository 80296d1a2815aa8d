"""Students: each configuration states sizes and capabilities (`Student`) and builds its own model.

To add one, write its file, and add its import and its line here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from raykd.students.bilstm import BiLSTMStudent
from raykd.students.encoder import EncoderStudent
from raykd.students.pretrained import PretrainedStudent
from raykd.students.pretrained_encoder import PretrainedEncoderStudent
from raykd.students.seq2seq import Seq2SeqStudent
from raykd.students.student_config import Student
from raykd.students.transformer import TransformerStudent

KINDS: tuple[type[Student], ...] = (
    BiLSTMStudent,
    TransformerStudent,
    EncoderStudent,
    PretrainedStudent,
    PretrainedEncoderStudent,
    Seq2SeqStudent,
)

STUDENTS: Mapping[str, type[Student]] = MappingProxyType(
    {kind.model_fields["kind"].default: kind for kind in KINDS}
)

if TYPE_CHECKING:
    StudentConfig = Student
else:
    StudentConfig = Annotated[Union[(*KINDS,)], Field(discriminator="kind")]

__all__ = [
    "STUDENTS",
    "BiLSTMStudent",
    "EncoderStudent",
    "PretrainedEncoderStudent",
    "PretrainedStudent",
    "Seq2SeqStudent",
    "Student",
    "StudentConfig",
    "TransformerStudent",
]
