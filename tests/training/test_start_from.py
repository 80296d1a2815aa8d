"""Training from the weights of a previous run."""

from __future__ import annotations

import shutil

import pytest

from raykd.errors import StoreError
from raykd.layers.model import load_weights
from raykd.storage.layout import WEIGHTS
from raykd.training.execute import _starting_model
from raykd.training.model_folder import build_model
from raykd.training.prepare import prepare
from tests.training.loops import same, weights_of
from tests.training.small import executed, recipe, student_of

GOLD = {"objective": {"kind": "gold"}, "schedule": {"epochs": 1}}


@pytest.fixture(scope="module")
def first(small):
    """A finished run."""
    run = student_of(small, **GOLD)
    executed(small, run)
    return run


def test_by_id_and_by_folder(small, first, tmp_path):
    folder = small.storage.child(*first.folder)
    copied = shutil.copytree(folder.uri, tmp_path / "copied")
    runs = [student_of(small, **GOLD, start_from=source) for source in (first.id, folder.uri, str(copied))]
    assert len({run.id for run in runs}) == 1
    assert runs[0].id != first.id
    weights = build_model(small.storage, first)
    load_weights(weights, folder.read(WEIGHTS))
    for run in runs:
        started = _starting_model(small.storage, run)
        assert same(weights_of(started), weights_of(weights))
    result = executed(small, runs[-1])
    assert result.epochs[0]["loss"] < executed(small, first).epochs[0]["loss"]


def test_what_is_no_finished_run_is_refused(small, tmp_path):
    for where in ("run-0000000000000000", str(tmp_path)):
        with pytest.raises(
            StoreError, match=f"{where}: is no finished run of this store.*set start_from to the id"
        ):
            student_of(small, **GOLD, start_from=where)


def test_another_shape_is_refused(small, first):
    run = student_of(small, **GOLD, start_from=first.id, student={"hidden_dim": 7})
    with pytest.raises(
        StoreError, match=rf"{first.id}: they belong to another model.*give student the shape"
    ):
        executed(small, run)


def test_another_vocabulary_is_refused(small, first):
    run_recipe = recipe(corpus={"seed": 1}, start_from=first.id, **GOLD)
    second_preparation = prepare(run_recipe, small.storage)
    run = student_of(second_preparation, run_recipe)
    with pytest.raises(StoreError, match=rf"{first.id}: its model reads another vocabulary; set corpus and"):
        executed(second_preparation, run)


def test_weights_that_changed_are_refused(small, first, tmp_path):
    copied = shutil.copytree(small.storage.child(*first.folder).uri, tmp_path / "copied")
    run = student_of(small, **GOLD, start_from=str(copied), training={"seed": 3})
    data = bytearray((copied / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (copied / WEIGHTS).write_bytes(bytes(data))
    with pytest.raises(StoreError, match=rf"copied/{WEIGHTS}: the weights are not those of the run's result"):
        executed(small, run)
    (copied / WEIGHTS).unlink()
    with pytest.raises(StoreError, match=WEIGHTS):
        executed(small, run)
