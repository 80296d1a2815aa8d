"""A shape's cost: measured once for all runs that share the shape, and told by the shape alone."""

from __future__ import annotations

import pytest
import torch

from raykd.runs import cost
from raykd.runs.cost import find_cost, measure_cost, synthetic_batch
from raykd.runs.execute import build_model
from raykd.runs.prepare import gold_run, prepare, student_run, with_seed
from raykd.runs.vocabularies import open_vocabulary
from raykd.storage import Storage
from tests.runs.small import recipe


@pytest.fixture
def timed(monkeypatch):
    """How many batches were timed, and on how many threads."""
    seen = []
    monkeypatch.setattr(cost, "ROUNDS", 3)
    honest = cost.time_batches
    monkeypatch.setattr(
        cost, "time_batches", lambda *args: (seen.append(torch.get_num_threads()), honest(*args))[1]
    )
    return seen


def test_runs_of_one_shape_are_measured_once(tmp_path, timed):
    asked = recipe()
    preparation = prepare(asked, Storage(str(tmp_path)))
    run, storage = student_run(asked, preparation), preparation.storage
    assert find_cost(storage, run) is None
    threads = torch.get_num_threads()
    first = measure_cost(storage.uri, run)
    assert timed == [1, 1]
    assert torch.get_num_threads() == threads
    longer = {**run.schedule, "epochs": 9}
    for other in (gold_run(run), with_seed(run, 3), run.__class__(**{**vars(run), "schedule": longer})):
        assert measure_cost(storage.uri, other) == first == find_cost(storage, other)
    assert timed == [1, 1]
    model = build_model(storage, run)
    assert first["parameters"] == sum(p.numel() for p in model.parameters())
    assert first["bytes"] == 4 * first["parameters"]
    assert 0 < first["latency_ms"] <= first["latency_ms_p90"]
    assert first["latency_ms"] < first["latency_ms_batch32"]


@pytest.mark.parametrize(
    "student",
    [{"hidden_dim": 7}, {"decoder": "maxent"}, {"vocabulary": {"kind": "wordpiece", "size": 201}}],
    ids=str,
)
def test_another_shape_is_measured_anew(tmp_path, timed, student):
    storage = Storage(str(tmp_path))
    for asked in (recipe(), recipe(student=student)):
        measure_cost(storage.uri, student_run(asked, prepare(asked, storage)))
    assert len(timed) == 4
    assert len(storage.names("costs/")) == 2


def test_a_student_that_reads_characters_is_measured_with_them(tmp_path, timed):
    asked = recipe(student={"character_dim": 4, "character_hidden": 4})
    preparation = prepare(asked, Storage(str(tmp_path)))
    run = student_run(asked, preparation)
    plain = measure_cost(str(tmp_path), student_run(recipe(), prepare(recipe(), preparation.storage)))
    measured = measure_cost(str(tmp_path), run)
    assert measured["shape"]["characters"] > 0 == plain["shape"]["characters"]
    model = build_model(preparation.storage, run)
    assert measured["parameters"] == sum(p.numel() for p in model.parameters()) > plain["parameters"]


def test_a_teacher_that_reads_characters_is_measured_with_them(tmp_path, timed):
    preparation = prepare(recipe(), Storage(str(tmp_path)))
    measured = measure_cost(str(tmp_path), preparation.teachers[0].run)
    assert measured["shape"]["characters"] > 0
    vocabulary = open_vocabulary(preparation.storage, preparation.teachers[0].run.vocabulary_id)
    batch = synthetic_batch(3, vocabulary)
    assert batch.pieces_BP.shape == (3, 32)
    assert batch.characters_BTC is not None
    assert batch.characters_BTC.shape == (3, 24, 6)
    assert batch.first_BT[0].tolist() == sorted(set(batch.first_BT[0].tolist()))
