"""Scores of a part: every sentence decoded once, scored per language as seqeval scores it."""

from __future__ import annotations

from statistics import fmean, pstdev

import numpy as np
import pytest
import torch
from seqeval.metrics import f1_score
from seqeval.scheme import IOBES
from torch import nn

from raykd.runs import evaluate
from raykd.runs.data import corpus_of, evaluation_part
from raykd.runs.distil import Worker
from raykd.runs.prepare import prepare, student_run
from raykd.storage import Storage
from raykd.structures import Chain
from tests.runs.small import recipe

MISHEARD = 0.2


class Parrot(nn.Module):
    """Knows the tags of every sentence by its pieces, and mishears some of them."""

    def __init__(self, part, tags: int):
        super().__init__()
        hears = np.random.default_rng(0)
        self.tags, self.known = tags, {}
        text, offsets = part.text, part.tags.offsets
        for row in range(len(part)):
            pieces = text.gather(np.array([row])).pieces_BP[0].tolist()
            said = part.tags.values[offsets[row] : offsets[row + 1]].copy()
            said[hears.random(len(said)) < MISHEARD] = 0
            self.known[tuple(pieces)] = torch.from_numpy(said)

    def forward(self, batch):
        scores_BTY = torch.randn(*batch.first_BT.shape, self.tags)
        for b, (pieces, length) in enumerate(zip(batch.pieces_BP, batch.piece_lengths_B, strict=True)):
            said = self.known[tuple(pieces[:length].tolist())]
            scores_BTY[b, torch.arange(len(said)), said] += 100.0
        return Chain(scores_BTY, batch.lengths_B)


def test_f1_is_seqevals_for_each_language(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate, "EVALUATION_TOKENS", 150)
    asked = recipe()
    preparation = prepare(asked, Storage(str(tmp_path)))
    run = student_run(asked, preparation)
    part = evaluation_part(str(tmp_path), run.corpus_id, run.vocabulary_id, "dev")
    table = corpus_of(str(tmp_path), run.corpus_id).parts["dev"]
    tag_set = preparation.corpus.tag_set
    parrot = Parrot(part, len(tag_set))
    scored = evaluate.score_part(parrot, part, tag_set, "f1", worker=Worker())

    gold = [[tag_set.tags[tag] for tag in tags] for tags in table["tags"].to_pylist()]
    said = [parrot.known[tuple(part.text.gather(np.array([row])).pieces_BP[0].tolist())] for row in range(16)]
    heard = [[tag_set.tags[tag] for tag in tags] for tags in said]
    languages = table["language"].to_pylist()
    expected = {}
    for language in ("en", "de"):
        own = [row for row, name in enumerate(languages) if name == language]
        sides = [gold[row] for row in own], [heard[row] for row in own]
        expected[language] = f1_score(*sides, mode="strict", scheme=IOBES)
    assert 0.2 < expected["en"] != expected["de"] < 0.9
    assert scored["by_language"] == pytest.approx(expected)
    assert scored["mean"] == pytest.approx(fmean(expected.values()))
    assert scored["standard_deviation"] == pytest.approx(pstdev(expected.values()))
