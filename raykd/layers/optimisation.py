"""Settings of training: the optimiser and its learning rate."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from raykd.spec import Frozen


class TrainingConfig(Frozen):
    """Optimisation of one run. The global batch is the unit: worker counts never change what is computed."""

    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: Annotated[float, Field(gt=0)] = 2e-3
    learning_rate_schedule: Literal["constant", "plateau", "cosine", "linear"] = "constant"
    """`linear` falls to 0."""
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the optimiser steps, of which there are at most, in which the learning rate rises from 0."""
    plateau_patience: Annotated[int, Field(ge=0)] = 10
    """Epochs without a better dev score after which `plateau` halves the learning rate (ACL 2020: 10)."""
    final_learning_rate: Annotated[float, Field(ge=0)] = 1e-8
    """Where `cosine` ends (XtremeDistil: 1e-8)."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    gradient_clip: Annotated[float, Field(gt=0)] | None = 5.0
    """Largest global gradient norm; null: none."""
    batch_tokens: Annotated[int, Field(ge=1)] = 2000
    """Padded input tokens of one global batch (ACL 2020: 2000)."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    loss_average: Literal["sentence", "token"] = "sentence"
    """What the loss is the mean over: sentences of the global batch (of per-sentence sums), or tokens."""
    precision: Literal["float32", "bf16", "fp16"] = "float32"
    seed: Annotated[int, Field(ge=0)] = 0
    deterministic: bool = False
    """Whether a run on a GPU takes deterministic algorithms alone, so that one that was interrupted ends with the same
    bits. An operation that has none is refused. On a CPU runs are equal without it."""

    @model_validator(mode="after")
    def _warms_up_by_steps(self) -> Self:
        if self.warmup and self.learning_rate_schedule == "plateau":
            raise ValueError("plateau has no warmup; use constant, linear or cosine")
        return self

    def factor(self, step: int, total_steps: int) -> float:
        """What the learning rate is multiplied by in a `step`, from 0, of `total_steps`; `plateau` has none."""
        rising = round(self.warmup * total_steps)
        if step < rising:
            return (step + 1) / rising
        done = min(1.0, (step - rising) / max(1, total_steps - rising))
        if self.learning_rate_schedule == "cosine":
            final = self.final_learning_rate / self.learning_rate
            return final + (1 - final) * (1 + math.cos(math.pi * done)) / 2
        return 1 - done if self.learning_rate_schedule == "linear" else 1.0
