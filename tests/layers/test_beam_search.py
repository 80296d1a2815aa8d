"""Beam search against all sequences, and against a plain beam search written label by label."""

from __future__ import annotations

import itertools
import math
import zlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.layers.beam_search import beam_search

untimed = settings(deadline=None, max_examples=60)  # a busy machine is no failure
CHANGES = (-1, 1, 0, 0)  # closes, opens, two words
L = len(CHANGES)


def log_p(seed, sentence, labels):
    """Return log-probabilities of the next label, an arbitrary distribution for each sequence before it."""
    draw = torch.Generator().manual_seed(zlib.crc32(repr((seed, sentence, *labels)).encode()))
    return (2 * torch.randn(L, generator=draw, dtype=torch.float64)).log_softmax(0)


class Model:
    """A model that keeps the labels of the hypotheses, as a decoder keeps its states."""

    def __init__(self, seed):
        self.seed, self.hypotheses, self.calls = seed, None, []

    def __call__(self, parents_N, labels_N):
        if self.hypotheses is None:
            assert set(labels_N.tolist()) == {-1}
            self.hypotheses = [(sentence, ()) for sentence in parents_N.tolist()]
        else:
            before = self.hypotheses
            pairs = zip(parents_N.tolist(), labels_N.tolist(), strict=True)
            self.hypotheses = [(before[p][0], (*before[p][1], label)) for p, label in pairs]
        self.calls.append(len(self.hypotheses))
        return torch.stack([log_p(self.seed, *hypothesis) for hypothesis in self.hypotheses])


def total(seed, sentence, labels):
    return sum(float(log_p(seed, sentence, labels[:i])[label]) for i, label in enumerate(labels))


def is_complete(labels):
    depth = 0
    for i, label in enumerate(labels):
        depth += CHANGES[label]
        if depth <= 0:
            return i + 1 == len(labels)
    return False


def run_search(seed, max_steps, **settings):
    labels_BS, log_p_BS, lengths_B = beam_search(
        Model(seed), torch.tensor(CHANGES), torch.tensor(max_steps), **settings
    )
    sequences = [tuple(row[:n]) for row, n in zip(labels_BS.tolist(), lengths_B.tolist(), strict=True)]
    for sentence, labels in enumerate(sequences):
        assert not labels_BS[sentence, len(labels) :].any()
        assert float(log_p_BS[sentence].sum()) == pytest.approx(total(seed, sentence, labels))
    return sequences


@untimed
@given(st.integers(0, 10**6), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_a_wide_beam_finds_the_most_probable_complete_sequence(seed, max_steps):
    for sentence, sequence in enumerate(run_search(seed, max_steps, beam=L**5)):
        candidates = [
            labels
            for n in range(1, max_steps[sentence] + 1)
            for labels in itertools.product(range(L), repeat=n)
            if is_complete(labels)
        ]
        assert is_complete(sequence)
        assert total(seed, sentence, sequence) == pytest.approx(
            max(total(seed, sentence, candidate) for candidate in candidates)
        )


def plain_search(seed, sentence, max_steps, beam):
    """Beam search of one sentence, as the docstring of `beam_search` describes it."""
    hypotheses = [(0.0, ())]
    for _ in range(max_steps):
        following = []
        for score, labels in hypotheses:
            if is_complete(labels):
                following.append((score, labels))
            else:
                label_log_p = log_p(seed, sentence, labels).tolist()
                following += [(score + label_log_p[label], (*labels, label)) for label in range(L)]
        hypotheses = sorted(following, key=lambda hypothesis: -hypothesis[0])[:beam]
        if is_complete(hypotheses[0][1]):
            break
    return next((labels for _, labels in hypotheses if is_complete(labels)), hypotheses[0][1])


@untimed
@given(st.integers(0, 10**6), st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 4))
def test_a_narrow_beam_keeps_the_best_at_each_step(seed, max_steps, beam):
    sequences = run_search(seed, max_steps, beam=beam)
    assert sequences == [
        plain_search(seed, sentence, steps, beam) for sentence, steps in enumerate(max_steps)
    ]


def test_sentences_that_ended_are_not_asked_for():
    model = Model(3)
    beam_search(model, torch.tensor(CHANGES), torch.tensor([1, 3]))
    assert model.calls[0] == 2
    assert len(model.calls) == 1 or model.calls[1:] == [1] * (len(model.calls) - 1)


def test_steps_can_be_counted_instead():
    """For measuring time, brackets are ignored."""
    sequences = run_search(0, [4, 2], exactly=True)
    assert [len(labels) for labels in sequences] == [4, 2]
    for sentence, labels in enumerate(sequences):
        for i, label in enumerate(labels):
            assert math.isclose(
                float(log_p(0, sentence, labels[:i])[label]), float(log_p(0, sentence, labels[:i]).max())
            )
