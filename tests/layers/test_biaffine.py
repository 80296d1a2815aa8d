import pytest
import torch

from raykd.layers.biaffine import BiaffineHead
from raykd.structures import SpanTags

TAGS = SpanTags((1, 5), (2, 6), (3, 7), (4, 8), 0)
LENGTHS = torch.tensor([3, 1])


def head(**settings) -> BiaffineHead:
    torch.manual_seed(0)
    span_head = BiaffineHead(4, TAGS, size=3, **settings)
    torch.nn.init.normal_(span_head.weights)
    return span_head


def test_a_score_is_bilinear_in_the_first_and_last_word_with_linear_terms_and_a_bias():
    span_head, states_BTD = head().eval(), torch.randn(2, 3, 4)
    spans = span_head(states_BTD, LENGTHS)
    assert spans.scores_BTTL.shape == (2, 3, 3, 2)
    for b, i, j, label in [(0, 0, 2, 0), (0, 1, 1, 1), (1, 0, 0, 1)]:
        first_S, last_S = span_head.first(states_BTD[b, i]), span_head.last(states_BTD[b, j])
        weights = span_head.weights[label]
        expected = first_S @ weights[:3, :3] @ last_S
        expected = expected + weights[:3, 3] @ first_S + weights[3, :3] @ last_S + weights[3, 3]
        torch.testing.assert_close(spans.scores_BTTL[b, i, j, label], expected)


def test_before_training_no_entity_is_better_than_none():
    span_head = BiaffineHead(4, TAGS, size=3)
    assert not span_head(torch.randn(2, 3, 4), LENGTHS).scores_BTTL.any()


def test_dropout_is_on_in_training_only():
    span_head, states_BTD = head(dropout=0.5), torch.randn(2, 3, 4)
    assert not torch.equal(
        span_head(states_BTD, LENGTHS).scores_BTTL, span_head(states_BTD, LENGTHS).scores_BTTL
    )
    span_head.eval()
    assert torch.equal(span_head(states_BTD, LENGTHS).scores_BTTL, span_head(states_BTD, LENGTHS).scores_BTTL)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_are_float32_under_autocast_and_float64_stays(dtype):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.float32):
        spans = head().to(dtype)(torch.randn(2, 3, 4, dtype=dtype), LENGTHS)
    assert spans.dtype == dtype
