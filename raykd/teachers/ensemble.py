"""Several teachers instead of one: the same configuration from several seeds, and the mean of their outputs.

Wang et al.'s code (ACL 2020) stacks what several teachers give for a sentence and takes the mean: of emission scores
where these are distilled, of token posteriors where those are.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from raykd.needs import LAYER_SIGNALS
from raykd.teachers.teacher_config import Teacher


class Seeded(Teacher):
    """A teacher of which there may be several."""

    count: Annotated[int, Field(ge=1)] = 1
    """Teachers trained from seeds `training.seed`, `training.seed` + 1, … (for each language, or for all), whose mean
    is the teacher."""
    combine: Literal["scores", "posteriors"] = "scores"
    """The mean of their scores (a log-linear pool, which is a chain again), or of their token posteriors (a mixture,
    which offers token marginals and, as its best path, the pool's)."""

    @property
    def title(self) -> str:
        return self.kind if self.count == 1 else f"{self.kind} (mean of {self.count})"

    @property
    def offers(self) -> tuple[str, ...]:
        if self.count == 1:
            return self.own_signals
        if self.combine == "posteriors":
            return ("token_marginals", "kbest")
        return tuple(signal for signal in self.own_signals if signal not in LAYER_SIGNALS)

    @property
    def not_exported(self) -> str:
        several = self.count > 1 and self.contextual is None
        return "is an ensemble" if several else super().not_exported
