"""Decoding of trees."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raykd.corpora.conversion import TREES
from raykd.forms import FLAT, TREE
from raykd.forms.tree.best_parse import Parse
from raykd.forms.tree.codes import ENCODINGS, NONE, TreeLabels, encode_tree
from raykd.layers.model import Output
from raykd.structures import Arcs, Chain
from raykd.structures.labelled_arcs import FORBIDDEN, LabelledArcs
from tests.oracles.trees import is_dependency_tree

POS = ("NOUN", "VERB")
RELATIONS = FLAT.tag_set(["nsubj", "obj", "root"])


def columns(lengths, labels, pos):
    rows = [
        {
            "tokens": ["w"] * length,
            "tags": None,
            "language": "en",
            "heads": None,
            "pos": sentence_pos[:length],
        }
        for length, sentence_pos in zip(lengths, pos, strict=True)
    ]
    return TREE.targets(pa.Table.from_pylist(rows, schema=TREES), pos=POS, labels=labels)


def best_tree(scores_TH) -> tuple[int, ...]:
    """Find the best tree by enumeration; scores are random, so no two trees are equally good."""
    words = len(scores_TH)
    trees = [heads for heads in product(range(words + 1), repeat=words) if is_dependency_tree(heads)]
    return max(trees, key=lambda heads: sum(float(scores_TH[t, h]) for t, h in enumerate(heads)))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 2**16))
def test_a_parsers_tree_is_its_best_one_with_the_best_relations(lengths, seed):
    draw, time = torch.Generator().manual_seed(seed), max(lengths)
    scores = 3 * torch.randn(len(lengths), time, time + 1, generator=draw)
    relations = torch.randn(*scores.shape, len(RELATIONS), generator=draw).log_softmax(3)
    lengths_B = torch.tensor(lengths)
    possible = Arcs(scores, lengths_B).mask_BTH
    arcs = torch.where(possible, scores, FORBIDDEN).log_softmax(2)
    chain = LabelledArcs(arcs, relations, lengths_B).chain()
    column = columns(lengths, RELATIONS, [[0] * time] * len(lengths))
    parses = TREE.best_labellings(column, Output(chain), np.arange(len(lengths)))
    for b, (parse, length) in enumerate(zip(parses, lengths, strict=True)):
        scores_TH = arcs[b, :length, : length + 1]
        heads = best_tree(scores_TH)
        assert tuple(parse.heads_T.tolist()) == heads
        assert parse.repaired_T.tolist() == [
            h != best for h, best in zip(heads, scores_TH.argmax(1), strict=True)
        ]
        best = [int(relations[b, t, h].argmax()) for t, h in enumerate(heads)]
        assert parse.relations_T.tolist() == best


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(data=st.data())
def test_a_students_tree_is_that_of_its_best_labels(encoding, data):
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    time = max(lengths)
    pos = [[data.draw(st.integers(0, 1)) for _ in range(time)] for _ in lengths]
    labels = every_label(encoding)
    column, rows = columns(lengths, labels, pos), np.arange(len(lengths))
    draw = torch.Generator().manual_seed(data.draw(st.integers(0, 2**16)))
    scores = 3 * torch.randn(len(lengths), time, len(labels), generator=draw)
    parses = TREE.best_labellings(column, Output(Chain(scores, torch.tensor(lengths))), rows)
    heads_BTY = column.label_heads(rows)
    for b, (parse, length) in enumerate(zip(parses, lengths, strict=True)):
        logs = scores[b].log_softmax(1)
        by_head = torch.full((length, length + 1), FORBIDDEN)
        for t, y in product(range(length), range(len(labels))):
            if heads_BTY[b, t, y] != NONE:
                by_head[t, heads_BTY[b, t, y]] = max(by_head[t, heads_BTY[b, t, y]], logs[t, y])
        heads = best_tree(by_head)
        assert tuple(parse.heads_T.tolist()) == heads
        for t, head in enumerate(heads):
            best = int(logs[t].argmax())
            assert parse.repaired_T[t] == (heads_BTY[b, t, best] != head)
            matching = [y for y in range(len(labels)) if heads_BTY[b, t, y] == head]
            if matching:
                assert (
                    parse.relations_T[t] == labels.relations_Y[max(matching, key=lambda y: float(logs[t, y]))]
                )


def every_label(encoding) -> TreeLabels:
    """Return the labels of all trees of up to three words, with all relations."""
    sentences = [
        encode_tree(heads, [relation] * words, pos, encoding)
        for words in (1, 2, 3)
        for heads in product(range(words + 1), repeat=words)
        if is_dependency_tree(heads)
        for relation in RELATIONS.tags
        for pos in product(POS, repeat=words)
    ]
    return TreeLabels.from_sentences(sentences, pos=POS, relations=RELATIONS.tags, encoding=encoding)


def test_heads_that_no_label_means_are_taken_where_a_tree_needs_them():
    labels = TreeLabels.from_sentences(
        [["-1@ROOT@root"]], pos=POS, relations=RELATIONS.tags, encoding="relative_pos"
    )
    column = columns([2], labels, [[0, 1]])
    (parse,) = TREE.best_labellings(
        column, Output(Chain(torch.zeros(1, 2, 1), torch.tensor([2]))), np.array([0])
    )
    assert isinstance(parse, Parse)
    assert sorted(parse.heads_T.tolist()) in ([0, 1], [0, 2])
    assert parse.repaired_T.sum() == 1
    assert parse.relations_T.tolist() == [RELATIONS.index("root")] * 2
