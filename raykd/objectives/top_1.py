"""Top-1 pseudo-labels: the teacher's best labelling as gold where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from raykd.objectives.protocol import best_paths
from raykd.signals import Need
from raykd.spec import Frozen
from raykd.structures import path_loss

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.signals import TeacherBatch
    from raykd.structures import Chain


class Top1(Frozen):
    """−log p_s(ŷ₁) of the teacher's best labelling on unlabelled text, gold on labelled; λ has no say (Wang et al.,
    ACL 2021, §4: the "Top-1" rows of Tables 2, 9 and 10).

    Infimum 0, approached as the student puts all probability on ŷ₁. Labelled sentences keep their gold tags, which
    a teacher trained on them tells almost without fault (there, footnote 4). Not to be confused with `top_k` at
    k = 1, whose loss is the same but which λ weighs, and which hears the teacher on labelled sentences too.
    """

    kind: Literal["top_1"] = "top_1"
    maxent_only: ClassVar[bool] = False
    reads_pairs: ClassVar[bool] = False

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("kbest", k=1),)

    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        paths_BKT, _ = best_paths(teacher, 1, self.kind)
        return path_loss(student, paths_BKT[:, 0])
