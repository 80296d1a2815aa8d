"""Posterior and weighted Top-K distillation in one loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from typing_extensions import override

from raykd.objectives.posterior import Posterior
from raykd.objectives.protocol import Objective
from raykd.objectives.temperature import Temperature, TemperatureMode
from raykd.objectives.top_wk import TopWK
from raykd.signals import Need

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.signals import TeacherBatch
    from raykd.structures import Chain


class PosTopWK(Objective):
    """The mean of `posterior` and `top_wk` at one temperature (Wang et al., ACL 2020, §3.3).

    At least H(w) / 2, reached iff the student attains the minima of both, which is possible only if the teacher's K
    best labellings hold all of its probability.
    """

    kind: Literal["pos_top_wk"] = "pos_top_wk"
    k: Annotated[int, Field(ge=1)] = 5
    temperature: Temperature = 1.0
    temperature_mode: TemperatureMode = "local"

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        return (*self._posterior.needs, *self._top_wk.needs)

    @override
    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        return (self._posterior.loss(student, teacher) + self._top_wk.loss(student, teacher)) / 2

    @property
    def _posterior(self) -> Posterior:
        return Posterior(temperature=self.temperature, temperature_mode=self.temperature_mode)

    @property
    def _top_wk(self) -> TopWK:
        return TopWK(k=self.k, temperature=self.temperature)
