"""Runs with signals larger than a window: the same plan for all, resumed bit by bit, and no thread is left."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from raykd.corpora.batching import plan_batches
from raykd.errors import StoreError
from raykd.precompute.plan import precompute
from raykd.precompute.transfer import transfer_plan
from raykd.recipes.signal_needs import stored_needs
from raykd.storage.store import Storage
from raykd.training.data import training_data
from raykd.training.execute import training_plan
from raykd.training.prepare import prepare
from raykd.training.worker import Worker
from raykd.transfer import windows
from tests.training.loops import distiller, first_batches, opened, same, weights_of, without_times
from tests.training.small import recipe, student_of, train_teachers
from tests.training.test_resume import interrupted
from tests.transfer.samples import here

ASKED = recipe(objective={"kind": "posterior"}, training={"batch_tokens": 120})
SAMPLED = recipe(
    objective={"kind": "posterior"}, training={"batch_tokens": 120}, corpus={"sampling_alpha": 0.3}
)


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    """The small recipe, each teacher's signals in shards of 9 sentences."""
    preparation = prepare(ASKED, Storage(str(tmp_path_factory.mktemp("sharded") / "store")))
    train_teachers(preparation)
    needs = stored_needs([ASKED], unlabelled=preparation.unlabelled)
    plan = transfer_plan(preparation.storage, [(teacher, needs) for teacher in preparation.teachers])
    precompute(replace(plan, shard_sentences=9), launch=here)
    return preparation


@pytest.fixture
def _tiny(monkeypatch):
    monkeypatch.setattr(windows, "WINDOW_BYTES", 16_000)


def background() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("raykd-prefetch")]


def units_of(loop, rows: np.ndarray) -> set[int]:
    transfer = loop.data.transfer
    return set(transfer._units.unit_of_rows(*transfer._locate_rows(rows)).tolist())


def test_where_all_fits_the_plan_is_that_of_the_text_alone(sharded):
    run = student_of(sharded, ASKED)
    loop = opened(distiller(sharded.storage, run))
    lengths, rows = loop.data.part.text.piece_lengths, loop.data.rows
    expected = plan_batches(lengths[rows], batch_tokens=120, seed=run.training["seed"], epoch=1)
    assert [batch.tolist() for batch in loop._batches(1)] == [rows[batch].tolist() for batch in expected]


@pytest.mark.usefixtures("_tiny")
@pytest.mark.parametrize("asked", [ASKED, SAMPLED], ids=["whole", "sampled"])
def test_every_row_of_an_epoch_once_window_by_window(sharded, asked):
    loops = [
        opened(distiller(sharded.storage, student_of(sharded, asked), worker=Worker(rank, 2)))
        for rank in (0, 1)
    ]
    plans = [loop._batches(0) for loop in loops]
    assert all(map(np.array_equal, *plans))
    assert sorted(np.concatenate(plans[0])) == sorted(loops[0]._sample_rows(0))
    # The units of a batch are in no window before: once a unit is left, it does not come back.
    units = [units_of(loops[0], batch) for batch in plans[0]]
    spans = [
        (min(places), max(places))
        for places in (
            [n for n, unit_rows in enumerate(units) if unit in unit_rows] for unit in set().union(*units)
        )
    ]
    assert max(last - first for first, last in spans) < len(plans[0]) / 2
    assert any(
        loops[0].data.part.languages[batch].tolist().count("en") not in (0, len(batch)) for batch in plans[0]
    )


@pytest.mark.usefixtures("_tiny")
def test_an_interrupted_run_ends_as_an_undisturbed_one_and_leaves_no_thread(sharded, tmp_path):
    stage = {"objective": {"kind": "posterior"}, "select": "loss", "held_out": 0.2, "schedule": {"epochs": 2}}
    run = student_of(sharded, stages=(stage,), training={"batch_tokens": 120})
    plan = replace(training_plan(sharded.storage.uri, run), checkpoint_steps=3)

    def loop(folder: str):
        return distiller(sharded.storage, run, folder=f"{tmp_path.name}/{folder}", plan=plan)

    assert len(first_batches(loop("plan"))) > 8
    undisturbed = loop("undisturbed")
    history = undisturbed.train(lambda _: None).history
    for moment in ({"step": 7}, {"epoch": 0}):
        assert interrupted(loop("resumed"), **moment)
        assert background() == []
    resumed = loop("resumed")
    assert without_times(resumed.train(lambda _: None).history) == without_times(history)
    assert same(weights_of(resumed.model), weights_of(undisturbed.model))
    assert background() == []


@pytest.mark.usefixtures("_tiny")
def test_a_shard_that_is_damaged_ends_a_run_in_its_middle(sharded, tmp_path):
    run = student_of(sharded, ASKED)
    first = first_batches(distiller(sharded.storage, run))
    data = training_data(sharded.storage.uri, run, ASKED.objective.needs, text="all")
    transfer = data.transfer
    (last,) = transfer._units.unit_of_rows(*transfer._locate_rows(first[-1][:1]))
    teacher, need, number = transfer._units.shards(int(last))[0]
    store = transfer._stores[teacher][need]
    name = store.manifest.shards[number].name
    whole = store.folder.read(name)
    store.folder.write(name, whole[:-300] + bytes([whole[-300] ^ 1]) + whole[-299:])
    loop = distiller(sharded.storage, run, folder=tmp_path.name)
    try:
        with pytest.raises(StoreError, match=f"{name}: the shard is damaged"):
            loop.train(lambda _: None)
    finally:
        store.folder.write(name, whole)
    assert loop.progress.batch > 3
    assert background() == []
