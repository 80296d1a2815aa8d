"""Trees from the labels of an exported parser: as the task decodes them, and against all trees."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raykd.corpora.conversion import TREES
from raykd.forms import TREE
from raykd.forms.tree.codes import ENCODINGS, TreeLabels, encode_tree
from raykd.layers.model import Output
from raykd.serving import labeller
from raykd.serving.labeller.trees import FORBIDDEN, best_tree, is_tree
from raykd.structures import Chain
from tests.oracles.trees import is_dependency_tree

POS, RELATIONS = ("NOUN", "P@T", "VERB"), ("a", "nmod:x", "root")


def trees(words):
    """All trees of `words` words with one root."""
    all_heads = product(range(words + 1), repeat=words)
    return [heads for heads in all_heads if is_dependency_tree(heads)]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(data=st.data())
def test_trees_are_those_that_the_task_decodes(encoding, data):
    """With some of the labels, so that heads without a label occur."""
    sentences = [
        encode_tree(data.draw(st.sampled_from(trees(words))), [relation] * words, pos, encoding)
        for words in (1, 2, 4)
        for relation in RELATIONS
        for pos in (data.draw(st.tuples(*[st.sampled_from(POS)] * words)),)
    ]
    labels = TreeLabels.from_sentences(sentences, pos=POS, relations=RELATIONS, encoding=encoding)
    pos = data.draw(st.lists(st.sampled_from(POS), min_size=1, max_size=9))
    draw = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    scores_TY = draw.normal(size=(len(pos), len(labels)), scale=3).astype(np.float32)
    row = {"tokens": ["w"] * len(pos), "language": "en", "pos": [POS.index(tag) for tag in pos]}
    column = TREE.targets(pa.Table.from_pylist([row], schema=TREES), pos=POS, labels=labels)
    chain = Chain(torch.from_numpy(scores_TY)[None], torch.tensor([len(pos)]))
    (expected,) = TREE.best_labellings(column, Output(chain), np.array([0]))
    actual = labeller.TreeLabels(labels.to_plain()).arcs(scores_TY, pos)
    total = sum(_by_head(labels, column, scores_TY)[t, arc.head] for t, arc in enumerate(actual))
    expected_score = sum(
        _by_head(labels, column, scores_TY)[t, head] for t, head in enumerate(expected.heads_T)
    )
    assert total == pytest.approx(expected_score, rel=1e-5)
    assert is_tree(np.array([arc.head for arc in actual]))
    if any(head != arc.head for head, arc in zip(expected.heads_T, actual, strict=True)):
        # Two trees that are equally good: of words that have no label for some heads.
        assert total < FORBIDDEN / 2
        return
    assert [arc.relation for arc in actual] == [RELATIONS[number] for number in expected.relations_T]
    assert [arc.repaired for arc in actual] == expected.repaired_T.tolist()
    sure_TY = torch.from_numpy(scores_TY).softmax(1).numpy()
    label_heads_TY = column.label_heads(np.array([0]))[0]
    for t, arc in enumerate(actual):
        is_arc = (label_heads_TY[t] == arc.head) & (labels.relations_Y == RELATIONS.index(arc.relation))
        assert arc.probability == pytest.approx(sure_TY[t, is_arc].sum(), abs=1e-6)


def _by_head(labels, column, scores_TY):
    """The scores of all heads by word: each is that of its best label."""
    logs_TY = torch.from_numpy(scores_TY).log_softmax(1).numpy()
    label_heads_TY = column.label_heads(np.array([0]))[0]
    words = len(scores_TY)
    result = np.full((words, words + 1), FORBIDDEN)
    for t, head in product(range(words), range(words + 1)):
        if (label_heads_TY[t] == head).any():
            result[t, head] = logs_TY[t, label_heads_TY[t] == head].max()
    return result


@given(st.integers(1, 5), st.integers(0, 2**16), st.booleans())
def test_the_best_tree_is_the_best_of_all(words, seed, never):
    draw = np.random.default_rng(seed)
    scores_TH = draw.normal(size=(words, words + 1), scale=3)
    if never:
        scores_TH[draw.random(scores_TH.shape) < 0.3] = FORBIDDEN
    scores_TH[range(words), range(1, words + 1)] = -np.inf

    def total(heads):
        return sum(scores_TH[t, head] for t, head in enumerate(heads))

    actual = best_tree(scores_TH)
    assert is_dependency_tree(tuple(actual.tolist()))
    assert total(actual) == pytest.approx(max(map(total, trees(words))), abs=1e-6)


@given(st.integers(1, 5), st.data())
def test_what_is_a_tree(words, data):
    heads = data.draw(st.tuples(*[st.integers(0, words)] * words))
    assert is_tree(np.array(heads)) == is_dependency_tree(heads)


def stored(**more):
    return {
        "encoding": "relative_pos",
        "tags": ["-1@ROOT@root"],
        "pos": ["NOUN", "VERB"],
        "relations": ["root"],
        **more,
    }


def test_universal_parts_of_speech_are_known_where_all_of_the_treebanks_are_universal():
    labels = labeller.TreeLabels(stored())
    labels.check_pos(["1", "!"], ["NUM", "NOUN"], tagged=False)
    scores_TY = np.zeros((2, 1), np.float32)
    assert [arc.head for arc in labels.arcs(scores_TY, ["NUM", "NOUN"])] == [
        arc.head for arc in labels.arcs(scores_TY, ["VERB", "NOUN"])
    ]
    with pytest.raises(ValueError, match=r"unknown part of speech 'NN' \(NOUN, VERB\)"):
        labels.check_pos(["dog"], ["NN"], tagged=False)
    labels = labeller.TreeLabels(stored(pos=["NN", "VB"]))
    with pytest.raises(ValueError, match=r"unknown part of speech 'NOUN' \(NN, VB\)"):
        labels.check_pos(["dog"], ["NOUN"], tagged=False)
    with pytest.raises(ValueError, match="2 words and 1 parts of speech"):
        labels.check_pos(["a", "dog"], ["NN"], tagged=False)
    with pytest.raises(ValueError, match="its labels name parts of speech: give pos, one for every word"):
        labels.check_pos(["dog"], None, tagged=False)
    labels.check_pos(["dog"], None, tagged=True)
