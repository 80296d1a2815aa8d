"""Ensembles: the mean of several teachers with the same configuration and different seeds.

Wang et al.'s code (ACL 2020) stacks the outputs of several teachers for a sentence and takes the mean: of emission
scores where these are distilled, of token posteriors where those are.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import override

from raykd.needs import LAYER_SIGNALS
from raykd.teachers.teacher_config import Teacher


class EnsembleTeacher(Teacher):
    """A teacher, or the mean of several teachers trained from different seeds."""

    count: Annotated[int, Field(ge=1)] = 1
    """Teachers trained from seeds `training.seed`, `training.seed` + 1, … (for each language, or for all), whose mean
    is the teacher."""
    combine: Literal["scores", "posteriors"] = "scores"
    """The mean of their scores (a log-linear pool, which is a chain again), or of their token posteriors (a mixture,
    which offers token marginals and, as its best path, the pool's)."""

    @property
    @override
    def title(self) -> str:
        return self.kind if self.count == 1 else f"{self.kind} (mean of {self.count})"

    @property
    @override
    def offers(self) -> tuple[str, ...]:
        if self.count == 1:
            return self.model_signals
        if self.combine == "posteriors":
            return ("token_marginals", "kbest")
        return tuple(signal for signal in self.model_signals if signal not in LAYER_SIGNALS)

    @property
    @override
    def no_export_reason(self) -> str:
        is_ensemble = self.count > 1 and self.contextual is None
        return "is an ensemble" if is_ensemble else super().no_export_reason
