"""What the driver says beside what it does; whole sweeps run in the end-to-end tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from raykd.runs import cost
from raykd.runs.cost import measure_cost
from raykd.runs.distil import Worker
from raykd.runs.execute import execute, find_result
from raykd.runs.progress import Silent
from raykd.spec import load
from raykd.sweep import driver
from raykd.sweep.driver import Sweep, tell_text_left_out, train_teachers
from tests.runs.small import recipe

ENSEMBLE = """\
name: ensemble
corpus: {source: builtin, languages: [en, de], train: 16, dev: 6, test: 6}
teachers: {kind: bilstm_crf, count: 2, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6}
objective: {kind: structural}
"""


@pytest.mark.parametrize(
    ("kinds", "baseline", "rows", "told"),
    [
        (["structural", "top_1"], "none", 20, False),
        (["structural", "top_1"], "gold", 20, True),
        (["gold", "structural"], "none", 20, True),
        (["gold", "structural"], "gold", 0, False),
    ],
)
def test_it_is_said_that_gold_hears_no_unlabelled_text(kinds, baseline, rows, told):
    parts = {"unlabelled": SimpleNamespace(num_rows=rows)}
    variants = [recipe(objective={"kind": kind}) for kind in kinds]
    sweep: Any = SimpleNamespace(
        preparation=SimpleNamespace(corpus=SimpleNamespace(parts=parts)),
        variants=variants,
        file=SimpleNamespace(baseline=baseline),
    )
    notes: list[str] = []
    listener: Any = SimpleNamespace(note=notes.append)
    tell_text_left_out(sweep, listener)
    assert notes == ["gold is trained without the 20 unlabelled sentences; other objectives hear them"] * told


@pytest.fixture
def ensemble(tmp_path, monkeypatch):
    """A sweep whose teachers are the mean of two seeds each, and the runs that were done, in their order."""
    done = []

    def work(scheduler, *, store_uri, resources, concurrent):
        while (job := scheduler.next()) is not None:
            results = [execute(store_uri, run, worker=Worker(), report=lambda _: None) for run in job.runs]
            done.extend(job.runs)
            scheduler.ended(job.key, results, None)

    monkeypatch.setattr(driver, "work", work)
    monkeypatch.setattr(cost, "time_batches", lambda model, batch: (1.0, 2.0))
    (tmp_path / "sweep.yaml").write_text(ENSEMBLE)
    return Sweep(load(tmp_path / "sweep.yaml", [f"store={tmp_path}/store"])), done


def test_an_ensemble_is_evaluated_once_its_members_stand(ensemble):
    sweep, done = ensemble
    train_teachers(sweep, 1, Silent())
    assert [run.id for run in done] == [run.id for _, run in [*sweep.members, *sweep.teachers]]
    assert [name for name, _ in sweep.members[:2]] == ["bilstm_crf en seed 0", "bilstm_crf en seed 1"]
    assert [bool(run.members) for run in done] == [False] * 4 + [True] * 2
    train_teachers(sweep, 1, Silent())
    assert len(done) == 6


def test_an_ensembles_row_has_its_own_scores_above_those_of_its_members(ensemble):
    sweep, _ = ensemble
    train_teachers(sweep, 1, Silent())
    for _, run in sweep.teachers:
        measure_cost(sweep.storage.uri, run)
    row = driver._teacher_row(sweep)
    assert row.name == "bilstm_crf (mean of 2) × 2"
    assert [member.name for member in row.members] == ["bilstm_crf seed 0 × 2", "bilstm_crf seed 1 × 2"]
    for name, run in sweep.teachers:
        result = find_result(sweep.storage, run)
        assert result is not None
        assert row.test_f1_by_language[name[-2:]] == result["test"]["mean"]
    assert row.parameters == sum(
        (find_result(sweep.storage, run) or {})["parameters"] for _, run in sweep.members
    )
