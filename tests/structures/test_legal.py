"""The best legal labellings against enumeration: of a chain with and without transitions, a pool, a mixture."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raykd.forms import FLAT, SPANS
from raykd.structures import Chain, LegalTransitions, Mixture, kbest, score, viterbi
from tests.oracles.chains import enumerate_chain
from tests.structures.chains import CODES, MINUS_INFINITY, SETTINGS, chains, close, size_of, using


@st.composite
def constraints(draw, tags):
    """Any constraint over so many tags: some of what it allows may be unreachable."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    parts = (
        (torch.rand(*shape, generator=generator) < 0.7).numpy() for shape in ((tags, tags), (tags,), (tags,))
    )
    return LegalTransitions.from_masks(*parts)


def is_legal(legal, path):
    steps = all(legal.transitions_YY[a, b] == 0 for a, b in itertools.pairwise(path))
    return bool(steps and legal.start_Y[path[0]] == 0 and legal.end_Y[path[-1]] == 0)


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(data=st.data())
def test_the_k_best_legal_ones_are_the_best_of_all_that_are_legal(code, data):
    chain = data.draw(chains(forbid=False))
    legal, k = data.draw(constraints(chain.tags)), data.draw(st.sampled_from([1, 2, 10]))
    with using(code):
        paths, scores = kbest(chain, k, legal)
        path, best = viterbi(chain, legal)
    for b, law in enumerate(enumerate_chain(chain)):
        allowed = [
            path_score
            for path_score, path_b in zip(law.scores, law.paths, strict=True)
            if is_legal(legal, path_b)
        ]
        expected = torch.stack(allowed).sort(descending=True).values[:k] if allowed else law.scores[:0]
        exist, length = len(expected), int(chain.lengths_B[b])
        close(scores[b, :exist], expected, chain, size=size_of(chain))
        assert (scores[b, exist:] == MINUS_INFINITY).all()
        assert not paths[b, exist:].any()
        for legal_path in paths[b, :exist, :length].tolist():
            assert is_legal(legal, legal_path)
    close(best, scores[:, 0], chain, size=size_of(chain))
    assert torch.equal(path, paths[:, 0])


@SETTINGS
@given(data=st.data())
def test_a_mixture_gives_the_best_legal_labelling_of_its_pool(data):
    first = replace(
        data.draw(chains(forbid=False, transitions=False, dtypes=(torch.float64,))), start=None, end=None
    )
    second = replace(first, emissions_BTY=torch.randn_like(first.emissions_BTY))
    legal = data.draw(constraints(first.tags))
    mixture = Mixture((first, second))
    path, log_p = viterbi(mixture, legal)
    pool = replace(first, emissions_BTY=(first.emissions_BTY + second.emissions_BTY) / 2)
    assert torch.equal(path, viterbi(pool, legal)[0])
    close(log_p, score(mixture, path), first, size=size_of(first))


def test_bioes_labels_that_are_best_by_themselves_become_the_best_spans():
    """The best label of all words is I-A, without a B-A before it."""
    tags = SPANS.tag_set(["A"])
    legal = tags.legal()
    emissions = torch.full((1, 3, len(tags)), -5.0)
    emissions[0, :, tags.index("I-A")] = 0
    emissions[0, :, tags.index("O")] = -1
    chain = Chain(emissions, torch.tensor([3]))
    assert tags.decode(viterbi(chain)[0][0]) == ["I-A"] * 3
    assert tags.decode(viterbi(chain, legal)[0][0]) == ["O"] * 3
    emissions[0, 0, tags.index("B-A")] = emissions[0, 2, tags.index("E-A")] = -0.5
    assert tags.decode(viterbi(chain, legal)[0][0]) == ["B-A", "I-A", "E-A"]
    assert FLAT.tag_set(["X", "Y"]).legal() is None
