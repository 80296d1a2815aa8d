"""Temperature, defined once for all objectives.

`soften: teacher` (the default) softens the teacher alone: the student's scores stay at ϑ = 1 and there is no
ϑ² factor. `soften: both` divides the student's scores by ϑ as well and multiplies the loss by ϑ², so that
gradients keep their size (Hinton et al. 2015, §2).

`temperature_mode` decides where marginals are softened (Wang et al., ACL 2021, §5.2). `local`: substructure
marginals at ϑ = 1, their logarithms divided by ϑ, each renormalised. `global`: scores divided by ϑ, then the
marginals. Of a second-order parser the scores are the logarithms of its mean-field marginals, which is what it gives.
Where the student's marginals are softened too (`posterior` with `soften: both`), in the same mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from raykd.signals import Need

if TYPE_CHECKING:
    from raykd.structures import Chain

Temperature = Annotated[float, Field(gt=0, le=100)]
TemperatureMode = Literal["local", "global"]
Soften = Literal["teacher", "both"]


def divides_scores(temperature: float, mode: TemperatureMode) -> bool:
    """Whether scores are divided by the temperature, so that marginals at ϑ = 1 are not enough."""
    return mode == "global" and temperature != 1


def marginal_needs(temperature: float, mode: TemperatureMode) -> tuple[Need, ...]:
    """What token marginals at a temperature are computed from."""
    return (Need("softened" if divides_scores(temperature, mode) else "marginals"),)


def soften(chain: Chain, temperature: float) -> Chain:
    """The chain whose scores are divided by the temperature: p(y)^(1/ϑ), renormalised over all labellings."""
    return chain if temperature == 1 else chain.map(lambda scores: scores / temperature)


def soften_student(student: Chain, temperature: float, soften: Soften) -> tuple[Chain, float]:
    """The student as the loss sees it, and the factor of the loss: unchanged and 1, or softened and ϑ²."""
    return (student, 1.0) if soften == "teacher" else (soften(student, temperature), temperature**2)
