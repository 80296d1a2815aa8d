"""A teacher over spans through a whole run: trained, stored, distilled from, scored. Without Ray."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from raykd.corpora.encoded_text import encode_text
from raykd.recipes.recipe_faults import recipe_faults
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.storage.store import Storage
from raykd.structures import Spans, log_partition, score, token_marginals, viterbi
from raykd.training.data import cached_corpus
from raykd.training.execute import load_model
from raykd.training.prepare import prepare
from tests.training.loops import distiller, opened, stage_data
from tests.training.small import executed, prepared, recipe, student_of

TEACHER = {
    "kind": "biaffine_ner", "scope": "language", "embedding_dim": 6, "hidden_dim": 6, "character_dim": 4,
    "character_hidden": 4, "biaffine_dim": 8, "epochs": 2, "training": {"batch_tokens": 200, "learning_rate": 1e-2},
}  # fmt: skip
STUDENT = {"decoder": "maxent"}


@pytest.fixture(scope="module")
def spans(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("spans") / "store")
    return prepared(folder, recipe(teachers=TEACHER, student=STUDENT))


def test_what_is_stored_is_what_the_teacher_gives(spans):
    run = student_of(spans, teachers=TEACHER, student=STUDENT)
    assert set(run.sources[0].signals) == {"token_marginals", "kbest"}
    data = stage_data(spans.storage, run)
    parts = cached_corpus(spans.storage.uri, run.corpus_id).parts
    labelled, rows = parts["train"].num_rows, np.arange(len(data.part))
    batch = data.gather(rows, torch.device("cpu"))
    sentences = parts["train"].to_pylist() + parts["unlabelled"].to_pylist()
    taught = {teacher.languages[0]: teacher.run for teacher in spans.teachers}
    for row in (0, labelled - 1, labelled, len(rows) - 1):
        words, language = sentences[row]["tokens"], sentences[row]["language"]
        distribution = _given(spans.storage, taught[language], words)
        stored_TY = batch.teacher.marginals.emissions_BTY[row, : len(words)].exp()
        torch.testing.assert_close(stored_TY, token_marginals(distribution)[0], atol=5e-3, rtol=0)
        best = viterbi(distribution)[0][0].tolist()
        assert batch.teacher.paths_BKT[row, 0, : len(words)].tolist() == best


def _given(storage: Storage, run, words: list[str]) -> Spans:
    vocabulary = open_vocabulary(storage, run.vocabulary_id)
    text = encode_text([words], vocabulary.pieces, vocabulary.characters)
    with torch.inference_mode():
        return load_model(storage, run)(text.gather(np.array([0]))).distribution


def test_the_loop_trains_it_on_the_exact_likelihood_of_the_gold_segmentation(spans):
    run = spans.teachers[0].run
    loop = opened(distiller(spans.storage, run, folder="teacher"))
    batch = loop.data.gather(np.arange(4), torch.device("cpu"))
    output = loop.model.eval()(batch.text)
    gold_B = loop.loss(output, batch.targets, batch.teacher).total_B
    distribution = output.distribution
    assert isinstance(distribution, Spans)
    torch.testing.assert_close(
        gold_B, log_partition(distribution) - score(distribution, batch.targets.tags_BT)
    )
    assert torch.isfinite(gold_B).all()
    reports = []
    loop.train(reports.append)
    assert reports[-1].loss < reports[0].loss


@pytest.mark.parametrize("objective", ["structural", "posterior", "token"])
def test_a_student_is_distilled_from_it(spans, objective):
    result = executed(
        spans, student_of(spans, teachers=TEACHER, student=STUDENT, objective={"kind": objective})
    )
    assert 0 <= result.scores.mean("test") <= 1
    assert result.epochs[0]["losses"][objective] > 0


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"student": {"decoder": "crf"}}, "objective", "'pairs' is needed.*give the student decoder: maxent"),
        ({"objective": {"kind": "top_wk", "k": 2}}, "objective", "k = 2 is needed.*set k: 1"),
        ({"objective": {"kind": "top_k", "k": 5}}, "objective", "k = 5 is needed.*set k: 1"),
        ({"objective": {"kind": "pos_top_wk", "k": 3}}, "objective", "k = 3 is needed.*set k: 1"),
        ({"objective": {"kind": "emission"}}, "objective", "'emissions' is needed.*use posterior"),
        (
            {"objective": {"kind": "structural", "temperature": 2.0, "temperature_mode": "global"}},
            "objective",
            "'softened' is needed.*temperature_mode: local",
        ),
        ({"task": "pos"}, "teachers", "'biaffine_ner' finds spans, and the tags of task 'pos' are flat; use"),
    ],
)
def test_what_cannot_be_had_of_it_is_refused_with_a_hint(changes, path, message):
    run_recipe = recipe(**({"teachers": TEACHER, "student": STUDENT} | changes))
    (fault,) = recipe_faults(run_recipe)
    assert fault[0] == (path, "kind")
    assert re.search(message, fault[1]), fault[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": {"kind": "structural", "temperature": 3.0}},
        {"objective": {"kind": "structural", "temperature_mode": "global"}},
        {"objective": {"kind": "posterior"}, "student": {"decoder": "crf"}},
        {"objective": {"kind": "top_wk", "k": 1}, "student": {"decoder": "crf"}},
        {"objective": {"kind": "pos_top_wk", "k": 1}},
        {"objective": {"kind": "token"}},
        {"task": "aspect"},
    ],
)
def test_what_can_be_had_is_not_refused(changes):
    assert recipe_faults(recipe(**({"teachers": TEACHER, "student": STUDENT} | changes))) == []


def test_preparing_names_what_it_offers(tmp_path):
    ready = prepare(recipe(teachers=TEACHER, student=STUDENT), Storage(str(tmp_path)))
    assert ready.teachers[0].config.offers == ("token_marginals", "kbest", "hidden", "hidden_int8")
