"""Temperature, defined once for all objectives.

`soften: teacher` (the default) softens the teacher alone: the student's scores stay at ϑ = 1 and there is no ϑ²
factor. `soften: both` divides the student's scores by ϑ as well and multiplies the loss by ϑ², so that gradients keep
their size (Hinton et al. 2015, §2).

`temperature_mode` says where marginals are softened (Wang et al., ACL 2021, §5.2). `local`: substructure marginals at
ϑ = 1, their logarithms divided by ϑ, each renormalised. `global`: scores divided by ϑ, then the marginals. The scores
of a second-order parser are the logarithms of its mean-field marginals, its only output. If the student's marginals are
softened too (`posterior` with `soften: both`), they are softened in the same mode.
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
    """Return True if scores are divided by the temperature, so that marginals at ϑ = 1 are not enough.

    Args:
        temperature: ϑ.
        mode: Temperature mode.
    """
    return mode == "global" and temperature != 1


def marginal_needs(temperature: float, mode: TemperatureMode) -> tuple[Need, ...]:
    """Return the signals from which token marginals at a temperature are computed.

    Args:
        temperature: ϑ.
        mode: Temperature mode.
    """
    if divides_scores(temperature, mode):
        return (Need("softened"),)
    return (Need("marginals" if temperature == 1 else "soft_marginals"),)


def soften_chain(chain: Chain, temperature: float) -> Chain:
    """Return the chain with scores divided by the temperature: p(y)^(1/ϑ), renormalised over all labellings.

    Args:
        chain: Any chain.
        temperature: ϑ.
    """
    return chain if temperature == 1 else chain.map(lambda scores: scores / temperature)


def soften_student(student: Chain, temperature: float, soften: Soften) -> tuple[Chain, float]:
    """Return the student's chain for the loss, and the factor of the loss: unchanged and 1, or softened and ϑ².

    Args:
        student: Chain of the student.
        temperature: ϑ.
        soften: "teacher" leaves the student unchanged, "both" softens it.
    """
    return (student, 1.0) if soften == "teacher" else (soften_chain(student, temperature), temperature**2)
