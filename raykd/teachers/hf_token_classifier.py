"""Any Transformers token classifier as a teacher."""

from typing import ClassVar, Literal

from raykd.teachers.hf_teacher import HFTeacher


class HFTokenClassifierTeacher(HFTeacher):
    """A Transformers checkpoint that labels words, each at its first piece, or a sentence at its very first piece."""

    kind: Literal["hf_token_classifier"] = "hf_token_classifier"
    reads_text_pairs: ClassVar[bool] = False
    pools: ClassVar[bool] = False
