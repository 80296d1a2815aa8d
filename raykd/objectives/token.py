"""Token-level distillation between MaxEnt models."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from typing_extensions import override

from raykd.objectives.protocol import Objective, has_transitions, marginals_chain
from raykd.objectives.temperature import Soften, Temperature
from raykd.signals import Need

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.signals import TeacherBatch
    from raykd.structures import Chain


class Token(Objective):
    """Σ_t CE(p_t(y_t), p_s(y_t)) between MaxEnt models (Wang et al., ACL 2020, §2.2).

    Minimal, at the teacher's entropy, iff the distributions of both models agree (at ϑ = 1, or with both sides
    tempered). With a chain on either side, softmaxed emissions are not its token distributions: use `posterior` or
    `structural`. A teacher that is no chain gives its token marginals.
    """

    kind: Literal["token"] = "token"
    temperature: Temperature = 1.0
    soften: Soften = "teacher"
    maxent_only: ClassVar[bool] = True

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        # The transitions of a chain are read too, to check that there are none.
        return (Need("marginals" if self.temperature == 1 else "soft_marginals"),)

    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        """See `Objective.loss`; ValueError also if either side has transitions."""
        from raykd.objectives.softmax import softmax_cross_entropy

        chain = marginals_chain(teacher, self.kind, softened=False, tags=student.tags)
        for side, is_chain in (
            ("teacher", has_transitions(chain)),
            ("student", student.transitions is not None),
        ):
            if is_chain:
                hint = "give it decoder maxent" if side == "student" else "choose a MaxEnt teacher"
                raise ValueError(
                    f"objective 'token' is between MaxEnt models and the {side} is a chain; {hint}"
                )
        return softmax_cross_entropy(chain, student, temperature=self.temperature, soften=self.soften)
