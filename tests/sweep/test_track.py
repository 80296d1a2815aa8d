"""What is logged to MLflow as a model is a folder that `raykd.load` reads, wherever it is downloaded to."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow.artifacts import download_artifacts
from mlflow.tracking import MlflowClient

import raykd
from raykd.errors import StoreError
from raykd.runs.distil import Worker
from raykd.runs.execute import execute
from raykd.runs.prepare import prepare, student_runs, with_seed
from raykd.runs.run import Run
from raykd.storage import Storage
from raykd.sweep.track import model_files
from raykd.tracking import Tracker
from raykd.trial import Trial
from tests.runs.small import recipe

SENTENCES = [["Ada", "Lovelace", "lives", "in", "London"], ["Berlin", "."]]


def finished(store: Storage, scope: str) -> list[Run]:
    """The runs of one setting with two seeds, seed by seed."""
    asked = recipe(objective={"kind": "gold"}, student={"scope": scope}, schedule={"epochs": 1})
    runs = student_runs(asked, prepare(asked, store))
    seeds = [with_seed(run, offset) for offset in range(2) for run in runs]
    for run in seeds:
        execute(store.uri, run, worker=Worker(), report=lambda _: None)
    return seeds


def logged(folder: Path, uri: str) -> Path:
    """What is downloaded of a model that was logged."""
    called = {"score_name": "f1", "score_label": "F1", "flush_seconds": None}
    tracker = Tracker.open(uri, sweep="sweep", sweep_id="sweep-1", **called)
    tracker.finish_trial(Trial(3, "COMPLETE", {"student.decoder": "crf"}))
    tracker.log_model(3, folder)
    assert tracker.close() == ()
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("sweep")
    (model,) = client.search_logged_models([experiment.experiment_id])
    return Path(download_artifacts(artifact_uri=model.artifact_location, tracking_uri=uri))


def test_a_logged_model_is_the_folder_of_the_first_seed(tmp_path):
    store = Storage(str(tmp_path / "store"))
    runs = finished(store, "all")
    folder = model_files(
        store, Trial(3, "COMPLETE", run_ids=tuple(run.id for run in runs)), tmp_path / "copy"
    )
    own = Path(store.uri).joinpath(*runs[0].folder)
    assert {f.name: f.read_bytes() for f in folder.iterdir()} == {
        f.name: f.read_bytes() for f in own.iterdir()
    }
    expected = raykd.load(own).label(SENTENCES)
    (tmp_path / "store").rename(tmp_path / "gone")
    assert raykd.load(logged(folder, f"sqlite:///{tmp_path}/mlflow.db")).label(SENTENCES) == expected


def test_one_student_for_each_language_is_one_folder_for_each(tmp_path):
    store = Storage(str(tmp_path / "store"))
    runs = finished(store, "language")
    assert len(runs) == 4
    folder = model_files(
        store, Trial(3, "COMPLETE", run_ids=tuple(run.id for run in runs)), tmp_path / "copy"
    )
    assert {each.name for each in folder.iterdir()} == {"en", "de"}
    for language, run in zip(("en", "de"), runs, strict=False):
        own = raykd.load(Path(store.uri).joinpath(*run.folder))
        assert raykd.load(folder / language).label(SENTENCES) == own.label(SENTENCES)
    with pytest.raises(StoreError, match="load a folder below it: de, en"):
        raykd.load(folder)
