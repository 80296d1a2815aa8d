"""A parser's arcs in a student's labels: against a loop over words, heads and relations."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raykd.forms.tree.codes import ENCODINGS, NONE, TreeLabels, encode_tree, possible_heads
from raykd.structures import log_partition, token_marginals
from raykd.structures.labelled_arcs import FORBIDDEN, LabelledArcs, expressed_mass

POS = ("ADJ", "NOUN", "VERB")
RELATIONS = ("nsubj", "obj", "root")


def arcs_of(lengths: list[int], seed: int) -> LabelledArcs:
    """Random distributions over the candidates per word."""
    draw = torch.Generator().manual_seed(seed)
    lengths_B, time = torch.tensor(lengths), max(lengths)
    allowed_BTH = torch.from_numpy(possible_heads(lengths_B.numpy(), time))
    scores_BTH = torch.randn(len(lengths), time, time + 1, generator=draw, dtype=torch.float64)
    relations = torch.randn(*scores_BTH.shape, len(RELATIONS), generator=draw, dtype=torch.float64)
    inside = torch.arange(time)[None, :, None] < lengths_B[:, None, None]
    arcs_BTH = scores_BTH.masked_fill(inside & ~allowed_BTH, FORBIDDEN).log_softmax(2)
    return LabelledArcs(arcs_BTH, relations.log_softmax(3), lengths_B)


def labels_of(sentences, encoding) -> TreeLabels:
    return TreeLabels.from_sentences(sentences, pos=POS, relations=RELATIONS, encoding=encoding)


@st.composite
def cases(draw: st.DrawFn) -> tuple[LabelledArcs, np.ndarray, TreeLabels]:
    """Arcs, parts of speech by their numbers, and the labels of some other sentences."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    arcs = arcs_of(lengths, draw(st.integers(0, 2**16)))
    shape = len(lengths), max(lengths)
    pos_BT = np.array([[draw(st.integers(0, 2)) for _ in range(shape[1])] for _ in range(shape[0])])
    encoding, pos = draw(st.sampled_from(sorted(ENCODINGS))), []
    for _ in range(draw(st.integers(1, 4))):
        length = draw(st.integers(2, 5))
        heads = [draw(st.integers(0, length).filter(lambda h, w=w: h != w + 1)) for w in range(length)]
        relations = [draw(st.sampled_from(RELATIONS)) for _ in heads]
        pos.append(encode_tree(heads, relations, [draw(st.sampled_from(POS)) for _ in heads], encoding))
    return arcs, pos_BT, labels_of(pos, encoding)


@given(cases())
def test_a_labels_probability_is_that_of_its_head_and_of_its_relation_at_that_head(case):
    arcs, pos_BT, labels = case
    heads_BTY = labels.heads(pos_BT, arcs.lengths_B.numpy())
    relation_Y = np.array([RELATIONS.index(tag.rpartition("@")[2]) for tag in labels.tags])
    actual_BTY = arcs.label_log_scores(torch.from_numpy(heads_BTY), torch.from_numpy(relation_Y))
    reached_B = expressed_mass(actual_BTY, arcs.lengths_B)
    for b, length in enumerate(arcs.lengths_B.tolist()):
        reached = 0.0
        for t in range(length):
            for y in range(len(labels.tags)):
                head = heads_BTY[b, t, y]
                product = 0.0
                if head != NONE:
                    # At every head its own relations: not those of the best head.
                    product = float(
                        arcs.arcs_BTH[b, t, head].exp() * arcs.relations_BTHR[b, t, head, relation_Y[y]].exp()
                    )
                assert float(actual_BTY[b, t, y].exp()) == pytest.approx(product, abs=1e-12)
                reached += product
        assert float(reached_B[b]) == pytest.approx(reached)


def test_where_every_arc_has_a_label_all_mass_is_expressed():
    arcs, pos = arcs_of([4, 2], 0), [["NOUN", "VERB", "NOUN", "ADJ"], ["VERB", "NOUN"]]
    written = [
        label
        for sentence_pos in pos
        for head in range(len(sentence_pos) + 1)
        for relation in RELATIONS
        for label in [
            encode_tree(
                [head] * len(sentence_pos), [relation] * len(sentence_pos), sentence_pos, "relative_pos"
            )[word]
            for word in range(len(sentence_pos))
            if head != word + 1
        ]
    ]
    labels = labels_of([written], "relative_pos")
    pos_BT = np.array(
        [[POS.index(name) for name in sentence_pos] + [0] * (4 - len(sentence_pos)) for sentence_pos in pos]
    )
    heads_BTY = torch.from_numpy(labels.heads(pos_BT, arcs.lengths_B.numpy()))
    actual_BTY = arcs.label_log_scores(heads_BTY, torch.from_numpy(labels.relations_Y))
    torch.testing.assert_close(expressed_mass(actual_BTY, arcs.lengths_B), arcs.lengths_B.double())


def test_as_a_chain_and_back():
    arcs = arcs_of([3, 1], 1)
    chain = arcs.chain()
    torch.testing.assert_close(log_partition(chain), torch.zeros(2, dtype=torch.float64))
    marginals_BTHR = token_marginals(chain).unflatten(2, (4, len(RELATIONS)))
    torch.testing.assert_close(marginals_BTHR[0].sum(2), arcs.arcs_BTH[0].exp())
    repeated = LabelledArcs.from_chain(chain)
    torch.testing.assert_close(repeated.arcs_BTH[0].exp(), arcs.arcs_BTH[0].exp())
    likely = arcs.arcs_BTH[0] > FORBIDDEN / 2
    torch.testing.assert_close(repeated.relations_BTHR[0][likely], arcs.relations_BTHR[0][likely])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_softened_is_the_softmax_of_scores_over_the_temperature(temperature):
    arcs = arcs_of([3, 2], 2)
    soft = arcs.softened(temperature)
    power_BTH = arcs.arcs_BTH.exp() ** (1 / temperature)
    torch.testing.assert_close(soft.arcs_BTH.exp(), power_BTH / power_BTH.sum(2, keepdim=True))
    power_BTHR = arcs.relations_BTHR.exp() ** (1 / temperature)
    torch.testing.assert_close(soft.relations_BTHR.exp(), power_BTHR / power_BTHR.sum(3, keepdim=True))
