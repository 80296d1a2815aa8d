"""The absence of a teacher: students learn from labels or text alone."""

from __future__ import annotations

from typing import ClassVar, Literal

from typing_extensions import override

from raykd.corpora.vocabulary_config import WordConfig
from raykd.forms import FLAT, PIECES, SPANS, STEPS, UTTERANCES, LabelForm
from raykd.layers.optimisation import TrainingConfig
from raykd.teachers.teacher_config import Teacher


class NoTeacher(Teacher):
    """Students learn without a teacher: from gold labels, or as masked language models. It offers no signal."""

    kind: Literal["none"] = "none"
    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS, UTTERANCES, STEPS, PIECES)
    scope: ClassVar[Literal["all"]] = "all"
    trained: ClassVar[bool] = False
    count: ClassVar[int] = 1
    contextual: ClassVar[None] = None
    decoder: ClassVar[Literal["maxent"]] = "maxent"
    training: ClassVar[TrainingConfig] = TrainingConfig()

    @property
    @override
    def tokenizer(self) -> WordConfig:
        """A placeholder: a student with the teacher's vocabulary is refused (`recipes/student_faults.py`)."""
        return WordConfig(kind="word")
