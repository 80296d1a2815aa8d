"""Losses over the pieces of a vocabulary: in chunks they are what they are of the whole."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from raykd.forms.targets import Targets
from raykd.layers.model import Output
from raykd.objectives import Gold, Mix, Objective, Part, Top1
from raykd.objectives.chunks import compute_losses
from raykd.objectives.emission import Emission
from raykd.objectives.logits import Logits
from raykd.objectives.losses import Loss
from raykd.objectives.pos_top_wk import PosTopWK
from raykd.objectives.posterior import Posterior
from raykd.objectives.structural import Structural
from raykd.objectives.token import Token
from raykd.objectives.top_k import TopK
from raykd.objectives.top_wk import TopWK
from raykd.signals import Sizes, TeacherBatch
from raykd.structures import Chain, UnscoredChain, kbest, unscored, viterbi

SIZE, TAGS, K = 3, 7, 2
SINGLE: tuple[Objective, ...] = (
    Gold(), Top1(), Emission(), Token(), Token(temperature=2.0, soften="both"), TopK(k=K), TopWK(k=K),
    Posterior(), Posterior(temperature=2.0, soften="both"), PosTopWK(k=K), Structural(temperature=2.0), Logits(),
    Logits(head="own"),
)  # fmt: skip
EVERYTHING = Mix(
    parts=(
        Part(objective=Gold(), text="labelled"), Part(objective=Token(), weight=0.5),
        Part(objective=Posterior(), anneal="falling"),
    )
)  # fmt: skip


def named(objective: Any) -> str:
    return "-".join(f"{value}" for value in objective.model_dump(exclude={"parts"}).values())


class Case:
    """A student and a teacher with one linear layer from states to scores, and a loss between them."""

    def __init__(self, objective: Objective, lengths: list[int], *, tags: int = TAGS):
        torch.manual_seed(len(lengths))
        self.lengths_B, shape = torch.tensor(lengths), (len(lengths), max(lengths))
        self.states_BTD = torch.randn(*shape, SIZE, dtype=torch.float64, requires_grad=True)
        self.heads = [nn.Linear(SIZE, tags).double() for _ in range(2)]
        self.heads[1].requires_grad_(False)
        self.tags_BT, self.labelled_B = torch.randint(tags, shape), torch.arange(shape[0]) % 3 != 1
        self.teacher_BTD = torch.randn(*shape, SIZE, dtype=torch.float64)
        self.loss: Loss = objective.build(Sizes(tags, {-1: SIZE}), Sizes(tags), labelled=0.5).double()

    def unscored(self, states_BTD: Tensor, head: nn.Module) -> UnscoredChain:
        return UnscoredChain(
            states_BTD, self.lengths_B, head, tags=self.heads[0].out_features, parameters=[*head.parameters()]
        )

    def read(self) -> tuple[Output, Targets, TeacherBatch]:
        """Inputs of the loss in a step. Hidden states depend on the same inputs as scores."""
        chain = self.unscored(self.teacher_BTD, self.heads[1])
        paths = kbest(chain, K)
        output = Output(self.unscored(self.states_BTD * 2, self.heads[0]), {-1: self.states_BTD.tanh()})
        return output, Targets(self.tags_BT, self.labelled_B), TeacherBatch(chain, *paths)

    def gradients(self) -> dict[str, Tensor]:
        """Losses per sentence, parts of the losses, and gradients of a weighted sum."""
        (losses,) = compute_losses([self.loss], *self.read(), kd_weight=0.25)
        weight_B = torch.linspace(0.5, 1.5, len(self.lengths_B), dtype=torch.float64)
        inputs = {
            "states": self.states_BTD, **dict(self.heads[0].named_parameters()),
            **{f"own {name}": parameter for name, parameter in self.loss.named_parameters()},
        }  # fmt: skip
        result = torch.autograd.grad((losses.total_B * weight_B).sum(), [*inputs.values()], allow_unused=True)
        of = {
            f"gradient of {name}": part for name, part in zip(inputs, result, strict=True) if part is not None
        }
        return {"loss": losses.total_B, **losses.parts, **of}


def whole_and_chunked(case: Case, monkeypatch: pytest.MonkeyPatch, max_scores: int) -> None:
    monkeypatch.setattr(unscored, "MAX_SCORES", 10**9)
    expected = case.gradients()
    assert case.read()[0].distribution.fits_in_memory  # type: ignore[union-attr]
    monkeypatch.setattr(unscored, "MAX_SCORES", max_scores)
    result = case.gradients()
    assert result.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            result[name], value, rtol=1e-12, atol=1e-12, msg=partial(str.format, name + ": {}")
        )


@pytest.mark.parametrize("objective", [*SINGLE, EVERYTHING], ids=named)
def test_each_loss_in_chunks_is_that_of_the_whole_with_its_gradients(objective, monkeypatch):
    whole_and_chunked(Case(objective, [4, 1, 3, 2, 5]), monkeypatch, max_scores=3 * TAGS)


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=6), max_scores=st.integers(1, 12 * TAGS))
def test_chunks_of_any_size_cut_sentences_of_any_length(lengths, max_scores):
    with pytest.MonkeyPatch.context() as monkeypatch:
        whole_and_chunked(Case(EVERYTHING, lengths), monkeypatch, max_scores)


class Largest(TorchDispatchMode):
    """Records the elements of the largest computed tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        outputs = function(*args, **(kwargs or {}))
        for output in outputs if isinstance(outputs, tuple | list) else (outputs,):
            if isinstance(output, Tensor):
                self.elements = max(self.elements, output.numel())
        return outputs


@pytest.mark.parametrize("objective", [*SINGLE, EVERYTHING], ids=named)
def test_no_tensor_of_the_whole_is_computed_and_chunks_are_not_kept(objective, monkeypatch):
    case, tags = Case(objective, [20, 30, 25], tags=200), 200
    whole = 90 * tags
    sizes: list[int] = []

    def measured() -> int:
        with Largest() as largest:
            case.gradients()
        return largest.elements

    assert measured() >= whole, "the measure sees it"
    monkeypatch.setattr(unscored, "MAX_SCORES", 10 * tags)
    assert measured() <= 2 * 10 * tags, "the moments of K best paths are the largest"
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: sizes.append(tensor.numel()) or tensor, lambda tensor: tensor
    ):
        compute_losses([case.loss], *case.read(), kd_weight=0.25)
    assert max(sizes) < 10 * tags


def test_best_labellings_of_a_vocabulary_are_those_of_all_its_scores(monkeypatch):
    case = Case(Gold(), [4, 1, 3])
    chain = case.unscored(case.teacher_BTD, case.heads[1])
    whole = Chain(case.heads[1](case.teacher_BTD), case.lengths_B)
    monkeypatch.setattr(unscored, "MAX_SCORES", 2 * TAGS)
    for k in (1, 3, TAGS + 2):
        for actual, expected in zip(kbest(chain, k), kbest(whole, k), strict=True):
            torch.testing.assert_close(actual, expected)
    assert torch.equal(viterbi(chain)[0], viterbi(whole)[0])


def test_the_best_labelling_of_a_vocabulary_computes_no_tensor_of_the_whole(monkeypatch):
    case, tags = Case(Gold(), [20, 30, 25], tags=200), 200
    chain = case.unscored(case.teacher_BTD, case.heads[1])
    monkeypatch.setattr(unscored, "MAX_SCORES", 10 * tags)
    with Largest() as largest:
        viterbi(chain)
    assert largest.elements <= 10 * tags


def test_transitions_and_wrong_lengths_are_refused():
    chain = Chain(torch.zeros(1, 2, TAGS), torch.tensor([2]), torch.zeros(TAGS, TAGS))
    with pytest.raises(ValueError, match="not independent"):
        unscored.chunk_tokens(chain, slice(0, 1))
    with pytest.raises(ValueError, match="lengths must lie in"):
        UnscoredChain(torch.zeros(1, 2, SIZE), torch.tensor([3]), nn.Linear(SIZE, TAGS), tags=TAGS)
