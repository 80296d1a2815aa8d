"""Several teachers instead of one: the same configuration from several seeds, and what they say averaged.

Wang et al.'s code (ACL 2020) stacks what several teachers say of a sentence and takes the mean: of emission scores
where these are distilled, of token posteriors where those are.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from raykd.spec import Frozen


class Seeded(Frozen):
    """What every teacher's configuration says of its number."""

    count: Annotated[int, Field(ge=1)] = 1
    """Teachers trained from seeds `training.seed`, `training.seed` + 1, … (for each language, or for all), whose mean
    teaches."""
    combine: Literal["scores", "posteriors"] = "scores"
    """The mean of their scores (a log-linear pool, which is a chain again), or of their token posteriors (a mixture,
    which tells token marginals and, as its best path, the pool's)."""
    tells: ClassVar[tuple[str, ...]]
    """What one of them offers."""

    @property
    def title(self) -> str:
        """What a table calls it."""
        kind = type(self).model_fields["kind"].default
        return kind if self.count == 1 else f"{kind} (mean of {self.count})"

    @property
    def offers(self) -> tuple[str, ...]:
        """The signals that it, or their mean, can tell."""
        return ("token_marginals", "kbest") if self.count > 1 and self.combine == "posteriors" else self.tells
