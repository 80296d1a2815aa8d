"""Students and teachers for the tests of objectives: random, ragged, small enough to enumerate."""

from dataclasses import dataclass, replace

import torch
from hypothesis import strategies as st

from raykd.signals import TeacherBatch
from raykd.structures import Chain, kbest

FORBIDDEN = float("-inf")


@dataclass(frozen=True)
class Case:
    """A student and what its teacher says about the same sentences."""

    student: Chain
    teacher: Chain
    k: int

    @property
    def signals(self) -> TeacherBatch:
        return TeacherBatch(self.teacher, *kbest(self.teacher, self.k))


def draw_chain(lengths_B, tags, generator, *, chained=True, own=False) -> Chain:
    """A random chain in float64; `own` gives every sentence its own transitions, as different teachers do."""

    def normal(*shape):
        return 2 * torch.randn(*shape, generator=generator, dtype=torch.float64)

    emissions_BTY = normal(len(lengths_B), int(lengths_B.max()), tags)
    if not chained:
        return Chain(emissions_BTY, lengths_B)
    rows = (len(lengths_B),) if own else ()
    return Chain(
        emissions_BTY, lengths_B, normal(*rows, tags, tags), normal(*rows, tags), normal(*rows, tags)
    )


def forbid(chain: Chain, generator) -> Chain:
    """The chain with some scores at −∞; the first tag throughout stays allowed: some labelling exists."""
    barred_BTY = torch.rand(chain.emissions_BTY.shape, generator=generator) < 0.3
    barred_BTY[:, :, 0] = False
    emissions_BTY = chain.emissions_BTY.masked_fill(barred_BTY, FORBIDDEN)
    if chain.transitions is None:
        return replace(chain, emissions_BTY=emissions_BTY)
    barred = torch.rand(chain.transitions.shape, generator=generator) < 0.4
    barred &= ~torch.eye(chain.tags, dtype=torch.bool)
    return replace(
        chain, emissions_BTY=emissions_BTY, transitions=chain.transitions.masked_fill(barred, FORBIDDEN)
    )


def make_case(
    seed: int,
    *,
    maxent=False,
    forbidden=False,
    lengths=(3, 1, 4),
    tags=3,
    k=4,
    student_chained=True,
    teacher_chained=True,
) -> Case:
    """One case by its seed. With `maxent` neither side has transitions."""
    generator = torch.Generator().manual_seed(seed)
    lengths_B = torch.tensor(lengths)
    student = draw_chain(lengths_B, tags, generator, chained=student_chained and not maxent)
    teacher = draw_chain(lengths_B, tags, generator, chained=teacher_chained and not maxent, own=True)
    if forbidden:
        teacher = forbid(teacher, generator)
    return Case(student, teacher, k)


@st.composite
def cases(draw, *, maxent=False, forbidden=None, student_chained=None, teacher_chained=True):
    """Cases with 1–3 sentences of 1–4 tokens and 2–3 tags."""
    return make_case(
        draw(st.integers(0, 2**31)),
        maxent=maxent,
        forbidden=draw(st.booleans()) if forbidden is None else forbidden,
        lengths=tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))),
        tags=draw(st.integers(2, 3)),
        k=draw(st.integers(1, 6)),
        student_chained=draw(st.booleans()) if student_chained is None else student_chained,
        teacher_chained=draw(st.booleans()) if teacher_chained is None else teacher_chained,
    )


def rows(chain: Chain, index: slice) -> Chain:
    """Some sentences of a chain, with no more padding than they need."""
    lengths_B = chain.lengths_B[index]

    def own(part, shared):
        return part if part is None or part.dim() == shared else part[index]

    parts = own(chain.transitions, 2), own(chain.start, 1), own(chain.end, 1)
    return Chain(chain.emissions_BTY[index, : int(lengths_B.max())], lengths_B, *parts)


def padded(chain: Chain, steps: int, value: float = 7.0) -> Chain:
    """The chain with `steps` more columns of padding, which hold `value`."""
    B, _, Y = chain.emissions_BTY.shape
    return replace(
        chain,
        emissions_BTY=torch.cat(
            [chain.emissions_BTY, torch.full((B, steps, Y), value, dtype=chain.dtype)], 1
        ),
    )
