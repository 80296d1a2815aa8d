"""The common configuration of all teachers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from raykd.layers.model_config import ModelConfig

if TYPE_CHECKING:
    from raykd.layers.optimisation import TrainingConfig


class Teacher(ModelConfig):
    """The configuration of a teacher: a model or an annotator that labels words for students.

    Entries of the table set `kind` and state their capabilities.
    """

    stores: ClassVar[bool] = True
    """True if its signals may be stored; else it reads each batch in the training step."""
    gives_answers: ClassVar[bool] = False
    """True for an annotator: its signals are read from stored answers, and it has no cost of its own."""
    model_signals: ClassVar[tuple[str, ...]] = ()
    """Signals that one model of this kind offers: its distribution in some form, and hidden states."""

    if TYPE_CHECKING:
        embedding_dim: int
        count: int
        """Number of models that are averaged."""
        training: TrainingConfig

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.kind

    @property
    def offers(self) -> tuple[str, ...]:
        """Signals of the teacher: of its model, or of the mean of several."""
        return self.model_signals

    def hidden_size(self, layer: int) -> int:
        """Return the number of components of the hidden states of a layer.

        Raises:
            ValueError: the teacher has no such layer.
        """
        raise ValueError(f"{self.title} has no hidden states")
