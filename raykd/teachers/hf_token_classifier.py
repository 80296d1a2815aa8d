"""Any Transformers token classifier as a teacher."""

from typing import ClassVar, Literal

from raykd.teachers.hf_teacher import HFTeacher


class HFTokenClassifierTeacher(HFTeacher):
    """A Transformers checkpoint with a label for each word at its first piece, or for a sentence."""

    kind: Literal["hf_token_classifier"] = "hf_token_classifier"
    reads_text_pairs: ClassVar[bool] = False
    pools: ClassVar[bool] = False
