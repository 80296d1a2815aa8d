"""Weighted Top-K distillation: the teacher's K best labellings, weighted by probability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from typing_extensions import override

from raykd.objectives.protocol import Objective, best_paths
from raykd.objectives.temperature import Temperature
from raykd.signals import Need

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.signals import TeacherBatch
    from raykd.structures import Chain


class TopWK(Objective):
    """−Σ_k w_k log p_s(ŷ_k) over the teacher's K best labellings (Wang et al., ACL 2020, Eq. 7).

    An annotator's samples are all used, whatever `k`.

    w = softmax(scores / ϑ) over the labellings that exist: the teacher's probabilities at temperature ϑ,
    renormalised. At least H(w), reached iff the student gives the K labellings their weights and nothing to
    any other.
    """

    kind: Literal["top_wk"] = "top_wk"
    k: Annotated[int, Field(ge=1)] = 5
    temperature: Temperature = 1.0

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        # Samples have no scores that a temperature could divide.
        return (Need("weighted_paths" if self.temperature == 1 else "kbest", k=self.k),)

    @override
    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        from raykd.structures import path_loss, path_weights

        paths_BKT, scores_BK = best_paths(teacher, self.k, self.kind)
        return path_loss(student, paths_BKT, path_weights(scores_BK.to(student.dtype) / self.temperature))
