"""Dependency arcs against the enumeration of every way to give each word a head."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from raykd.structures import (
    Arcs,
    entropy,
    head_log_marginals,
    is_allowed,
    log_partition,
    score,
    token_marginals,
    viterbi,
)
from tests.oracles.trees import enumerate_arcs
from tests.structures.chains import CODES, DTYPES, MINUS_INFINITY, SETTINGS, using

KINDS = (
    ("heads", False),
    ("trees", False),
    ("trees", True),
    ("projective_trees", False),
    ("projective_trees", True),
)
LENGTHS = torch.tensor([3, 1, 2])


@st.composite
def arcs_of(draw, kinds=KINDS, dtypes=DTYPES, magnitudes=(0.1, 1.0, 5.0, 50.0), forbid=True) -> Arcs:
    """Ragged arcs small enough to enumerate; with `forbid`, some are −∞, up to all of them."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    B, T, kind = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.sampled_from(kinds))
    scale, dtype = draw(st.sampled_from(magnitudes)), draw(st.sampled_from(dtypes))
    scores = torch.randn(B, T, T + 1, generator=generator, dtype=torch.float64).clamp(-3, 3) * scale
    share = draw(st.sampled_from([0.0, 0.3, 0.6, 1.0])) if forbid else 0.0
    scores[torch.rand(scores.shape, generator=generator) < share] = MINUS_INFINITY
    arcs = Arcs(scores.to(dtype), torch.randint(1, T + 1, (B,), generator=generator), *kind)
    arcs.scores_BTH[~arcs.mask_BTH] = float("nan")  # scores of impossible arcs must never be read
    return arcs


def close(actual, expected, arcs, *, size: float = 1.0):
    error = 2e-5 if arcs.dtype == torch.float32 else 1e-10
    torch.testing.assert_close(actual.double(), expected.double(), atol=error * max(size, 1.0), rtol=error)


def size_of(law) -> float:
    finite = law.scores[law.scores.isfinite()]
    return float(finite.abs().max()) if len(finite) else 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(data=st.data())
def test_sums_are_those_over_all_analyses(code, kind, data):
    arcs = data.draw(arcs_of(kinds=(kind,)))
    with using(code):
        found, marginals_BTH = log_partition(arcs), token_marginals(arcs)
        logs_BTH, entropy_B = head_log_marginals(arcs), entropy(arcs)
    assert found.dtype == marginals_BTH.dtype == entropy_B.dtype == arcs.dtype
    for b, law in enumerate(enumerate_arcs(arcs)):
        n = int(arcs.lengths_B[b])
        close(found[b], law.log_z, arcs, size=size_of(law))
        close(marginals_BTH[b, :n], law.token_marginals(), arcs)
        assert not marginals_BTH[b, n:].any()
        close(logs_BTH[b].exp(), marginals_BTH[b], arcs)
        if law.log_z > MINUS_INFINITY:
            close(entropy_B[b], law.entropy(), arcs, size=size_of(law))


@pytest.mark.parametrize("kind", KINDS)
@SETTINGS
@given(data=st.data())
def test_decoding_finds_the_best_analysis(kind, data):
    arcs = data.draw(arcs_of(kinds=(kind,)))
    heads_BT, scores_B = viterbi(arcs)
    for b, law in enumerate(enumerate_arcs(arcs)):
        n = int(arcs.lengths_B[b])
        close(scores_B[b], law.scores.max(), arcs, size=size_of(law))
        assert not heads_BT[b, n:].any()
        if law.scores.max() > MINUS_INFINITY:
            heads = tuple(heads_BT[b, :n].tolist())
            close(law.scores[law.paths.index(heads)], law.scores.max(), arcs, size=size_of(law))
        else:
            assert not heads_BT[b].any()


@SETTINGS
@given(seed=st.integers(0, 2**31), kind=st.sampled_from(KINDS[1:]), ties=st.booleans())
def test_the_best_tree_of_longer_sentences_has_no_better_neighbour(seed, kind, ties):
    """Ten words: enough for cycles of cycles. Another head for one word, where that is still a tree, is no better."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(1, 10, 11, generator=generator, dtype=torch.float64)
    arcs = Arcs(scores.round() if ties else scores, torch.tensor([10]), *kind)
    heads_BT, best_B = viterbi(arcs)
    others = heads_BT.repeat(110, 1)
    places = torch.cartesian_prod(torch.arange(10), torch.arange(11))
    others[torch.arange(110), places[:, 0]] = places[:, 1]
    every = replace(arcs, scores_BTH=arcs.scores_BTH.expand(110, -1, -1), lengths_B=torch.full((110,), 10))
    close(score(arcs, heads_BT), best_B, arcs)
    assert (score(every, others) <= best_B + 1e-12).all()


@pytest.mark.parametrize("single_root", [False, True])
def test_the_best_tree_of_longer_sentences_is_where_all_probability_goes(single_root):
    """Scores this far apart leave nothing to other trees; the sums come there by other means than the search."""
    generator = torch.Generator().manual_seed(int(single_root))
    scores = 100 * torch.randn(40, 14, 15, generator=generator, dtype=torch.float64)
    arcs = Arcs(scores, torch.full((40,), 14), "trees", single_root)
    for kind in (arcs, arcs.as_trees(projective=True, single_root=single_root)):
        cold = token_marginals(kind)
        sure_B = cold.amax(2).amin(1) > 0.99
        assert sure_B.sum() > 10
        assert torch.equal(cold.argmax(2)[sure_B], viterbi(kind)[0][sure_B])


@pytest.mark.parametrize("kind", KINDS)
def test_of_all_heads_of_four_words_those_of_an_analysis_score_their_arcs(kind):
    every_BT = torch.cartesian_prod(*[torch.arange(5)] * 4)
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(1, 4, 5, generator=generator, dtype=torch.float64)
    (law,) = enumerate_arcs(Arcs(scores, torch.tensor([4]), *kind))
    expected = dict(zip(law.paths, law.scores.tolist(), strict=True))
    arcs = Arcs(scores.expand(len(every_BT), -1, -1), torch.full((len(every_BT),), 4), *kind)
    expected_B = torch.tensor([expected.get(tuple(heads), MINUS_INFINITY) for heads in every_BT.tolist()])
    close(score(arcs, every_BT), expected_B, replace(arcs, scores_BTH=arcs.scores_BTH.float()))
    assert torch.equal(is_allowed(arcs, every_BT), expected_B > MINUS_INFINITY)


@SETTINGS
@given(arcs=arcs_of(forbid=False), data=st.data())
def test_heads_on_padding_are_not_read(arcs, data):
    law = enumerate_arcs(arcs)[0]
    number = data.draw(st.integers(0, len(law.paths) - 1))
    heads_BT = torch.full((arcs.batch, arcs.time), -1)
    heads_BT[arcs.mask_BT] = 0
    heads_BT[0, : len(law.paths[number])] = torch.tensor(law.paths[number])
    close(score(arcs, heads_BT)[0], law.scores[number], arcs, size=size_of(law))


@SETTINGS
@given(arcs=arcs_of(), extra=st.integers(1, 2))
def test_padding_and_the_order_of_the_batch_change_nothing(arcs, extra):
    B, T = arcs.batch, arcs.time + extra
    wider = torch.full((B, T, T + 1), float("nan"), dtype=arcs.dtype)
    wider[:, : arcs.time, : arcs.time + 1] = arcs.scores_BTH
    order = torch.arange(B - 1, -1, -1)
    other = replace(arcs, scores_BTH=wider[order], lengths_B=arcs.lengths_B[order])
    close(log_partition(other), log_partition(arcs)[order], arcs)
    close(token_marginals(other)[:, : arcs.time, : arcs.time + 1], token_marginals(arcs)[order], arcs)
    assert torch.equal(viterbi(other)[0][:, : arcs.time], viterbi(arcs)[0][order])


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_long_sentences_stay_accurate(kind, scale):
    """120 words: the kernels and PyTorch agree, and what must hold of any sentence holds."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 120, 121, generator=generator) * scale
    arcs = Arcs(scores, torch.tensor([120, 117]), *kind)
    with using("torch"):
        expected_B = log_partition(arcs)
    close(log_partition(arcs), expected_B, arcs, size=float(expected_B.max()))
    marginals_BTH = token_marginals(arcs)
    close(marginals_BTH.sum(2), arcs.mask_BT, arcs)
    roots_B = marginals_BTH[:, :, 0].sum(1)
    assert (roots_B - 1).abs().max() < 1e-4 if kind[1] else (roots_B > 1 - 1e-4).all()
    heads_BT, best_B = viterbi(arcs)
    close(score(arcs, heads_BT), best_B, arcs, size=float(best_B.max()))
    assert (best_B <= log_partition(arcs) * (1 + 1e-6)).all()


@pytest.mark.parametrize("single_root", [False, True])
def test_words_that_choose_each_other_cost_no_digits(single_root):
    """Both words prefer each other by 120 nats: the determinant of this Laplacian by LU is zero."""
    scores = torch.tensor([[[-120.0, 0.0, 0.0], [-121.0, 0.0, 0.0]]], dtype=torch.float64)
    arcs = Arcs(scores, torch.tensor([2]), "trees", single_root)
    (law,) = enumerate_arcs(arcs)
    close(log_partition(arcs)[0], law.log_z, arcs)
    close(token_marginals(arcs)[0], law.token_marginals(), arcs)


def test_the_best_tree_repairs_independent_heads():
    scores = torch.tensor([[[0.0, 0.0, 5.0], [-2.0, 4.0, 0.0]]])
    heads = Arcs(scores, torch.tensor([2]))
    assert viterbi(heads)[0].tolist() == [[2, 1]]  # a cycle
    assert viterbi(heads.as_trees())[0].tolist() == [[0, 1]]


def scores() -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(3, 3, 4, generator=generator, dtype=torch.float64).requires_grad_()


HEADS = torch.tensor([[2, 0, 2], [0, 0, 0], [2, 0, 0]])
OPERATIONS = {
    "log_partition": log_partition,
    "token_marginals": token_marginals,
    "log_marginals": lambda arcs: torch.where(
        arcs.mask_BTH & (token_marginals(arcs) > 0), head_log_marginals(arcs), 0
    ),
    "entropy": entropy,
    "score": lambda arcs: score(arcs, HEADS),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_first_derivatives(name, kind):
    assert gradcheck(lambda s: OPERATIONS[name](Arcs(s, LENGTHS, *kind)), (scores(),))


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives(kind):
    assert gradgradcheck(lambda s: log_partition(Arcs(s, LENGTHS, *kind)), (scores(),))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_forbidden_arcs_leave_no_nan_in_any_derivative(name, kind, share):
    blocked = torch.rand(3, 3, 4, generator=torch.Generator().manual_seed(1)) < share
    leaf = scores().detach().masked_fill(blocked, MINUS_INFINITY).requires_grad_()
    found = OPERATIONS[name](Arcs(leaf, LENGTHS, *kind))
    (first,) = torch.autograd.grad(found[found.isfinite()].sum(), leaf, create_graph=True)
    assert first.isfinite().all()
    if first.requires_grad:
        assert torch.autograd.grad(first.square().sum(), leaf)[0].isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_log_partition_gives_marginals_as_its_gradient_a_second_time_too(kind):
    leaf = scores()
    arcs = Arcs(leaf, LENGTHS, *kind)
    loss = log_partition(arcs).sum()
    first = torch.autograd.grad(loss, leaf, retain_graph=True)[0]
    torch.testing.assert_close(first, token_marginals(replace(arcs, scores_BTH=leaf.detach())))
    assert torch.equal(torch.autograd.grad(loss, leaf)[0], first)


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_that_is_no_number_is_not_hidden(kind):
    leaf = scores().detach()
    leaf[2, 1, 1] = float("nan")
    found = log_partition(Arcs(leaf, LENGTHS, *kind))
    assert found.isnan().tolist() == [False, False, True]


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_batch_is_no_fault(kind):
    arcs = Arcs(torch.zeros(0, 3, 4), torch.zeros(0, dtype=torch.long), *kind)
    assert log_partition(arcs).shape == (0,)
    assert token_marginals(arcs).shape == (0, 3, 4)
    assert viterbi(arcs)[0].shape == (0, 3)


def test_half_precision_is_widened():
    assert log_partition(Arcs(scores().detach().bfloat16(), LENGTHS)).dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths_B": torch.tensor([3, 0, 2])}, r"1\.\.3"),
        ({"lengths_B": torch.tensor([3.0, 1.0, 2.0])}, "integers"),
        ({"scores_BTH": torch.zeros(3, 3, 3)}, r"time \+ 1"),
        ({"allowed": "graphs"}, "heads, trees, projective_trees"),
        ({"single_root": True}, "allowed: trees"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    parts = {"scores_BTH": torch.zeros(3, 3, 4), "lengths_B": LENGTHS}
    with pytest.raises(ValueError, match=message):
        Arcs(**(parts | change))


def test_heads_of_a_wrong_shape_or_range_are_refused():
    arcs = Arcs(scores().detach(), LENGTHS)
    with pytest.raises(ValueError, match=r"\[3, 3\]"):
        score(arcs, torch.zeros(3, 2, dtype=torch.long))
    with pytest.raises(ValueError, match=r"0\.\.3"):
        score(arcs, torch.full((3, 3), 4))
