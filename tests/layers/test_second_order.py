"""The second-order head against the equations, pair by pair, and against a loop over mean field."""

import itertools

import pytest
import torch
from torch.autograd import gradcheck

from raykd.errors import ExportError
from raykd.layers.arcs import ParserHead
from raykd.layers.second_order import SecondOrderParserHead
from raykd.structures import log_partition, token_marginals
from raykd.structures.labelled_arcs import FORBIDDEN, LabelledArcs
from tests.oracles.trees import mean_field_step

LENGTHS = torch.tensor([4, 1, 3])
RELATIONS = 3
SIZES = {"arc_dim": 4, "relation_dim": 3, "pair_dim": 2}


def head(**settings) -> SecondOrderParserHead:
    torch.manual_seed(0)
    parser = SecondOrderParserHead(5, RELATIONS, **SIZES, **({"iterations": 2} | settings)).double()
    for parameter in parser.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return parser


@pytest.fixture
def states_BTD() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(3, 4, 5, dtype=torch.float64)


def vectors(
    parser: SecondOrderParserHead, place: str, states_TD: torch.Tensor, *, root: bool
) -> torch.Tensor:
    """Return one factor of a pair for all words (or heads, the root first), word by word."""
    states = [parser.first_order.root, *states_TD] if root else list(states_TD)
    return torch.stack([parser.pairs[place](state[None, None])[0, 0] for state in states])


def test_scores_of_pairs_are_those_of_the_equations(states_BTD):
    parser = head()
    siblings_BHTT, grandparents_BTTH = parser.pair_scores(states_BTD)
    for b in range(3):
        a, e = (vectors(parser, place, states_BTD[b], root=True) for place in ("sibling_head", "grandparent"))
        places = ("sibling", "grandparent_middle", "grandparent_word")
        of_b, c, d = (vectors(parser, place, states_BTD[b], root=False) for place in places)
        for h, t, u in itertools.product(range(5), range(4), range(4)):
            torch.testing.assert_close(siblings_BHTT[b, h, t, u], (a[h] * of_b[t] * of_b[u]).sum())
            torch.testing.assert_close(grandparents_BTTH[b, u, t, h], (c[u] * d[t] * e[h]).sum())
    torch.testing.assert_close(siblings_BHTT, siblings_BHTT.transpose(2, 3))


@pytest.mark.parametrize("iterations", [1, 3])
def test_heads_are_those_of_mean_field_and_relations_those_of_the_first_order(states_BTD, iterations):
    parser = head(iterations=iterations)
    labelled = LabelledArcs.from_chain(parser(states_BTD, LENGTHS))
    arcs_BTH, relations_BTHR = parser.first_order.scores(states_BTD, LENGTHS)
    siblings_BHTT, grandparents_BTTH = parser.pair_scores(states_BTD)
    for b, n in enumerate(LENGTHS.tolist()):
        scores_TH = arcs_BTH[b, :n, : n + 1].masked_fill(arcs_BTH[b, :n, : n + 1] == FORBIDDEN, float("-inf"))
        logits_TH = scores_TH
        for _ in range(iterations):
            logits_TH = mean_field_step(
                scores_TH,
                logits_TH.softmax(1),
                siblings_BHTT[b, : n + 1, :n, :n],
                grandparents_BTTH[b, :n, :n, : n + 1],
            )
        torch.testing.assert_close(labelled.arcs_BTH[b, :n, : n + 1].exp(), logits_TH.softmax(1))
        open_TH = logits_TH > float("-inf")
        expected_THR = relations_BTHR[b, :n, : n + 1].log_softmax(2)
        torch.testing.assert_close(labelled.relations_BTHR[b, :n, : n + 1][open_TH], expected_THR[open_TH])
    torch.testing.assert_close(
        log_partition(parser(states_BTD, LENGTHS)), torch.zeros(3, dtype=torch.float64)
    )


def test_before_training_it_is_the_first_order_head_and_every_pair_has_a_gradient(states_BTD):
    parser = SecondOrderParserHead(5, RELATIONS, **SIZES, iterations=2).double()
    for parameter in (parser.first_order.arcs, parser.first_order.relations):
        torch.nn.init.normal_(parameter)
    chain = parser(states_BTD, LENGTHS)
    first = ParserHead(5, RELATIONS, arc_dim=4, relation_dim=3).double()
    first.load_state_dict(parser.first_order.state_dict())
    torch.testing.assert_close(token_marginals(chain), token_marginals(first(states_BTD, LENGTHS)))
    chain.emissions_BTY[0, :, 0].sum().backward()
    for place in ("sibling_head", "grandparent"):
        assert parser.pairs[place][-1].weight.grad.abs().sum() > 0


def test_other_sentences_and_padding_change_nothing(states_BTD):
    parser = head()
    whole = parser(states_BTD, LENGTHS).emissions_BTY.unflatten(2, (5, RELATIONS))
    disturbed_BTD = states_BTD.clone()
    disturbed_BTD[1, 1:], disturbed_BTD[2, 3:] = 1e3, -1e3
    with_noise = parser(disturbed_BTD, LENGTHS).emissions_BTY.unflatten(2, (5, RELATIONS))
    alone = parser(states_BTD[2:, :3], LENGTHS[2:]).emissions_BTY.unflatten(2, (4, RELATIONS))
    for b, length in enumerate(LENGTHS.tolist()):
        torch.testing.assert_close(with_noise[b, :length, : length + 1], whole[b, :length, : length + 1])
    torch.testing.assert_close(alone[0], whole[2, :3, :4])


def test_no_score_of_pairs_makes_a_head_of_what_is_none(states_BTD):
    parser = head()
    for factor in parser.pairs.values():
        factor[-1].weight.data.mul_(1e3)
    marginals_BTHR = token_marginals(parser(states_BTD, LENGTHS)).unflatten(2, (5, RELATIONS))
    for b, length in enumerate(LENGTHS.tolist()):
        assert not marginals_BTHR[b, :length, length + 1 :].any()
        assert not marginals_BTHR[b, range(length), range(1, length + 1)].any()


def test_gradients_are_those_of_the_chain():
    parser, lengths_B = head(), torch.tensor([3, 2])
    states_BTD = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)

    def inside(states):
        labelled_BTHR = parser(states, lengths_B).emissions_BTY.unflatten(2, (4, RELATIONS))
        return torch.cat([labelled_BTHR[0].flatten(), labelled_BTHR[1, :2, :3].flatten()])

    assert gradcheck(inside, (states_BTD,))


def test_under_autocast_scores_are_float32(states_BTD):
    parser = head().float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        chain = parser(states_BTD.float(), LENGTHS)
    assert chain.emissions_BTY.dtype == torch.float32
    assert torch.isfinite(chain.emissions_BTY).all()


def test_it_is_not_exported():
    with pytest.raises(ExportError, match="export a student"):
        head().add_to(None, None, None)
