"""Second-order mean field against a loop over the equation, and against the definition of mean field."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from raykd.structures import Arcs, best_trees, head_log_marginals, mean_field
from tests.oracles.trees import expected_step, mean_field_step
from tests.structures.chains import MINUS_INFINITY, SETTINGS

PAIRS = ("none", "siblings", "grandparents", "both")


@st.composite
def problems(draw, forbid=True) -> tuple[Arcs, dict[str, Tensor]]:
    """Ragged arcs with symmetric siblings, grandparents, both or neither; what must not be read is NaN."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    B, T, kind = draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.sampled_from(PAIRS))
    scores = 2 * torch.randn(B, T, T + 1, generator=generator, dtype=torch.float64)
    if forbid:
        scores[torch.rand(scores.shape, generator=generator) < draw(st.sampled_from([0.0, 0.3]))] = (
            MINUS_INFINITY
        )
    arcs = Arcs(scores, torch.randint(1, T + 1, (B,), generator=generator))
    arcs.scores_BTH[~arcs.mask_BTH] = float("nan")
    siblings = torch.randn(B, T + 1, T, T, generator=generator, dtype=torch.float64)
    grandparents = torch.randn(B, T, T, T + 1, generator=generator, dtype=torch.float64)
    siblings = siblings + siblings.transpose(2, 3)
    siblings.diagonal(dim1=2, dim2=3).fill_(float("nan"))
    for t in range(T):
        siblings[:, t + 1, t] = siblings[:, t + 1, :, t] = float("nan")
        grandparents[:, t, t] = grandparents[:, t, :, t + 1] = grandparents[:, :, t, t + 1] = float("nan")
    for b, n in enumerate(arcs.lengths_B.tolist()):
        for part in (siblings[b, :, n:], siblings[b, :, :, n:], siblings[b, n + 1 :]):
            part.fill_(float("nan"))
        for part in (grandparents[b, n:], grandparents[b, :, n:], grandparents[b, :, :, n + 1 :]):
            part.fill_(float("nan"))
    pairs = {"siblings_BHTT": siblings, "grandparents_BTTH": grandparents}
    return arcs, {name: part for name, part in pairs.items() if kind in (name.partition("_")[0], "both")}


def of_sentence(arcs: Arcs, pairs: dict[str, Tensor], b: int) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, siblings and grandparents of one sentence without padding, zeros where not given."""
    n = int(arcs.lengths_B[b])
    siblings = pairs.get("siblings_BHTT", torch.zeros(arcs.batch, n + 1, n, n, dtype=torch.float64))
    grandparents = pairs.get("grandparents_BTTH", torch.zeros(arcs.batch, n, n, n + 1, dtype=torch.float64))
    return arcs.scores_BTH[b, :n, : n + 1], siblings[b, : n + 1, :n, :n], grandparents[b, :n, :n, : n + 1]


@SETTINGS
@given(problem=problems(), iterations=st.integers(1, 4))
def test_every_iteration_is_its_equation(problem, iterations):
    arcs, pairs = problem
    actual = mean_field(arcs, **pairs, iterations=iterations)
    for b, n in enumerate(arcs.lengths_B.tolist()):
        scores_TH, *parts = of_sentence(arcs, pairs, b)
        itself_TH = torch.eye(n, dtype=torch.bool)
        logits_TH = scores_TH.masked_fill(torch.cat([torch.zeros(n, 1).bool(), itself_TH], 1), MINUS_INFINITY)
        if (logits_TH == MINUS_INFINITY).all(1).any():
            assert (head_log_marginals(actual)[b] == MINUS_INFINITY).all()
            continue
        for _ in range(iterations):
            logits_TH = mean_field_step(scores_TH, logits_TH.softmax(1), *parts)
        expected_TH = logits_TH.log_softmax(1)
        torch.testing.assert_close(head_log_marginals(actual)[b, :n, : n + 1], expected_TH)


@SETTINGS
@given(problem=problems(forbid=False))
def test_an_iteration_expects_the_scores_of_all_analyses(problem):
    arcs, pairs = problem
    actual = mean_field(arcs, **pairs, iterations=1)
    for b, n in enumerate(arcs.lengths_B.tolist()):
        q_TH = head_log_marginals(arcs)[b, :n, : n + 1].exp()
        scores_TH, *parts = of_sentence(arcs, pairs, b)
        expected_TH = expected_step(scores_TH, q_TH, *parts)
        possible_TH = arcs.mask_BTH[b, :n, : n + 1]
        expected_TH = expected_TH.masked_fill(~possible_TH, MINUS_INFINITY).log_softmax(1)
        torch.testing.assert_close(head_log_marginals(actual)[b, :n, : n + 1], expected_TH)


def some(T: int = 4) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    shapes = ((2, T, T + 1), (2, T + 1, T, T), (2, T, T, T + 1))
    parts = [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]
    return *parts, torch.tensor([T, T - 1])


def test_derivatives():
    *parts, lengths_B = some(3)

    def logs(scores, siblings, grandparents):
        arcs = Arcs(scores, lengths_B)
        actual = mean_field(arcs, siblings_BHTT=siblings, grandparents_BTTH=grandparents, iterations=2)
        return torch.where(arcs.mask_BTH, head_log_marginals(actual), 0)

    assert gradcheck(logs, parts)


def test_pairs_change_the_best_heads_and_the_result_can_be_repaired():
    """Siblings under the root and nothing else: the words move there together."""
    arcs = Arcs(torch.zeros(1, 3, 4), torch.tensor([3]))
    arcs.scores_BTH[:, :, 1] = 0.5
    siblings = torch.zeros(1, 4, 3, 3)
    siblings[:, 0] = 5.0
    actual = mean_field(arcs, siblings_BHTT=siblings)
    assert arcs.possible().argmax(2).tolist() != [[0, 0, 0]]
    assert actual.possible().argmax(2).tolist() == [[0, 0, 0]]
    repaired = best_trees(actual)[0]
    assert (repaired == 0).sum() == 1


def test_half_precision_pairs_are_widened():
    scores, siblings, _, lengths_B = (part.detach() for part in some())
    actual = mean_field(Arcs(scores.bfloat16(), lengths_B), siblings_BHTT=siblings.bfloat16())
    assert actual.dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"siblings_BHTT": torch.zeros(2, 4, 4, 4)}, r"siblings must be \[2, 5, 4, 4\]"),
        ({"grandparents_BTTH": torch.zeros(2, 5, 5, 4)}, r"grandparents must be \[2, 4, 4, 5\]"),
        ({"iterations": 0}, "at least 1"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    arcs = Arcs(torch.zeros(2, 4, 5), torch.tensor([4, 3]))
    with pytest.raises(ValueError, match=message):
        mean_field(arcs, **change)
