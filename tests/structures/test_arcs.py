"""Dependency arcs against the enumeration of all assignments of heads."""

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from raykd.structures import Arcs, are_trees, best_trees, engine, head_log_marginals
from tests.oracles.trees import best_total, enumerate_heads, enumerate_trees, is_dependency_tree
from tests.structures.chains import DTYPES, MINUS_INFINITY, SETTINGS

LENGTHS = torch.tensor([3, 1, 2])


@st.composite
def arcs_of(draw, magnitudes=(0.1, 1.0, 5.0, 50.0), forbid=True) -> Arcs:
    """Ragged arcs small enough to enumerate; with `forbid`, some are −∞, up to all of them."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    B, T = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    scale, dtype = draw(st.sampled_from(magnitudes)), draw(st.sampled_from(DTYPES))
    scores = torch.randn(B, T, T + 1, generator=generator, dtype=torch.float64).clamp(-3, 3) * scale
    share = draw(st.sampled_from([0.0, 0.3, 0.6, 1.0])) if forbid else 0.0
    scores[torch.rand(scores.shape, generator=generator) < share] = MINUS_INFINITY
    arcs = Arcs(scores.to(dtype), torch.randint(1, T + 1, (B,), generator=generator))
    arcs.scores_BTH[~arcs.mask_BTH] = float("nan")  # scores of impossible arcs must never be read
    return arcs


def close(actual, expected, arcs, *, size: float = 1.0):
    error = 2e-5 if arcs.dtype == torch.float32 else 1e-10
    torch.testing.assert_close(actual.double(), expected.double(), atol=error * max(size, 1.0), rtol=error)


def size_of(law) -> float:
    finite = law.scores[law.scores.isfinite()]
    return float(finite.abs().max()) if len(finite) else 1.0


@SETTINGS
@given(arcs=arcs_of())
def test_log_marginals_are_those_of_all_ways_to_choose_heads(arcs):
    logs_BTH = head_log_marginals(arcs)
    assert logs_BTH.dtype == arcs.dtype
    for b, law in enumerate(enumerate_heads(arcs)):
        n = int(arcs.lengths_B[b])
        close(logs_BTH[b, :n].exp(), law.token_marginals(), arcs)
        assert (logs_BTH[b, n:] == MINUS_INFINITY).all()


@SETTINGS
@given(arcs=arcs_of())
def test_decoding_finds_the_best_tree(arcs):
    heads_BT, scores_B = best_trees(arcs)
    assert scores_B.dtype == arcs.dtype
    for b, law in enumerate(enumerate_trees(arcs)):
        n = int(arcs.lengths_B[b])
        close(scores_B[b], law.scores.max(), arcs, size=size_of(law))
        assert not heads_BT[b, n:].any()
        if law.scores.max() > MINUS_INFINITY:
            heads = tuple(heads_BT[b, :n].tolist())
            close(law.scores[law.paths.index(heads)], law.scores.max(), arcs, size=size_of(law))
        else:
            assert not heads_BT[b].any()


@SETTINGS
@given(seed=st.integers(0, 2**31), ties=st.booleans())
def test_the_best_tree_of_eight_words_is_the_best_of_all(seed, ties):
    """Eight words: enough for cycles of cycles."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(3, 8, 9, generator=generator, dtype=torch.float64)
    arcs = Arcs(scores.round() if ties else scores, torch.full((3,), 8))
    heads_BT, best_B = best_trees(arcs)
    for scores_TH, heads_T, best in zip(arcs.scores_BTH, heads_BT, best_B, strict=True):
        assert is_dependency_tree(tuple(heads_T.tolist()))
        close(scores_TH.gather(1, heads_T[:, None]).sum(), best, arcs)
        assert float(best) == pytest.approx(best_total(scores_TH.tolist()), abs=1e-9)


def test_the_search_for_the_best_total_is_that_over_all_trees():
    """The oracle of eight words against the enumerating oracle."""
    scores = torch.randn(20, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for scores_TH, law in zip(scores, enumerate_trees(Arcs(scores, torch.full((20,), 4))), strict=True):
        assert best_total(scores_TH.tolist()) == pytest.approx(float(law.scores.max()))


def test_of_all_heads_of_four_words_those_of_a_tree_are_one():
    all_heads = list(product(range(5), repeat=4))
    arcs = Arcs(torch.zeros(len(all_heads), 4, 5), torch.full((len(all_heads),), 4))
    assert are_trees(arcs, torch.tensor(all_heads)).tolist() == [
        is_dependency_tree(heads) for heads in all_heads
    ]


@SETTINGS
@given(arcs=arcs_of(), extra=st.integers(1, 2))
def test_padding_and_the_order_of_the_batch_change_nothing(arcs, extra):
    B, T = arcs.batch, arcs.time + extra
    wider = torch.full((B, T, T + 1), float("nan"), dtype=arcs.dtype)
    wider[:, : arcs.time, : arcs.time + 1] = arcs.scores_BTH
    order = torch.arange(B - 1, -1, -1)
    turned = Arcs(wider[order], arcs.lengths_B[order])
    expected_BTH = head_log_marginals(arcs)[order]
    close(head_log_marginals(turned)[:, : arcs.time, : arcs.time + 1], expected_BTH, arcs)
    heads_BT, turned_heads_BT = best_trees(arcs)[0], best_trees(turned)[0]
    assert torch.equal(turned_heads_BT[:, : arcs.time], heads_BT[order])
    turned_heads_BT[:, arcs.time :] = -1  # heads on padding must never be read
    assert torch.equal(are_trees(turned, turned_heads_BT), are_trees(arcs, heads_BT)[order])


def test_the_best_tree_repairs_independent_heads():
    arcs = Arcs(torch.tensor([[[0.0, 0.0, 5.0], [-2.0, 4.0, 0.0]]]), torch.tensor([2]))
    best_BT = arcs.possible().argmax(2)
    assert best_BT.tolist() == [[2, 1]]  # a cycle
    assert not are_trees(arcs, best_BT)
    assert best_trees(arcs)[0].tolist() == [[0, 1]]


def test_without_a_compiler_the_error_says_what_to_repair(monkeypatch):
    monkeypatch.setattr(engine, "kernels", lambda arcs, operation: None)
    with pytest.raises(RuntimeError, match="reinstall numba"):
        best_trees(Arcs(torch.zeros(1, 2, 3), torch.tensor([2])))


def scores() -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(3, 3, 4, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_derivatives(check):
    def logs(leaf):
        arcs = Arcs(leaf, LENGTHS)
        return torch.where(arcs.mask_BTH, head_log_marginals(arcs), 0)

    assert check(logs, (scores(),))


@pytest.mark.parametrize("share", [0.4, 1.0])
def test_forbidden_arcs_leave_no_nan_in_any_derivative(share):
    blocked = torch.rand(3, 3, 4, generator=torch.Generator().manual_seed(1)) < share
    leaf = scores().detach().masked_fill(blocked, MINUS_INFINITY).requires_grad_()
    actual = head_log_marginals(Arcs(leaf, LENGTHS))
    (first,) = torch.autograd.grad(actual[actual.isfinite()].sum(), leaf, create_graph=True)
    assert first.isfinite().all()
    assert torch.autograd.grad(first.square().sum(), leaf)[0].isfinite().all()


def test_a_score_that_is_no_number_is_not_hidden():
    leaf = scores().detach()
    leaf[2, 1, 1] = float("nan")
    actual = head_log_marginals(Arcs(leaf, LENGTHS))
    assert actual.isnan().flatten(1).any(1).tolist() == [False, False, True]


def test_an_empty_batch_is_no_fault():
    arcs = Arcs(torch.zeros(0, 3, 4), torch.zeros(0, dtype=torch.long))
    assert head_log_marginals(arcs).shape == (0, 3, 4)
    assert best_trees(arcs)[0].shape == (0, 3)


def test_half_precision_is_widened():
    assert Arcs(scores().detach().bfloat16(), LENGTHS).dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths_B": torch.tensor([3, 0, 2])}, r"1\.\.3 \(the arc scores' time\)"),
        ({"lengths_B": torch.tensor([3.0, 1.0, 2.0])}, "integers"),
        ({"scores_BTH": torch.zeros(3, 3, 3)}, r"time \+ 1"),
        ({"scores_BTH": torch.zeros(3, 0, 1)}, "at least one word"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    parts = {"scores_BTH": torch.zeros(3, 3, 4), "lengths_B": LENGTHS}
    with pytest.raises(ValueError, match=message):
        Arcs(**(parts | change))
