"""Scores of a part: every sentence decoded once, scored per language as seqeval scores it."""

from __future__ import annotations

from statistics import fmean, pstdev

import numpy as np
import pytest
import torch
from seqeval.metrics import f1_score
from torch import nn

from raykd.layers.model import Output
from raykd.storage.store import Storage
from raykd.structures import Chain
from raykd.tasks import TASKS
from raykd.training import device, evaluate
from raykd.training.data import cached_corpus, encoded_part
from raykd.training.prepare import prepare
from raykd.training.worker import Worker
from tests.training.small import recipe, student_of

WRONG = 0.2


class Lookup(nn.Module):
    """Knows the tags of all sentences by the pieces, some of them wrongly."""

    def __init__(self, part, tags: int):
        super().__init__()
        draw = np.random.default_rng(0)
        self.tags, self.known = tags, {}
        for row in range(len(part)):
            pieces = part.text.gather(np.array([row])).pieces_BP[0].tolist()
            gold_tags = part.labels.gather(np.array([row])).tags_BT[0].numpy()
            gold_tags[draw.random(len(gold_tags)) < WRONG] = 0
            self.known[tuple(pieces)] = torch.from_numpy(gold_tags)

    def forward(self, batch, *, layers=()):
        scores_BTY = torch.randn(*batch.first_BT.shape, self.tags)
        for b, (pieces, length) in enumerate(zip(batch.pieces_BP, batch.piece_lengths_B, strict=True)):
            tags = self.known[tuple(pieces[:length].tolist())]
            scores_BTY[b, torch.arange(len(tags)), tags] += 100.0
        return Output(Chain(scores_BTY, batch.lengths_B))


def test_f1_is_seqevals_for_each_language(tmp_path, monkeypatch):
    monkeypatch.setattr(device, "CPU_PIECES", 150)
    run_recipe = recipe()
    preparation = prepare(run_recipe, Storage(str(tmp_path)))
    run = student_of(preparation, run_recipe)
    part = encoded_part(str(tmp_path), run, "dev")
    table = cached_corpus(str(tmp_path), run.corpus_id).parts["dev"]
    tag_set = preparation.corpus.tag_set
    lookup = Lookup(part, len(tag_set))
    scored = evaluate.score_part(lookup, part, TASKS["ner"], tag_set, worker=Worker())["source"]

    gold = [[tag_set.tags[tag] for tag in tags] for tags in table["tags"].to_pylist()]
    known_gold = [
        lookup.known[tuple(part.text.gather(np.array([row])).pieces_BP[0].tolist())] for row in range(16)
    ]
    predicted = [[tag_set.tags[tag] for tag in tags] for tags in known_gold]
    languages = table["language"].to_pylist()
    expected = {}
    for language in ("en", "de"):
        language_rows = [row for row, name in enumerate(languages) if name == language]
        sides = [gold[row] for row in language_rows], [predicted[row] for row in language_rows]
        expected[language] = f1_score(*sides)
    assert 0.2 < expected["en"] != expected["de"] < 0.9
    assert scored.by_language == pytest.approx(expected)
    assert scored.mean == pytest.approx(fmean(expected.values()))
    assert scored.languages_sd == pytest.approx(pstdev(expected.values()))
