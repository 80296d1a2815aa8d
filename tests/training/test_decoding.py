"""`decoding` through whole runs: which identities it enters; what is stored and pooled is legal. Without Ray."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raykd.forms.tag_schemes import from_bioes, to_bioes
from raykd.forms.targets import best_labels
from raykd.precompute.open_teacher import load_teacher
from raykd.signals import Need
from raykd.storage.store import Storage
from raykd.structures import kbest
from raykd.training.data import cached_corpus
from raykd.training.execute import load_model
from raykd.training.prepare import prepare
from tests.teachers.checkpoints import make_checkpoint
from tests.training.loops import stage_data
from tests.training.small import TREE, prepared, recipe, student_of, train_teachers

MAXENT = {**TREE["teachers"], "kind": "bilstm_maxent"}
TOP_K = {"kind": "top_wk", "k": 4}
LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG")


def is_legal(tags):
    return to_bioes(from_bioes(tags, "bioes"), "bioes") == (list(tags), 0)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return str(tmp_path_factory.mktemp("decoding") / "store")


@pytest.mark.parametrize("decoding", ["legal", "independent"])
@pytest.mark.parametrize(
    "changes", [{}, {"kind": "bilstm_crf"}, {"count": 2}, {"count": 2, "combine": "posteriors"}]
)
def test_the_stored_paths_of_teachers_are_the_best_legal_ones(store, decoding, changes):
    k = 1 if changes.get("combine") == "posteriors" else 4
    run_recipe = recipe(teachers={**MAXENT, **changes}, objective={**TOP_K, "k": k}, decoding=decoding)
    ready = prepared(store, run_recipe)
    run = student_of(ready, run_recipe)
    corpus = cached_corpus(store, run.corpus_id)
    data = stage_data(ready.storage, run)
    rows = np.arange(len(data.part))
    teacher = data.gather(rows, torch.device("cpu")).teacher
    lengths_N = data.part.text.lengths
    collected = []
    for row in rows:
        exist = teacher.scores_BK[row] > -np.inf
        for path in teacher.paths_BKT[row][exist][:, : lengths_N[row]].tolist():
            collected.append(is_legal(corpus.tag_set.decode(path)))
    assert all(collected) == (decoding == "legal"), "what has hardly learnt gives malformed spans"
    # The best stored path is the labelling that the teacher itself is scored by.
    loaded_teacher = load_teacher(ready.storage, ready.teachers[0].run.id)
    words = corpus.parts["train"].to_pylist()
    sentences = [
        (n, sentence["tokens"])
        for n, sentence in enumerate(words)
        if sentence["language"] == ready.teachers[0].languages[0]
    ]
    for places, _, output in loaded_teacher.outputs([words for _, words in sentences], 200):
        for place, best in zip(places, best_labels(output), strict=True):
            row = sentences[place][0]
            stored = teacher.paths_BKT[row, 0, : len(best)].tolist()
            assert stored == best.tolist() or _tied(output, places.index(place), stored)


def _tied(output, row, stored):
    """True if rounding to float16 decides between the stored labelling and the best one."""
    scores = kbest(output.distribution, 2, output.legal)[1][row]
    return bool(scores[0] - scores[1] < 0.05)


def test_what_it_enters(store, tmp_path):
    """A run of a model of spans, and of a given teacher its best paths alone."""
    storage = Storage(store)
    runs, signals = {}, {}
    path = make_checkpoint(tmp_path / "given", labels=LABELS, longest=64)
    teacher_settings = {"kind": "hf_token_classifier", "path": path, "scope": "all"}
    for decoding in ("legal", "independent"):
        for decoder in ("crf", "maxent"):
            run_recipe = recipe(student={"decoder": decoder}, decoding=decoding)
            runs[decoder, decoding] = student_of(prepare(run_recipe, storage), run_recipe)
        run_recipe = recipe(teachers=teacher_settings, objective=TOP_K, decoding=decoding)
        (teacher,) = prepare(run_recipe, storage).teachers
        for need in (Need("emissions"), Need("kbest", 4), Need("hidden", layer=1)):
            signals[need.name, decoding] = teacher.signal_id(need, teacher.text)
        runs["given", decoding] = teacher.run
    for name in ("crf", "maxent", "given"):
        assert runs[name, "legal"].id != runs[name, "independent"].id, "its scores differ"
    for name in ("emissions", "hidden.1"):
        assert signals[name, "legal"] == signals[name, "independent"]
    assert signals["kbest", "legal"] != signals["kbest", "independent"]


def test_an_ensemble_gives_the_best_legal_labelling_of_its_pool(store):
    run_recipe = recipe(teachers={**MAXENT, "count": 2})
    ready = prepare(run_recipe, Storage(store))
    train_teachers(ready)
    model = load_model(ready.storage, ready.teachers[0].run)
    assert model.legal is not None
    assert all(member.legal is not None for member in model.members)
