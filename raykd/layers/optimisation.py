"""Settings of training: the optimiser and its learning rate."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from raykd.spec import Frozen


class TrainingConfig(Frozen):
    """Optimisation of one run. Batches are global, so that the number of workers does not change the result."""

    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: Annotated[float, Field(gt=0)] = 2e-3
    learning_rate_schedule: Literal["constant", "plateau", "cosine", "linear"] = "constant"
    """`plateau` halves the learning rate, see `plateau_patience`; `cosine` lowers it to `final_learning_rate`, `linear`
    to 0."""
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the largest possible number of optimiser steps in which the learning rate rises from 0."""
    plateau_patience: Annotated[int, Field(ge=0)] = 10
    """Epochs without a better dev score after which `plateau` halves the learning rate (ACL 2020: 10)."""
    final_learning_rate: Annotated[float, Field(ge=0)] = 1e-8
    """Learning rate at the end of `cosine` (XtremeDistil: 1e-8)."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    gradient_clip: Annotated[float, Field(gt=0)] | None = 5.0
    """Largest global gradient norm; null: none."""
    batch_tokens: Annotated[int, Field(ge=1)] = 2000
    """Padded input tokens of one global batch (ACL 2020: 2000)."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    loss_average: Literal["sentence", "token"] = "sentence"
    """The loss is the mean over the sentences of the global batch (of their summed losses), or over its tokens."""
    precision: Literal["float32", "bf16", "fp16"] = "float32"
    seed: Annotated[int, Field(ge=0)] = 0
    deterministic: bool = False
    """On a GPU, use deterministic algorithms only, so that an interrupted run ends with the same bits. An operation
    without one is refused. On a CPU the bits are the same without this key."""

    @model_validator(mode="after")
    def _warms_up_by_steps(self) -> Self:
        if self.warmup and self.learning_rate_schedule == "plateau":
            raise ValueError("plateau has no warmup; use constant, linear or cosine")
        return self

    def learning_rate_factor(self, step: int, total_steps: int) -> float:
        """Return the factor of the learning rate in a step; 1 for `plateau`, which does not depend on the step.

        Args:
            step: number of the optimiser step, from 0.
            total_steps: steps of the whole training.
        """
        warmup_steps = round(self.warmup * total_steps)
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        progress = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))
        if self.learning_rate_schedule == "cosine":
            final = self.final_learning_rate / self.learning_rate
            return final + (1 - final) * (1 + math.cos(math.pi * progress)) / 2
        return 1 - progress if self.learning_rate_schedule == "linear" else 1.0
