"""The parser's head against the equations, word by word."""

import pytest
import torch

from raykd.errors import ExportError
from raykd.layers.arcs import ParserHead
from raykd.structures import log_partition, token_marginals
from raykd.structures.labelled_arcs import FORBIDDEN

LENGTHS = torch.tensor([4, 1, 3])
RELATIONS = 3


def head(**settings) -> ParserHead:
    torch.manual_seed(0)
    parser_head = ParserHead(5, RELATIONS, arc_dim=4, relation_dim=3, **settings).double()
    for parameter in (parser_head.arcs, parser_head.relations, parser_head.root):
        torch.nn.init.normal_(parameter)
    return parser_head


@pytest.fixture
def states_BTD() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(3, 4, 5, dtype=torch.float64)


def test_scores_are_those_of_the_equations(states_BTD):
    parser_head = head()
    arcs_BTH, relations_BTHR = parser_head.scores(states_BTD, LENGTHS)
    for b, length in enumerate(LENGTHS.tolist()):
        for i in range(length):
            for h in range(length + 1):
                head_state = parser_head.root if h == 0 else states_BTD[b, h - 1]
                dependent, governor = (
                    project(vector[None, None])[0, 0]
                    for project, vector in (
                        (parser_head.arc_dependent, states_BTD[b, i]), (parser_head.arc_head, head_state),
                    )
                )  # fmt: skip
                expected = dependent @ parser_head.arcs[:-1] @ governor + parser_head.arcs[-1] @ governor
                torch.testing.assert_close(
                    arcs_BTH[b, i, h],
                    torch.tensor(FORBIDDEN, dtype=torch.float64) if h == i + 1 else expected,
                )
                ones = torch.ones(1, dtype=torch.float64)
                dependent_S = torch.cat(
                    [parser_head.relation_dependent(states_BTD[b, i][None, None])[0, 0], ones]
                )
                head_S = torch.cat([parser_head.relation_head(head_state[None, None])[0, 0], ones])
                torch.testing.assert_close(
                    relations_BTHR[b, i, h], (dependent_S @ parser_head.relations) @ head_S
                )


def test_a_words_labelled_arcs_are_a_distribution_over_candidates(states_BTD):
    chain = head()(states_BTD, LENGTHS)
    assert chain.emissions_BTY.shape == (3, 4, 5 * RELATIONS)
    torch.testing.assert_close(log_partition(chain), torch.zeros(3, dtype=torch.float64))
    marginals_BTHR = token_marginals(chain).unflatten(2, (5, RELATIONS))
    for b, length in enumerate(LENGTHS.tolist()):
        assert not marginals_BTHR[b, :length, length + 1 :].any()
        for i in range(length):
            assert not marginals_BTHR[b, i, i + 1].any()
        torch.testing.assert_close(
            marginals_BTHR[b, :length].sum((1, 2)), torch.ones(length, dtype=torch.float64)
        )


def test_other_sentences_and_padding_change_nothing(states_BTD):
    parser_head = head()
    whole = parser_head(states_BTD, LENGTHS).emissions_BTY.unflatten(2, (5, RELATIONS))
    disturbed_BTD = states_BTD.clone()
    disturbed_BTD[1, 1:], disturbed_BTD[2, 3:] = 1e3, -1e3
    with_noise = parser_head(disturbed_BTD, LENGTHS).emissions_BTY.unflatten(2, (5, RELATIONS))
    alone = parser_head(states_BTD[2:, :3], LENGTHS[2:]).emissions_BTY.unflatten(2, (4, RELATIONS))
    for b, length in enumerate(LENGTHS.tolist()):
        torch.testing.assert_close(with_noise[b, :length, : length + 1], whole[b, :length, : length + 1])
    torch.testing.assert_close(alone[0], whole[2, :3, :4])


def test_before_training_every_head_and_relation_is_as_good_as_another(states_BTD):
    parser_head = ParserHead(5, RELATIONS, arc_dim=4, relation_dim=3).double()
    marginals_BTHR = token_marginals(parser_head(states_BTD, LENGTHS)).unflatten(2, (5, RELATIONS))
    torch.testing.assert_close(
        marginals_BTHR[0, 0, 2], torch.full((RELATIONS,), 1 / 4 / RELATIONS, dtype=torch.float64)
    )


def test_gradients_are_finite_where_a_sentence_has_one_word(states_BTD):
    parser_head = head()
    chain = parser_head(states_BTD[1:2, :1], LENGTHS[1:2])
    (token_marginals(chain) ** 2).sum().backward()
    assert all(
        bool(torch.isfinite(parameter.grad).all())
        for parameter in parser_head.parameters()
        if parameter.grad is not None
    )


def test_dropout_is_on_in_training_only(states_BTD):
    parser_head = head(dropout=0.5)
    assert not torch.equal(
        parser_head(states_BTD, LENGTHS).emissions_BTY, parser_head(states_BTD, LENGTHS).emissions_BTY
    )
    parser_head.eval()
    assert torch.equal(
        parser_head(states_BTD, LENGTHS).emissions_BTY, parser_head(states_BTD, LENGTHS).emissions_BTY
    )


def test_under_autocast_scores_are_float32(states_BTD):
    parser_head = head().float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        chain = parser_head(states_BTD.float(), LENGTHS)
    assert chain.emissions_BTY.dtype == torch.float32


def test_it_is_not_exported():
    with pytest.raises(ExportError, match="export a student"):
        head().add_to(None, None, None)
