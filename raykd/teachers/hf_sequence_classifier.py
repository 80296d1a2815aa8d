"""Any Transformers sequence classifier as a teacher."""

from typing import ClassVar, Literal

from raykd.corpora.sentence import Unit
from raykd.teachers.hf_teacher import HFTeacher


class HFSequenceClassifierTeacher(HFTeacher):
    """A Transformers checkpoint that gives a sentence one label.

    It reads only the beginning of a sentence that is too long for it.
    """

    kind: Literal["hf_sequence_classifier"] = "hf_sequence_classifier"
    units: ClassVar[tuple[Unit, ...]] = ("sentence",)
    pools: ClassVar[bool] = True
