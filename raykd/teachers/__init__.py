"""Teachers: each is its configuration, states what it offers, and builds itself.

Every configuration in the table has

    scope                      one teacher per "language", or one for "all"
    trained                    whether raykd trains it (with `training`, for its `Duration`) or uses it as it is
    count, combine             how many seeds of it are averaged, and how (`ensemble.py`)
    offers                     the signals it offers; `own_signals`, those of one of several
    stores                     whether these may be stored; else it gives them in the training step
    depth                      layers of its encoder, None where only its checkpoint says
    hidden_size(layer)         components of a layer's hidden states
    embedding_dim              components of its vectors of pieces, 0 where it has none
    tokenizer                  how its text becomes pieces
    reads_characters           whether it reads words' characters too
    contextual                 the frozen encoders and word vectors that it reads too, or None
    pinned(language)           the same teacher with the checksums of what it is given
    decoder                    "crf", "maxent", "spans", or "arcs"
    build(vocabulary_size=, characters=, tag_set=, unit=, dropout=) -> Model
    shape() -> dict            what its latency depends on
"""

from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from raykd.teachers.biaffine_ner import BiaffineNERTeacher
from raykd.teachers.biaffine_parser import BiaffineParserTeacher, SecondOrderParserTeacher
from raykd.teachers.bilstm_crf import BiLSTMCRFTeacher, BiLSTMMaxEntTeacher
from raykd.teachers.hf_masked_lm import HFMaskedLMTeacher
from raykd.teachers.hf_seq2seq import HFSeq2SeqTeacher
from raykd.teachers.hf_sequence_classifier import HFSequenceClassifierTeacher
from raykd.teachers.hf_token_classifier import HFTokenClassifierTeacher
from raykd.teachers.none import NoTeacher

TEACHERS = MappingProxyType(
    {
        "bilstm_crf": BiLSTMCRFTeacher,
        "bilstm_maxent": BiLSTMMaxEntTeacher,
        "biaffine_ner": BiaffineNERTeacher,
        "biaffine_parser": BiaffineParserTeacher,
        "second_order_parser": SecondOrderParserTeacher,
        "hf_token_classifier": HFTokenClassifierTeacher,
        "hf_sequence_classifier": HFSequenceClassifierTeacher,
        "hf_masked_lm": HFMaskedLMTeacher,
        "hf_seq2seq": HFSeq2SeqTeacher,
        "none": NoTeacher,
    }
)

TeacherConfig = Annotated[
    BiLSTMCRFTeacher
    | BiLSTMMaxEntTeacher
    | BiaffineNERTeacher
    | BiaffineParserTeacher
    | SecondOrderParserTeacher
    | HFTokenClassifierTeacher
    | HFSequenceClassifierTeacher
    | HFMaskedLMTeacher
    | HFSeq2SeqTeacher
    | NoTeacher,
    Field(discriminator="kind"),
]

__all__ = [
    "TEACHERS",
    "BiLSTMCRFTeacher",
    "BiLSTMMaxEntTeacher",
    "BiaffineNERTeacher",
    "BiaffineParserTeacher",
    "HFMaskedLMTeacher",
    "HFSeq2SeqTeacher",
    "HFSequenceClassifierTeacher",
    "HFTokenClassifierTeacher",
    "NoTeacher",
    "SecondOrderParserTeacher",
    "TeacherConfig",
]
