"""What students have in common that are encoders of Transformers."""

from __future__ import annotations

from typing import ClassVar, Literal

from raykd.students.student_config import Student


class TransformersStudent(Student):
    """An encoder of Transformers: it reads pieces alone, has no projection, and starts as it is drawn or given."""

    shows_pieces: ClassVar[bool] = True
    decoder: ClassVar[Literal["maxent"]] = "maxent"
    reads_characters: ClassVar[bool] = False
    contextual: ClassVar[None] = None
    embeddings: ClassVar[None] = None
    projection: ClassVar[None] = None
    encoding: ClassVar[Literal["relative_pos"]] = "relative_pos"
    word_dropout: ClassVar[float] = 0.0
