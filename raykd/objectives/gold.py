"""Gold likelihood: training without a teacher."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from raykd.objectives.protocol import best_paths
from raykd.spec import Frozen
from raykd.structures import path_loss

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.signals import Need, TeacherBatch
    from raykd.structures import Chain


class Gold(Frozen):
    """−log p_s(y*), the negative log-likelihood of given tags (Wang et al., ACL 2020, §2.1). Without a teacher
    unlabelled text says nothing: it is left out.

    Infimum 0, approached as the student puts all probability on y*. The tags are the batch's first path.
    """

    kind: Literal["gold"] = "gold"
    maxent_only: ClassVar[bool] = False
    reads_pairs: ClassVar[bool] = False

    @property
    def needs(self) -> tuple[Need, ...]:
        return ()

    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        paths_BKT, _ = best_paths(teacher, 1, self.kind)
        return path_loss(student, paths_BKT[:, 0])
