"""What every teacher's configuration states, whatever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from raykd.layers.model_config import ModelConfig

if TYPE_CHECKING:
    from raykd.layers.optimisation import TrainingConfig


class Teacher(ModelConfig):
    """What labels words for students. Entries of the table set `kind`, and state what they can do."""

    stores: ClassVar[bool] = True
    """Whether what it gives may be stored; else it reads each batch in the training step."""
    own_signals: ClassVar[tuple[str, ...]] = ()
    """The signals that one of them offers: its distribution in one form or another, and hidden states."""

    if TYPE_CHECKING:
        embedding_dim: int
        count: int
        """How many of it are averaged."""
        training: TrainingConfig

    @property
    def offers(self) -> tuple[str, ...]:
        """The signals that it, or the mean of several, offers; none where there is no teacher."""
        return self.own_signals

    def hidden_size(self, layer: int) -> int:
        """Components of the hidden states of `layer`; ValueError where it has no such layer."""
        raise ValueError(f"{self.kind} gives no hidden states")
