"""Top-K distillation: the teacher's K best labellings as equally good gold labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from typing_extensions import override

from raykd.objectives.protocol import Objective, best_paths
from raykd.signals import Need

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.signals import TeacherBatch
    from raykd.structures import Chain


class TopK(Objective):
    """−(1/K) Σ_k log p_s(ŷ_k) over the teacher's K best labellings (Wang et al., ACL 2020, Eq. 6).

    At least log K, reached iff the student spreads its probability evenly over the K. If fewer than `k` labellings
    exist, K is their number.
    """

    kind: Literal["top_k"] = "top_k"
    k: Annotated[int, Field(ge=1)] = 5

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        return (Need("kbest", k=self.k),)

    @override
    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        from raykd.structures import path_loss

        paths_BKT, scores_BK = best_paths(teacher, self.k, self.kind)
        exists_BK = (scores_BK > float("-inf")).to(student.dtype)
        # No path exists if the teacher's chain forbids all of them: the weights are then 0 / 1 and not 0 / 0.
        return path_loss(student, paths_BKT, exists_BK / exists_BK.sum(1, keepdim=True).clamp_min(1))
