"""What every objective can do, and the ways to ask a teacher's batch for its parts.

Shapes: B batch, T time, Y tags, K best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.signals import Need, TeacherBatch
    from raykd.structures import Chain


@runtime_checkable
class Objective(Protocol):
    """A loss with its hyper-parameters.

    `maxent_only` says that teacher and student must both be without transitions, `reads_pairs` that a student
    with transitions needs the teacher's pairs of neighbouring tags beside `needs`.
    """

    maxent_only: ClassVar[bool]
    reads_pairs: ClassVar[bool]

    @property
    def kind(self) -> str:
        """The objective's name in the table."""
        ...

    @property
    def needs(self) -> tuple[Need, ...]:
        """The signals that `loss` reads."""
        ...

    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        """The loss of each sentence in nats, summed over its tokens; differentiable in the student.

        Raises:
            ValueError: the batch lacks a signal that `needs` names.
        """
        ...


def teacher_chain(teacher: TeacherBatch, kind: str) -> Chain:
    """The teacher's chain, outside every gradient; ValueError when the batch has none."""
    if teacher.chain is None:
        raise ValueError(f"objective {kind!r} reads the teacher's emissions and this batch has none")
    return teacher.chain.detach()


def marginals_chain(teacher: TeacherBatch, kind: str, *, softened: bool) -> Chain:
    """A chain with the teacher's token marginals, outside every gradient: its own, or independent tags with these.

    Raises:
        ValueError: the batch has neither, or its scores are to be `softened` and marginals are all it has.
    """
    if teacher.chain is None and teacher.marginals is not None and not softened:
        return teacher.marginals.detach()
    return teacher_chain(teacher, kind)


def best_paths(
    teacher: TeacherBatch, k: int, kind: str
) -> tuple[Int[Tensor, "batch best time"], Float[Tensor, "batch best"]]:
    """The k best paths and their scores, −∞ where a sentence has fewer; any stored K ≥ k serves.

    Raises:
        ValueError: the batch holds no paths, or fewer than `k` per sentence.
    """
    if teacher.paths_BKT is None or teacher.scores_BK is None:
        raise ValueError(f"objective {kind!r} reads the teacher's best paths and this batch has none")
    stored = teacher.paths_BKT.shape[1]
    if stored < k:
        raise ValueError(
            f"objective {kind!r} asks for k = {k} paths and {stored} are stored; precompute k = {k}"
        )
    return teacher.paths_BKT[:, :k], teacher.scores_BK[:, :k]


def has_transitions(chain: Chain) -> bool:
    """Whether the chain relates tags to each other or to the sentence's ends; a MaxEnt model does not."""
    return any(
        part is not None and bool(torch.any(part != 0))
        for part in (chain.transitions, chain.start, chain.end)
    )
