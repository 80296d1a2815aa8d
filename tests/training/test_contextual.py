"""Frozen encoders, from what they give for each sentence to the teachers and students that read it."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

import raykd
from raykd.figures.figure_values import combine_model_costs
from raykd.layers.contextual import ContextualConfig, EncoderConfig
from raykd.layers.frozen_encoder import EncoderFeatures
from raykd.layers.model import load_weights
from raykd.precompute import model_cost
from raykd.precompute.latency import Timing
from raykd.precompute.model_cost import measure_cost
from raykd.precompute.open_teacher import load_teacher
from raykd.storage.layout import WEIGHTS
from raykd.storage.store import Storage
from raykd.sweep.doctor import examine_store
from raykd.tasks import TASKS
from raykd.training.data import encoded_part, training_data
from raykd.training.evaluate import predict
from raykd.training.execute import find_result, update_model_paths
from raykd.training.model_folder import build_model, load_model
from raykd.training.prepare import prepare
from raykd.training.stored_features import FeatureReader, encoder_ids
from raykd.training.worker import Worker
from tests.teachers.checkpoints import make_checkpoint
from tests.training.small import (
    called_once,
    computed,
    executed,
    prepared,
    read_features,
    recipe,
    student_of,
    train_teachers,
)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("tiny"), head=False)


def with_encoder(path, **settings):
    return recipe(teachers={"contextual": {"path": path, **settings}})


def test_a_student_is_distilled_from_a_teacher_with_a_frozen_encoder(tmp_path, encoder):
    run_recipe = with_encoder(encoder)
    ready = prepared(str(tmp_path), run_recipe)
    storage, run = ready.storage, ready.teachers[0].run
    stored = storage.child(*run.folder).read(WEIGHTS)
    loaded = load_model(storage, run)
    load_weights(build_model(storage, run), stored)
    batch = encoded_part(storage.uri, run, "dev").text.gather(np.arange(4))
    assert batch.context == ()
    assert batch.features_BTD is not None
    with torch.inference_mode():
        emissions_BTY = loaded(batch).distribution.emissions_BTY
        blind = replace(batch, features_BTD=torch.zeros_like(batch.features_BTD))
        assert not torch.equal(loaded(blind).distribution.emissions_BTY, emissions_BTY)
    result = find_result(storage, run)
    assert result is not None
    assert result.parameters > sum(p.numel() for p in loaded.parameters())
    assert len(executed(ready, student_of(ready, run_recipe)).epochs) == 2


def test_the_teacher_is_named_by_the_encoders_content(tmp_path, encoder):
    moved = shutil.copytree(encoder, tmp_path / "moved")
    second_checkpoint = make_checkpoint(tmp_path / "other", head=False, seed=1)
    storage = Storage(str(tmp_path / "store"))
    ids = [
        [(teacher.run.id, teacher.run.vocabulary_id) for teacher in prepare(run_recipe, storage).teachers]
        for run_recipe in (
            with_encoder(encoder), with_encoder(str(moved)), with_encoder(second_checkpoint),
            with_encoder(encoder, pooling="first"), recipe(),
        )
    ]  # fmt: skip
    assert ids[0] == ids[1]
    assert len({str(encoder_id) for encoder_id in ids}) == 4


def test_a_teacher_whose_encoder_moved_is_found_and_gives_its_outputs(tmp_path, encoder):
    first = shutil.copytree(encoder, tmp_path / "first")
    before = prepared(str(tmp_path / "store"), with_encoder(str(first)))
    moved = shutil.move(first, tmp_path / "moved")
    after = prepare(with_encoder(str(moved)), before.storage)
    run = after.teachers[0].run
    assert find_result(after.storage, run) is not None
    update_model_paths(after.storage, run)
    ((_, _, output),) = load_teacher(after.storage, run.id).outputs([["Anna", "."]], 100)
    assert output.distribution.lengths_B.tolist() == [2]


def test_its_cost_is_that_of_encoder_and_tagger(tmp_path, encoder, monkeypatch):
    timed = []
    monkeypatch.setattr(
        model_cost, "labelling_call", lambda model, batch: lambda: (timed.append(batch), model(batch))
    )
    monkeypatch.setattr(model_cost, "time_in_turns", called_once)
    run_recipe, storage = with_encoder(encoder), Storage(str(tmp_path))
    with_, without = (
        measure_cost(storage.uri, prepare(variant, storage).teachers[0].run)
        for variant in (run_recipe, recipe())
    )
    assert [len(batch.context) for batch in timed] == [1, 1], "without an encoder its export is timed instead"
    assert "frozen encoders" in with_.no_export
    assert without.no_export == ""
    assert with_.shape["context"][0] > 0
    assert without.shape["context"] == []
    model = build_model(storage, prepare(run_recipe, storage).teachers[0].run)
    assert with_["parameters"] == sum(p.numel() for p in model.all_parameters())


def test_an_encoder_reads_each_sentence_once(tmp_path, encoder):
    both = with_encoder(encoder)
    ready = prepare(both, Storage(str(tmp_path)))
    different = {tuple(words) for part in ready.corpus.parts.values() for words in part["tokens"].to_pylist()}
    assert read_features(ready, both) == len(different)
    assert read_features(ready, both) == 0
    # A student that reads the same encoder, and another language: what is new is read.
    student = {"contextual": {"path": encoder}}
    assert read_features(ready, recipe(teachers={"contextual": {"path": encoder}}, student=student)) == 0
    more = recipe(teachers={"contextual": {"path": encoder}}, corpus={"languages": ("en", "de", "nl")})
    larger = prepare(more, ready.storage)
    new = {
        tuple(words) for part in larger.corpus.parts.values() for words in part["tokens"].to_pylist()
    } - different
    assert read_features(larger, more) == len(new) > 0


def test_a_lost_shard_is_computed_again(tmp_path, encoder):
    run_recipe = with_encoder(encoder)
    ready = prepare(run_recipe, Storage(str(tmp_path)))
    read = read_features(ready, run_recipe)
    (shard,) = tmp_path.glob("transfer/features-*/shard-*.arrow")
    before = shard.read_bytes()
    shard.unlink()
    assert read_features(ready, run_recipe) == read
    assert shard.read_bytes() == before
    # A lost index is written again.
    (index,) = tmp_path.glob("transfer/features-*/shards.index")
    index.unlink()
    read_features(ready, run_recipe)
    assert index.exists()
    (noted,) = tmp_path.glob("encoders/*/text-*.json")
    noted.write_text(noted.read_text().replace("sentences", "sentence5"))
    (damage,) = examine_store(ready.storage).damages
    assert damage.remove == (str(noted.relative_to(tmp_path)),)


def test_nothing_computes_with_the_encoder_but_the_precompute(tmp_path, encoder, monkeypatch):
    run_recipe = recipe(
        teachers={"contextual": {"path": encoder}},
        student={"contextual": {"path": encoder}, "embedding_dim": 0},
    )
    ready = prepare(run_recipe, Storage(str(tmp_path)))
    read_features(ready, run_recipe)
    monkeypatch.setattr(EncoderFeatures, "compute", lambda *_: pytest.fail("read again"))
    train_teachers(ready)
    computed(ready, run_recipe)
    run = student_of(ready, run_recipe)
    result = executed(ready, run)
    monkeypatch.undo()
    assert len(result.epochs) == 2
    assert result.parameters > sum(p.numel() for p in build_model(ready.storage, run).parameters())


def test_stored_features_give_what_the_encoder_gives(tmp_path, encoder):
    run_recipe = recipe(student={"contextual": {"path": encoder}})
    ready = prepared(str(tmp_path / "store"), run_recipe)
    run = student_of(ready, run_recipe)
    executed(ready, run)
    part = encoded_part(ready.storage.uri, run, "test")
    sentences = ready.corpus.parts["test"]["tokens"].to_pylist()
    loaded = raykd.load(tmp_path / "store" / "runs" / run.id)
    decode = partial(TASKS["ner"].form.best_labellings, part.labels)
    stored = predict(load_model(ready.storage, run), part.text, decode, worker=Worker())
    assert loaded.label(sentences) == [ready.corpus.tag_set.decode(path) for path in stored]


def test_several_workers_of_one_text_read_several_encoders(tmp_path, encoder):
    (tmp_path / "en.vec").write_text("Anna 1 2\n")
    (tmp_path / "de.vec").write_text("Anna 3 4\nHaus 5 6\n")
    several = [{"path": encoder, "layers": [0, 1]}, {"vectors": str(tmp_path / "{lang}.vec")}]
    section = TypeAdapter(ContextualConfig).validate_json(json.dumps(several))
    run_recipe = recipe(teachers={"contextual": section})
    ready = prepared(str(tmp_path / "store"), run_recipe)
    encoders, tables = zip(*(encoder_ids(teacher.run) for teacher in ready.teachers), strict=True)
    assert len(set(encoders)) == 1
    assert len(set(tables)) == 2
    batch = encoded_part(ready.storage.uri, ready.teachers[0].run, "train").text.gather(np.arange(3))
    assert batch.features_BTD.shape[2] == 2 * 16 + 2
    assert len(executed(ready, student_of(ready, run_recipe)).epochs) == 2
    assert measure_cost(ready.storage.uri, ready.teachers[0].run)["latency_ms_torch"] > 0


def test_what_a_teacher_labels_is_read_too(tmp_path, encoder):
    run_recipe = recipe(teachers={"contextual": {"path": encoder}}, teacher_corpus={"cap": 5})
    ready = prepare(run_recipe, Storage(str(tmp_path)))
    read_features(ready, run_recipe)
    for teacher in ready.teachers:
        assert FeatureReader(ready.storage, encoder_ids(teacher.run)).find(teacher.text.tokens) is not None


def test_an_encoder_in_half_precision_counts_as_it_is_read(tmp_path):
    path = make_checkpoint(tmp_path, head=False)
    whole = EncoderConfig(path=path).build()
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"dtype": "float16", "torch_dtype": "float16"}))
    half = EncoderConfig(path=path).build()
    assert [p.element_size() for p in half.parameters()] == [p.element_size() for p in whole.parameters()]


def test_an_encoder_that_teachers_share_counts_once(tmp_path, encoder, monkeypatch):
    monkeypatch.setattr(model_cost, "time_in_turns", lambda calls: dict.fromkeys(calls, Timing(1.0, 2.0)))
    ready = prepare(with_encoder(encoder), Storage(str(tmp_path)))
    costs = [measure_cost(ready.storage.uri, teacher.run) for teacher in ready.teachers]
    (shared,) = {
        key: shared_cost for cost_of_teacher in costs for key, shared_cost in cost_of_teacher.shared.items()
    }.values()
    for name in ("parameters", "bytes_torch"):
        assert (
            combine_model_costs(costs)[name]
            == sum(cost_of_teacher[name] for cost_of_teacher in costs) - shared[name]
        )
    alone = combine_model_costs([replace(cost_of_teacher, shared={}) for cost_of_teacher in costs])
    assert alone["parameters"] == sum(cost_of_teacher["parameters"] for cost_of_teacher in costs)


def test_features_larger_than_a_window_are_trained_on_window_by_window(tmp_path, encoder, monkeypatch):
    monkeypatch.setattr("raykd.precompute.features.SMALLEST_SHARD", 10)
    monkeypatch.setattr("raykd.transfer.windows.WINDOW_BYTES", 10_000)
    run_recipe = recipe(student={"contextual": {"path": encoder}})
    ready = prepared(str(tmp_path), run_recipe)
    run = student_of(ready, run_recipe)
    data = training_data(ready.storage.uri, run, (), text="all")
    (features,) = data.part.text.features.encoders
    windows = features.plan(data.rows, seed=0, epoch=0)
    assert len(windows) > 3
    batches = data.plan(data.rows, batch_tokens=200, seed=0, epoch=0)
    assert sorted(np.concatenate(batches).tolist()) == data.rows.tolist()
    # No batch is of two windows, and they come one window after the other.
    window_of = {row: number for number, window in enumerate(windows) for row in window.tolist()}
    order = [{window_of[row] for row in batch.tolist()} for batch in batches]
    assert all(len(window_rows) == 1 for window_rows in order)
    assert [min(window_rows) for window_rows in order] == sorted(min(window_rows) for window_rows in order)
    assert len(executed(ready, run).epochs) == 2
    assert not [thread for thread in threading.enumerate() if "prefetch" in thread.name]
