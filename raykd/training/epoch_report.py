"""The report of an epoch, for launchers, the search and the tracking server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from raykd.figures.results import Score
from raykd.identity import PlainObject


@dataclass(frozen=True)
class EpochReport:
    """The results of one epoch. Losses are means per sentence over the epoch, by the objective's kind."""

    epoch: int
    """Counted from 0, over all stages."""
    steps: int
    """Optimiser steps until the end of the epoch, over all stages."""
    stage: int
    """Counted from 0."""
    step: int
    """Stage step, from 0: if layers are unfrozen, each stage step trains more of them."""
    layers: Literal["all"] | tuple[str, ...]
    """The trained layer groups."""
    kd_weight: float
    """λ, the weight of the distillation loss."""
    loss: float
    losses: Mapping[str, float]
    learning_rate: float
    tokens_per_second: float
    dev: Score
    held_out_loss: float | None = None
    tokens: int = 0
    """Tokens of the epoch, over all workers."""

    def metrics(self) -> PlainObject:
        """Return the metrics by name, as logged and as stored in the run's history."""
        held_out = {} if self.held_out_loss is None else {"held_out_loss": self.held_out_loss}
        return {
            "epoch": self.epoch, "steps": self.steps, "stage": self.stage, "step": self.step,
            "layers": self.layers if self.layers == "all" else list(self.layers),
            "lambda": self.kd_weight, "loss": self.loss, "losses": dict(self.losses),
            "learning_rate": self.learning_rate, "tokens_per_second": self.tokens_per_second, "dev": self.dev.mean,
            "dev_languages_sd": self.dev.languages_sd, "dev_by_language": dict(self.dev.by_language),
            "tokens": self.tokens, **held_out,
        }  # fmt: skip
