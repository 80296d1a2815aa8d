"""Teachers: each configuration states settings and capabilities (`Teacher`) and builds its own model.

To add one, write its file, and add its import and its line here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from raykd.teachers.annotations import AnnotationsTeacher
from raykd.teachers.annotator_config import AnnotatorTeacher, AnswerTeacher
from raykd.teachers.asked_annotator import AskedAnnotator
from raykd.teachers.biaffine_ner import BiaffineNERTeacher
from raykd.teachers.biaffine_parser import BiaffineParserTeacher, SecondOrderParserTeacher
from raykd.teachers.bilstm_crf import BiLSTMCRFTeacher, BiLSTMMaxEntTeacher
from raykd.teachers.combined import ANNOTATORS, CombinedTeacher
from raykd.teachers.hf_masked_lm import HFMaskedLMTeacher
from raykd.teachers.hf_seq2seq import HFSeq2SeqTeacher
from raykd.teachers.hf_sequence_classifier import HFSequenceClassifierTeacher
from raykd.teachers.hf_token_classifier import HFTokenClassifierTeacher
from raykd.teachers.none import NoTeacher
from raykd.teachers.python_function import PythonTeacher
from raykd.teachers.spacy_pipeline import SpacyTeacher
from raykd.teachers.teacher_config import Teacher

KINDS: tuple[type[Teacher], ...] = (
    BiLSTMCRFTeacher,
    BiLSTMMaxEntTeacher,
    BiaffineNERTeacher,
    BiaffineParserTeacher,
    SecondOrderParserTeacher,
    HFTokenClassifierTeacher,
    HFSequenceClassifierTeacher,
    HFMaskedLMTeacher,
    HFSeq2SeqTeacher,
    *ANNOTATORS,
    CombinedTeacher,
    NoTeacher,
)

TEACHERS: Mapping[str, type[Teacher]] = MappingProxyType(
    {kind.model_fields["kind"].default: kind for kind in KINDS}
)

if TYPE_CHECKING:
    TeacherConfig = Teacher
else:
    TeacherConfig = Annotated[Union[(*KINDS,)], Field(discriminator="kind")]

__all__ = [
    "TEACHERS",
    "AnnotationsTeacher",
    "AnnotatorTeacher",
    "AnswerTeacher",
    "AskedAnnotator",
    "BiLSTMCRFTeacher",
    "BiLSTMMaxEntTeacher",
    "BiaffineNERTeacher",
    "BiaffineParserTeacher",
    "CombinedTeacher",
    "HFMaskedLMTeacher",
    "HFSeq2SeqTeacher",
    "HFSequenceClassifierTeacher",
    "HFTokenClassifierTeacher",
    "NoTeacher",
    "PythonTeacher",
    "SecondOrderParserTeacher",
    "SpacyTeacher",
    "Teacher",
    "TeacherConfig",
]
