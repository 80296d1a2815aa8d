"""Spans against the enumeration of all flat labelled segmentations."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from raykd.structures import (
    Spans,
    SpanTags,
    log_partition,
    score,
    token_marginals,
    viterbi,
)
from tests.oracles.segmentations import enumerate_spans, span_probabilities
from tests.structures.chains import DTYPES, MINUS_INFINITY, SETTINGS

TAGS = {1: SpanTags((1,), (2,), (3,), (4,), 0), 2: SpanTags((1, 8), (2, 6), (3, 7), (4, 5), 0)}
LENGTHS = torch.tensor([3, 1, 2])


@st.composite
def spans_of(draw, dtypes=DTYPES, magnitudes=(0.1, 1.0, 5.0, 30.0), forbid=True) -> Spans:
    """Ragged spans small enough to enumerate; with `forbid`, some entities are −∞, up to all of them."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    B, T, L = draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(1, 2))
    scale, dtype = draw(st.sampled_from(magnitudes)), draw(st.sampled_from(dtypes))
    scores = torch.randn(B, T, T, L, generator=generator, dtype=torch.float64).clamp(-3, 3) * scale
    share = draw(st.sampled_from([0.0, 0.3, 1.0])) if forbid else 0.0
    scores[torch.rand(scores.shape, generator=generator) < share] = MINUS_INFINITY
    spans = Spans(scores.to(dtype), torch.randint(1, T + 1, (B,), generator=generator), TAGS[L])
    spans.scores_BTTL[~spans.mask_BTT] = float("nan")  # scores of impossible entities must never be read
    return spans


def close(actual, expected, spans, *, size: float = 1.0):
    error = 2e-5 if spans.dtype == torch.float32 else 1e-10
    torch.testing.assert_close(actual.double(), expected.double(), atol=error * max(size, 1.0), rtol=error)


@SETTINGS
@given(spans=spans_of())
def test_sums_are_those_over_all_segmentations(spans):
    leaf = spans.scores_BTTL.clone().requires_grad_()
    actual, token_BTY = log_partition(replace(spans, scores_BTTL=leaf)), token_marginals(spans)
    (spans_BTTL,) = torch.autograd.grad(actual.sum(), leaf)
    assert actual.dtype == token_BTY.dtype == spans.dtype
    for b, (segmentations, law) in enumerate(enumerate_spans(spans)):
        n = int(spans.lengths_B[b])
        close(actual[b], law.log_z, spans, size=float(law.log_z))
        close(token_BTY[b, :n], law.token_marginals(), spans)
        assert not token_BTY[b, n:].any()
        close(spans_BTTL[b], span_probabilities(segmentations, law, spans.time, spans.tags.labels), spans)


@SETTINGS
@given(spans=spans_of())
def test_decoding_finds_the_best_segmentation(spans):
    paths_BT, scores_B = viterbi(spans)
    for b, (_, law) in enumerate(enumerate_spans(spans)):
        path = tuple(paths_BT[b, : int(spans.lengths_B[b])].tolist())
        close(scores_B[b], law.scores.max(), spans, size=float(law.scores.max()))
        close(law.scores[law.paths.index(path)], law.scores.max(), spans, size=float(law.scores.max()))
        assert not paths_BT[b, int(spans.lengths_B[b]) :].any()


@SETTINGS
@given(spans=spans_of(), row=st.integers(0, 2), draw=st.data())
def test_a_path_has_the_score_of_its_segmentation(spans, row, draw):
    row %= spans.batch
    _, law = enumerate_spans(spans)[row]
    number = draw.draw(st.integers(0, len(law.paths) - 1))
    paths_BT = torch.full((spans.batch, spans.time), spans.tags.outside)
    paths_BT[row, : len(law.paths[number])] = torch.tensor(law.paths[number])
    close(score(spans, paths_BT)[row], law.scores[number], spans, size=90.0)


@SETTINGS
@given(spans=spans_of(forbid=False), seed=st.integers(0, 2**31))
def test_a_path_that_is_not_valid_bioes_scores_minus_infinity(spans, seed):
    tags = torch.randint(9, (spans.batch, spans.time), generator=torch.Generator().manual_seed(seed))
    tags = tags % (4 * spans.tags.labels + 1)
    actual_B = score(spans, tags)
    for b, (_, law) in enumerate(enumerate_spans(spans)):
        path = tuple(tags[b, : int(spans.lengths_B[b])].tolist())
        expected = law.scores[law.paths.index(path)] if path in law.paths else torch.tensor(MINUS_INFINITY)
        close(actual_B[b], expected, spans, size=90.0)


@SETTINGS
@given(spans=spans_of(), extra=st.integers(1, 2))
def test_padding_and_the_order_of_the_batch_change_nothing(spans, extra):
    B, T = spans.batch, spans.time + extra
    wider = torch.full((B, T, T, spans.tags.labels), float("nan"), dtype=spans.dtype)
    wider[:, : spans.time, : spans.time] = spans.scores_BTTL
    order = torch.arange(B - 1, -1, -1)
    turned = Spans(wider[order], spans.lengths_B[order], spans.tags)
    close(log_partition(turned), log_partition(spans)[order], spans)
    close(token_marginals(turned)[:, : spans.time], token_marginals(spans)[order], spans)
    assert torch.equal(viterbi(turned)[0][:, : spans.time], viterbi(spans)[0][order])


@SETTINGS
@given(spans=spans_of())
def test_rows_of_marginals_sum_to_one(spans):
    close(token_marginals(spans).sum(2), spans.mask_BT, spans)


def scores(labels: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(3, 3, 3, labels, generator=generator, dtype=torch.float64).requires_grad_()


PATHS = torch.tensor([[1, 2, 3], [5, 0, 0], [8, 7, 0]])
OPERATIONS = {
    "log_partition": log_partition,
    "token_marginals": token_marginals,
    "score": lambda spans: score(spans, PATHS),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_first_derivatives(name):
    assert gradcheck(lambda s: OPERATIONS[name](Spans(s, LENGTHS, TAGS[2])), (scores(),))


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("wide", [0, 1, 3])
def test_forbidden_entities_leave_no_nan_in_a_derivative(name, wide):
    """Entities of more than `wide` words are forbidden; 0 leaves none."""
    allowed = torch.ones(3, 3, dtype=torch.bool).tril(wide - 1) & torch.tensor(True)
    leaf = scores().detach().masked_fill(~allowed[..., None], MINUS_INFINITY).requires_grad_()
    actual = OPERATIONS[name](Spans(leaf, LENGTHS, TAGS[2]))
    (gradient,) = torch.autograd.grad(actual[actual.isfinite()].sum(), leaf)
    assert gradient.isfinite().all()


def test_log_partition_gives_its_gradient_a_second_time_too():
    leaf = scores()
    loss = log_partition(Spans(leaf, LENGTHS, TAGS[2])).sum()
    first = torch.autograd.grad(loss, leaf, retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(loss, leaf)[0], first)


def test_half_precision_is_widened():
    spans = Spans(scores().detach().bfloat16(), LENGTHS, TAGS[2])
    assert log_partition(spans).dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths_B": torch.tensor([3, 0, 2])}, r"1\.\.3"),
        ({"lengths_B": torch.tensor([3, 1, 4])}, r"1\.\.3"),
        ({"lengths_B": torch.tensor([3.0, 1.0, 2.0])}, "integers"),
        ({"scores_BTTL": torch.zeros(3, 3, 2, 2)}, "batch, time, time, label"),
        ({"tags": TAGS[1]}, "1 labels"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    parts = {"scores_BTTL": torch.zeros(3, 3, 3, 2), "lengths_B": LENGTHS, "tags": TAGS[2]}
    with pytest.raises(ValueError, match=message):
        Spans(**(parts | change))


def test_tags_are_each_number_once():
    with pytest.raises(ValueError, match=r"numbers 0\.\.4"):
        SpanTags((1,), (2,), (3,), (3,), 0)


def test_paths_of_a_wrong_shape_or_tag_are_refused():
    spans = Spans(scores().detach(), LENGTHS, TAGS[2])
    with pytest.raises(ValueError, match=r"\[3, 3\]"):
        score(spans, torch.zeros(3, 2, dtype=torch.long))
    with pytest.raises(ValueError, match=r"0\.\.8"):
        score(spans, torch.full((3, 3), 9))


def test_an_argument_that_is_not_a_distribution_is_refused():
    with pytest.raises(TypeError, match="got dict"):
        log_partition({})
