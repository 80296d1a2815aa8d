"""No teacher: students learn from labels or text alone."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from raykd.corpora.vocabulary import WordConfig
from raykd.layers.optimisation import TrainingConfig
from raykd.spec import Frozen


class NoTeacher(Frozen):
    """Students learn without a teacher: on gold labels, or as masked language models. It offers no signal."""

    kind: Literal["none"] = "none"
    scope: ClassVar[Literal["all"]] = "all"
    trained: ClassVar[bool] = False
    count: ClassVar[int] = 1
    offers: ClassVar[tuple[str, ...]] = ()
    own_signals: ClassVar[tuple[str, ...]] = ()
    stores: ClassVar[bool] = True
    depth: ClassVar[None] = None
    embedding_dim: ClassVar[int] = 0
    reads_characters: ClassVar[bool] = False
    contextual: ClassVar[None] = None
    decoder: ClassVar[Literal["maxent"]] = "maxent"
    training: ClassVar[TrainingConfig] = TrainingConfig()

    @property
    def tokenizer(self) -> WordConfig:
        """There is none; a student that asks for its teacher's is refused (`recipes/student_faults.py`)."""
        return WordConfig(kind="word")

    def pinned(self, language: str | None = None) -> Self:
        """The same; it is given nothing."""
        return self
