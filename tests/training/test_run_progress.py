"""Progress reports of a run, within its epochs too, and is the same whether somebody listens or not."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from raykd.figures.results import RunResult
from raykd.progress import listen_to_progress
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.training.epoch_report import EpochReport
from raykd.training.execute import execute_run
from raykd.training.plan_length import PlanLength, StageLength
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs
from raykd.training.worker import Worker
from tests.training.small import recipe

Said = list[tuple[float | None, str]]


class KilledError(Exception):
    """The worker dies."""


def a_run(store: Storage) -> Run:
    """A student of three epochs of several batches."""
    run_recipe = recipe(
        objective={"kind": "gold"}, student={"scope": "all"}, schedule={"epochs": 3}, training={"batch_tokens": 40}
    )  # fmt: skip
    return student_runs(run_recipe, prepare(run_recipe, store))[0]


def done(
    folder: Path, *, dies_after: int | None = None, listened: bool = True
) -> tuple[RunResult | None, Said]:
    """The result of the run, None where its worker dies after so many epochs, and what was heard."""
    store, reports = Storage(str(folder)), Said()
    run = a_run(store)

    def report(epoch: EpochReport) -> None:
        if epoch.epoch + 1 == dies_after:
            raise KilledError

    with listen_to_progress((lambda share, doing: reports.append((share, doing))) if listened else None):
        try:
            return execute_run(store.uri, run, worker=Worker(), report=report), reports
        except KilledError:
            return None, reports


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[RunResult, Said]:
    result, reports = done(tmp_path_factory.mktemp("progress") / "whole")
    assert result is not None
    return result, reports


def test_it_is_said_before_every_batch(whole):
    result, reports = whole
    assert reports[0] == (None, "loading")
    shares = [share for share, _ in reports if share is not None]
    assert all(before <= after for before, after in pairwise(shares))
    assert shares[0] == 0.0
    assert 0.9 < shares[-1] <= 1.0
    first = {share for share, doing in reports if doing == "epoch 1/3"}
    assert len(first) == result.epochs[0]["steps"] > 3, "a share for each batch"
    # Training is 95 % of a run, an epoch a third of it.
    assert max(first) < 0.95 / 3
    doings = list(dict.fromkeys(doing for _, doing in reports))
    assert [doing for doing in doings if doing.startswith("epoch")] == [
        text for epoch in (1, 2, 3) for text in (f"epoch {epoch}/3", f"epoch {epoch}/3, scoring dev")
    ]
    assert doings[-2:] == ["scoring dev", "scoring test"]


def test_the_run_is_the_same_where_nobody_listens(whole, tmp_path):
    result, _ = whole
    unheard, reports = done(tmp_path, listened=False)
    assert reports == []
    assert unheard is not None
    assert (unheard.run_id, unheard.weights_sha256) == (result.run_id, result.weights_sha256)
    assert unheard.scores == result.scores


def test_a_run_that_goes_on_says_where(whole, tmp_path):
    stopped, _ = done(tmp_path, dies_after=2)
    assert stopped is None
    resumed, reports = done(tmp_path)
    assert resumed is not None
    trained = [share for share, doing in reports if doing.startswith("epoch") and share is not None]
    assert trained[0] == pytest.approx(0.95 * 2 / 3)
    assert resumed.weights_sha256 == whole[0].weights_sha256


@pytest.mark.parametrize(
    ("stages", "place", "share"),
    [
        ([StageLength(10, None)], (0, 0, 2.5, 900), 0.25),
        ([StageLength(None, 1000)], (0, 0, 3, 250), 0.25),
        ([StageLength(10, 1000)], (0, 0, 1, 500), 0.5),
        ([StageLength(None, None)], (0, 0, 3, 250), 0.0),
        ([StageLength(1, None), StageLength(3, None)], (1, 0, 1.5, 0), 0.625),
        ([StageLength(2, None, steps=2), StageLength(4, None)], (0, 1, 1, 0), 0.375),
        ([StageLength(None, None), StageLength(4, None)], (1, 0, 2, 0), 0.75),
        ([StageLength(2, None)], (0, 0, 3, 0), 1.0),
    ],
)
def test_the_share_of_a_plan(stages, place, share):
    assert PlanLength(tuple(stages)).share_done(*place) == pytest.approx(share)


def test_the_most_epochs_of_a_plan():
    assert PlanLength((StageLength(2, None, steps=3), StageLength(4, 10))).max_epochs == 10
    assert PlanLength((StageLength(2, None), StageLength(None, 10))).max_epochs is None
