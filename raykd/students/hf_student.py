"""The base of students with a Transformers encoder."""

from __future__ import annotations

from typing import ClassVar, Literal

from raykd.students.student_config import Student


class HFStudent(Student):
    """A student with an encoder of Transformers, which reads pieces only and has no projection."""

    shows_pieces: ClassVar[bool] = True
    decoder: ClassVar[Literal["maxent"]] = "maxent"
    reads_characters: ClassVar[bool] = False
    contextual: ClassVar[None] = None
    embeddings: ClassVar[None] = None
    projection: ClassVar[None] = None
    encoding: ClassVar[Literal["relative_pos"]] = "relative_pos"
    word_dropout: ClassVar[float] = 0.0
