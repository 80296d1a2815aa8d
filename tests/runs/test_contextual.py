"""A teacher with a frozen encoder, from its training to the student it teaches."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

from raykd.layers import load_weights
from raykd.runs import cost
from raykd.runs.cost import measure_cost
from raykd.runs.data import evaluation_part
from raykd.runs.execute import find_result, keep_place
from raykd.runs.models import WEIGHTS, build_model, load_model
from raykd.runs.prepare import prepare
from raykd.runs.teachers import load_teacher
from raykd.storage import Storage
from tests.runs.small import executed, prepared, recipe, student_of
from tests.teachers.checkpoints import make_checkpoint


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("tiny"), head=False)


def with_encoder(path, **settings):
    return recipe(teachers={"contextual": {"path": path, **settings}})


def test_a_student_is_distilled_from_a_teacher_with_a_frozen_encoder(tmp_path, encoder):
    asked = with_encoder(encoder)
    ready = prepared(str(tmp_path), asked)
    storage, run = ready.storage, ready.teachers[0].run
    stored = storage.child(*run.folder).read(WEIGHTS)
    loaded = load_model(storage, run)
    load_weights(build_model(storage, run), stored)
    part = evaluation_part(storage.uri, run.corpus_id, run.vocabulary_id, run.task, "dev")
    batch = part.text.gather(np.arange(4))
    assert batch.context is not None
    with torch.inference_mode():
        emissions_BTY = loaded(batch).distribution.emissions_BTY
        blind = type(batch)(**{**vars(batch), "context": type(batch.context)(**{
            **vars(batch.context), "pieces_BP": batch.context.pieces_BP.clamp_max(1)
        })})  # fmt: skip
        assert not torch.equal(loaded(blind).distribution.emissions_BTY, emissions_BTY)
    result = find_result(storage, run)
    assert result is not None
    assert result.parameters > sum(p.numel() for p in loaded.parameters())
    assert len(executed(ready, student_of(ready, asked)).epochs) == 2


def test_the_teacher_is_named_by_the_encoders_content(tmp_path, encoder):
    moved = shutil.copytree(encoder, tmp_path / "moved")
    other = make_checkpoint(tmp_path / "other", head=False, seed=1)
    storage = Storage(str(tmp_path / "store"))
    ids = [
        [(teacher.run.id, teacher.run.vocabulary_id) for teacher in prepare(asked, storage).teachers]
        for asked in (
            with_encoder(encoder), with_encoder(str(moved)), with_encoder(other),
            with_encoder(encoder, pooling="first"), recipe(),
        )
    ]  # fmt: skip
    assert ids[0] == ids[1]
    assert len({str(each) for each in ids}) == 4


def test_a_teacher_whose_encoder_moved_is_found_and_gives_its_outputs(tmp_path, encoder):
    first = shutil.copytree(encoder, tmp_path / "first")
    before = prepared(str(tmp_path / "store"), with_encoder(str(first)))
    moved = shutil.move(first, tmp_path / "moved")
    after = prepare(with_encoder(str(moved)), before.storage)
    run = after.teachers[0].run
    assert find_result(after.storage, run) is not None
    keep_place(after.storage, run)
    ((_, _, output),) = load_teacher(after.storage, run.id).outputs([["Anna", "."]], 100)
    assert output.distribution.lengths_B.tolist() == [2]


def test_its_cost_is_that_of_encoder_and_tagger(tmp_path, encoder, monkeypatch):
    timed = []
    monkeypatch.setattr(
        cost, "time_batches", lambda model, batch: (timed.append(batch), model(batch), (1.0, 2.0))[2]
    )
    asked, storage = with_encoder(encoder), Storage(str(tmp_path))
    with_, without = (
        measure_cost(storage.uri, prepare(each, storage).teachers[0].run) for each in (asked, recipe())
    )
    assert [batch.context is not None for batch in timed] == [True, True, False, False]
    assert with_.shape["context"] > 0 == without.shape["context"]
    model = build_model(storage, prepare(asked, storage).teachers[0].run)
    assert with_["parameters"] == sum(p.numel() for p in model.all_parameters())
