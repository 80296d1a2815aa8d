"""One set of signals for several texts, and one teacher for the students of several languages."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raykd.corpora.corpus import open_corpus
from raykd.precompute.open_teacher import load_teacher
from raykd.storage.store import Storage
from raykd.training.prepare import Preparation, prepare, share_texts
from raykd.training.student_runs import student_runs
from raykd.transfer import open_text
from tests.teachers.checkpoints import make_checkpoint
from tests.training.loops import stage_data
from tests.training.small import computed, executed, prepared, recipe, student_of, train_teachers

CPU = torch.device("cpu")
TOP = {
    "objective": {
        "kind": "mix",
        "parts": ({"objective": {"kind": "structural"}}, {"objective": {"kind": "top_wk", "k": 2}}),
    }
}
ALONE = {"student": {"scope": "language"}, **TOP}


def emissions_of(data, row: int) -> torch.Tensor:
    """The stored emissions of one sentence."""
    return data.gather(np.array([row]), CPU).teacher.chain.emissions_BTY[0]


def assert_taught(storage: Storage, run, data) -> None:
    """All sentences have the emissions of their language's teacher."""
    corpus = open_corpus(storage, run.corpus_id)
    table = corpus.parts["train"].to_pylist() + corpus.parts["unlabelled"].to_pylist()
    assert len(table) == len(data.part)
    for source in run.sources:
        teacher = load_teacher(storage, source.teacher_id)
        rows = [row for row, sentence in enumerate(table) if sentence["language"] in source.languages]
        for places, _, output in teacher.outputs([table[row]["tokens"] for row in rows], 10**6):
            emissions_BTY = output.distribution.emissions_BTY
            for place, emissions_TY in zip(places, emissions_BTY, strict=True):
                stored_TY = emissions_of(data, rows[place])
                expected_TY = emissions_TY[: len(stored_TY)] - emissions_TY[: len(stored_TY)].amax(
                    1, keepdim=True
                )
                torch.testing.assert_close(stored_TY, expected_TY, atol=5e-3, rtol=1e-3)


@pytest.fixture(scope="module", params=["language", "all"])
def one_each(request, tmp_path_factory):
    """A store with teachers (one for each language, or one for all) serve one student per language."""
    run_recipe = recipe(teachers={"scope": request.param}, **ALONE)
    return run_recipe, prepared(str(tmp_path_factory.mktemp(request.param) / "store"), run_recipe)


def test_one_student_per_language_with_signals_from_the_right_rows(one_each):
    run_recipe, ready = one_each
    runs = student_runs(run_recipe, ready)
    assert len(runs) == len({run.id for run in runs}) == 2
    for run, language in zip(runs, ("en", "de"), strict=True):
        (source,) = run.sources
        assert source.languages == (language,)
        data = stage_data(ready.storage, run)
        assert set(data.part.languages) == {language}
        assert_taught(ready.storage, run, data)
    result = executed(ready, runs[0])
    assert set(result.scores.by_language("test")) == {"en"}


def test_one_language_needs_no_scope(small):
    run_recipe = recipe(corpus={"languages": ("en",)}, **ALONE)
    ready = prepare(run_recipe, small.storage)
    alone = recipe(corpus={"languages": ("en",)}, **TOP)
    (run,) = student_runs(run_recipe, ready)
    assert run.id == student_of(ready, alone).id


SIZES = {"unlabelled_cap": 4}, {"unlabelled_cap": None}


def sized(corpus, **changes):
    """A recipe with a given amount of text, and the same teachers for all of them."""
    return recipe(corpus=corpus, **{"teacher_corpus": {"unlabelled_cap": None}, **TOP, **changes})


def same_batches(first, second) -> bool:
    """True if two sets of training data give the same batch of all sentences, bit by bit."""
    assert len(first.part) == len(second.part)
    batches = [data.gather(np.arange(len(data.part)), CPU).teacher for data in (first, second)]
    parts = [
        (batch.chain.emissions_BTY, *batch.chain.filled(), batch.paths_BKT, batch.scores_BK)
        for batch in batches
    ]
    return all(torch.equal(a, b) for a, b in zip(*parts, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["language", "all"])
def test_two_sizes_of_text_share_one_precompute(tmp_path, scope):
    recipes = [sized(corpus, teachers={"scope": scope}) for corpus in SIZES]
    storage = Storage(str(tmp_path / "shared"))
    both = share_texts([prepare(run_recipe, storage) for run_recipe in recipes])
    assert [teacher.run.id for teacher in both[0].teachers] == [
        teacher.run.id for teacher in both[1].teachers
    ]
    assert [teacher.text.id for teacher in both[0].teachers] == [
        teacher.text.id for teacher in both[1].teachers
    ]
    train_teachers(both[0])
    computed(both[0], recipes[0])
    files = sorted(storage.names("transfer/"))
    computed(both[1], recipes[1])
    assert sorted(storage.names("transfer/")) == files, "something was computed twice"
    for ready, run_recipe in zip(both, recipes, strict=True):
        run = student_of(ready, run_recipe)
        shared = stage_data(storage, run)
        alone = _alone(str(tmp_path / f"alone-{len(shared.part)}"), run_recipe)
        assert run.id == student_of(alone, run_recipe).id, "a run does not depend on what another text adds"
        assert same_batches(shared, stage_data(alone.storage, student_of(alone, run_recipe)))
    smaller = student_of(both[0], recipes[0])
    assert {source.text_id for source in smaller.sources} == {teacher.text.id for teacher in both[0].teachers}
    assert len(stage_data(storage, smaller).part) < sum(
        len(open_text(storage, text_id)) for text_id in {source.text_id for source in smaller.sources}
    )


def _alone(store: str, run_recipe) -> Preparation:
    return prepared(store, run_recipe)


def test_a_given_teacher_is_the_same_for_every_text(tmp_path):
    checkpoint = {"kind": "hf_token_classifier", "path": make_checkpoint(tmp_path / "checkpoint")}
    storage = Storage(str(tmp_path / "store"))
    ids = {
        prepare(recipe(corpus=corpus, teachers={**checkpoint, "scope": "all"}), storage).teachers[0].run.id
        for corpus in SIZES
    }
    assert len(ids) == 1
