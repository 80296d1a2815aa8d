"""The BiLSTM teachers: one encoder, with a CRF or a MaxEnt decoder."""

from __future__ import annotations

from typing import ClassVar, Literal

from raykd.teachers.bilstm_teacher import BiLSTMTeacher


class BiLSTMCRFTeacher(BiLSTMTeacher):
    """Words and characters through a BiLSTM to a CRF (Lample et al. 2016), trained by raykd."""

    kind: Literal["bilstm_crf"] = "bilstm_crf"
    decoder: ClassVar[Literal["crf", "maxent"]] = "crf"


class BiLSTMMaxEntTeacher(BiLSTMTeacher):
    """The encoder of `bilstm_crf` with a softmax per token: the teacher of `token` KD and of case 3."""

    kind: Literal["bilstm_maxent"] = "bilstm_maxent"
    decoder: ClassVar[Literal["crf", "maxent"]] = "maxent"
