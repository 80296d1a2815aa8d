"""Students and teachers for the tests of objectives: random, ragged, small enough to enumerate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from raykd.forms.targets import Targets
from raykd.layers.model import Output
from raykd.objectives import Objective
from raykd.objectives.losses import Losses
from raykd.signals import Need, Sizes, TeacherBatch
from raykd.structures import Chain, Spans, kbest, viterbi

FORBIDDEN = float("-inf")
LABELLED = 0.4
"""The share of labelled sentences that losses are built for, whatever a case has."""


@dataclass(frozen=True)
class Case:
    """A student, what its teacher gives for the same sentences, and their labels: the teacher's best, if not given."""

    student: Chain
    teacher: Chain | Spans
    k: int
    labels: Targets | None = None

    @property
    def signals(self) -> TeacherBatch:
        inside = {}
        if isinstance(self.teacher, Chain):
            inside = {
                "pieces": teacher_pieces(self.teacher),
                "attention": attention(self.teacher, heads=(2, 3)),
            }
        return TeacherBatch(self.teacher, *kbest(self.teacher, self.k), hidden=self.hidden, **inside)

    @property
    def hidden(self) -> dict[Need, tuple[Tensor, Tensor]]:
        """States of layer 1, if the teacher is a chain: its emissions, but finite as states are."""
        if not isinstance(self.teacher, Chain):
            return {}
        states_BTY = self.teacher.emissions_BTY.detach().clamp(min=-30.0)
        return {
            Need(name, layer=1): (states_BTY, self.teacher.lengths_B) for name in ("hidden", "hidden_int8")
        }

    @property
    def targets(self) -> Targets:
        return self.labels or targets_of(viterbi(self.teacher)[0])


LAYERS = range(4)
"""Of the encoders that stand behind students and teachers."""


def pieces(chain: Chain) -> dict[int, Tensor]:
    """States of the pieces by layer: the emissions, every word being one piece, and finite as states are."""
    states_BTY = chain.emissions_BTY.clamp(min=-30.0)
    return {layer: states_BTY * (layer + 1) for layer in LAYERS}


def teacher_pieces(chain: Chain) -> dict[int, Tensor]:
    """As a student's, in layer 3 with one more component."""
    wider = nn.functional.pad
    return {layer: wider(states, (0, int(layer == 3)), value=1.0) for layer, states in pieces(chain).items()}


def attention(chain: Chain, *, heads: tuple[int, int] = (2, 2)) -> dict[int, Tensor]:
    """Scores [B, H, P, P] by layer, of even and of odd ones with so many heads."""
    result = {}
    for layer, states_BPD in pieces(chain).items():
        scores_BPP = states_BPD @ states_BPD.mT / 10
        result[layer] = torch.stack([scores_BPP + head for head in range(heads[layer % 2])], 1)
    return result


def targets_of(labels_BT: Tensor, *, labelled: bool | list[bool] = True) -> Targets:
    """Labels of all sentences, or of some of them: the others have none, as in a batch of a corpus."""
    is_labelled = [labelled] * len(labels_BT) if isinstance(labelled, bool) else labelled
    labelled_B = torch.tensor(is_labelled)
    return Targets(labels_BT * labelled_B[:, None], labelled_B)


def known(shape: Sequence[int]) -> Tensor:
    """Fixed values for a loss's parameters of this shape."""
    return torch.linspace(-1, 1, math.prod(shape), dtype=torch.float64).reshape(*shape)


def built_losses(
    objective: Objective,
    case: Case,
    teacher: TeacherBatch | None = None,
    *,
    kd_weight: float = 1.0,
    labelled: float = LABELLED,
) -> Losses:
    """Losses of a built objective for a case; hidden states are the student's emissions."""
    wider = {need.layer: int(need.layer == 3) for need in objective.needs if need.signal == "piece_states"}
    layers = {
        need.layer: case.teacher.tags + wider.get(need.layer, 0)
        for need in objective.needs
        if need.layer is not None
    }
    layered = objective.label_layers
    hidden = dict.fromkeys(layered, case.student.emissions_BTY) if layered else {}
    sizes = Sizes(case.student.tags, dict.fromkeys((*hidden, *objective.piece_layers), case.student.tags))
    loss = objective.build(sizes, Sizes(case.student.tags, layers), labelled=labelled).to(case.student.dtype)
    with torch.no_grad():
        for parameter in loss.parameters():
            parameter.copy_(known(parameter.shape))
    signals = case.signals if teacher is None else teacher
    student = case.student
    inside = (pieces(student), attention(student), student.lengths_B) if isinstance(student, Chain) else ()
    output = Output(student, hidden, *inside)
    return loss(output, case.targets, signals, kd_weight=kd_weight)


def built_loss(objective: Objective, case: Case, teacher: TeacherBatch | None = None, **options) -> Tensor:
    """The total of `built_losses` [B]."""
    return built_losses(objective, case, teacher, **options).total_B


def draw_chain(lengths_B, tags, generator, *, chained=True, per_sentence=False) -> Chain:
    """A random chain in float64; `per_sentence` gives every sentence separate transitions, as different teachers do."""

    def normal(*shape):
        return 2 * torch.randn(*shape, generator=generator, dtype=torch.float64)

    emissions_BTY = normal(len(lengths_B), int(lengths_B.max()), tags)
    if not chained:
        return Chain(emissions_BTY, lengths_B)
    rows = (len(lengths_B),) if per_sentence else ()
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
    """One case by seed, every second sentence labelled at random. With `maxent` neither side has transitions."""
    generator = torch.Generator().manual_seed(seed)
    lengths_B = torch.tensor(lengths)
    student = draw_chain(lengths_B, tags, generator, chained=student_chained and not maxent)
    teacher = draw_chain(
        lengths_B, tags, generator, chained=teacher_chained and not maxent, per_sentence=True
    )
    if forbidden:
        teacher = forbid(teacher, generator)
    labels_BT = torch.randint(tags, (len(lengths), max(lengths)), generator=generator)
    return Case(
        student, teacher, k, targets_of(labels_BT, labelled=[b % 2 == 0 for b in range(len(lengths))])
    )


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


def alone(case: Case, b: int) -> Case:
    """One sentence of a case, with no more padding than it needs."""
    row, length = slice(b, b + 1), int(case.student.lengths_B[b])
    targets = Targets(case.targets.tags_BT[row, :length], case.targets.labelled_B[row])
    return Case(_row(case.student, row, length), _row(case.teacher, row, length), case.k, targets)


def _row(chain: Chain, row: slice, length: int) -> Chain:
    shared = ((chain.transitions, 2), (chain.start, 1), (chain.end, 1))
    parts = (part if part is None or part.dim() == dims else part[row] for part, dims in shared)
    return Chain(chain.emissions_BTY[row, :length], chain.lengths_B[row], *parts)


def padded(chain: Chain, steps: int, value: float = 7.0) -> Chain:
    """The chain with `steps` more columns of padding, which hold `value`."""
    B, _, Y = chain.emissions_BTY.shape
    return replace(
        chain,
        emissions_BTY=torch.cat(
            [chain.emissions_BTY, torch.full((B, steps, Y), value, dtype=chain.dtype)], 1
        ),
    )
