"""Models of the front in MLflow: all students are exported and logged once; failed exports are named."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from mlflow.artifacts import download_artifacts
from mlflow.tracking import MlflowClient

import raykd
from raykd.cli.sweep import _mlflow_hint
from raykd.errors import ExportError
from raykd.figures.trial import Trial
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.sweep import track
from raykd.sweep.records import Record, SweepRecords
from raykd.sweep.track import export_students, gains_of
from raykd.tasks import TASKS
from raykd.tracking.sweep_pages import Ending, Gain
from raykd.training.execute import execute_run
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs, with_seed_offset
from raykd.training.worker import Worker
from tests.scores import scores
from tests.sweep.in_process import code_of, without_ray
from tests.tracking.swept import Swept
from tests.training.small import recipe

SENTENCES = [["Ada", "Lovelace", "lives", "in", "London"], ["Berlin", "."]]


class Listener:
    """A listener recording all calls."""

    def __init__(self):
        self.lines = []

    def __getattr__(self, name):
        return lambda *words, **_: self.lines.append((name, *words))


def finished(store: Storage, scope: str) -> list[Run]:
    """The runs of one setting with two seeds, seed by seed."""
    student_recipe = recipe(objective={"kind": "gold"}, student={"scope": scope}, schedule={"epochs": 1})
    runs = student_runs(student_recipe, prepare(student_recipe, store))
    seeds = [with_seed_offset(run, offset) for offset in range(2) for run in runs]
    for run in seeds:
        execute_run(store.uri, run, worker=Worker(), report=lambda _: None)
    return seeds


@pytest.fixture
def database(empty_mlflow, tmp_path):
    return f"sqlite:///{shutil.copy(empty_mlflow, tmp_path)}"


def logged(store: Storage, runs: list[Run], database: str, listener: Listener, scratch: Path) -> list[Path]:
    """Log the front of one trial; return the folders of the downloaded models."""
    records = SweepRecords(store, "sweep")
    trial = Trial(3, "COMPLETE", run_ids=tuple(run.id for run in runs), scores=scores(0.5))
    if not records.exists():
        records.open(sweep_id="sweep-1", text="{}", resume=False)
        records.save(Record(trial, {}))
    swept = Swept(database, "sweep")
    swept.record(trial)
    card = lambda trial: lambda exported: f"{trial.number} {exported.run.id}"  # noqa: E731
    exports = export_students(records, swept.publisher, [trial], scratch, listener=listener, card=card)
    swept.pages.ending = Ending(frozenset({3}), ship=3, verdict="verdict", exports=exports)
    assert swept.close() == ()
    client = MlflowClient(database)
    models = client.search_logged_models([client.get_experiment_by_name("sweep").experiment_id])
    return [
        Path(download_artifacts(artifact_uri=model.artifact_location, tracking_uri=database))
        for model in models
    ]


def test_a_logged_model_is_the_export_of_the_first_seed_and_made_once(database, tmp_path):
    store, listener = Storage(str(tmp_path / "store")), Listener()
    runs = finished(store, "all")
    (folder,) = logged(store, runs, database, listener, tmp_path / "scratch")
    student = folder / "artifacts/student"
    expected = raykd.load(Path(store.uri).joinpath(*runs[0].folder)).label(SENTENCES)
    assert raykd.load(student).label(SENTENCES) == expected
    assert (student / "README.md").read_text() == f"3 {runs[0].id}"
    assert ("end", "models", "1 exported, 0 found in MLflow") in listener.lines
    (known_folder,) = logged(store, runs, database, listener, tmp_path / "again")
    assert known_folder == folder
    assert listener.lines[-1] == ("end", "models", "0 exported, 1 found in MLflow")
    assert not (tmp_path / "again").exists()


def test_one_student_for_each_language_is_one_model_with_a_folder_for_each(database, tmp_path):
    store = Storage(str(tmp_path / "store"))
    runs = finished(store, "language")
    assert len(runs) == 4
    (folder,) = logged(store, runs, database, Listener(), tmp_path / "scratch")
    student = folder / "artifacts/student"
    assert {path.name for path in student.iterdir()} == {"en", "de"}
    for language, run in zip(("en", "de"), runs, strict=False):
        model = raykd.load(Path(store.uri).joinpath(*run.folder))
        assert raykd.load(student / language).label(SENTENCES) == model.label(SENTENCES)


def test_what_cannot_be_exported_is_named_and_the_sweep_goes_on(database, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise ExportError("models that read frozen encoders have no ONNX graph")

    store, listener = Storage(str(tmp_path / "store")), Listener()
    monkeypatch.setattr(track, "_export", refused)
    run = Run("student", "ner", "corpus-0", "vocabulary-0", {}, (), {})
    assert logged(store, [run], database, listener, tmp_path / "scratch") == []
    assert any(
        name == "warn" and "is not logged as a model: models that" in words
        for name, words, *_ in listener.lines
    )


@pytest.mark.parametrize(("number", "models"), [(None, [0]), (0, [0]), (2, [0, 2])])
def test_the_student_to_ship_is_a_model_also_where_it_is_not_on_the_front(monkeypatch, number, models):
    file = SimpleNamespace(
        name="sweep",
        objectives={"f1": "max"},
        tracking=SimpleNamespace(models="front"),
        task_entry=TASKS["ner"],
    )
    trials = [
        Trial(0, "COMPLETE", objective="structural", scores=scores(0.5)),
        Trial(2, "COMPLETE", role="baseline", scores=scores(0.75)),
    ]
    ship = next((trial for trial in trials if trial.number == number), None)
    monkeypatch.setattr(
        track, "export_students",
        lambda records, publisher, front, scratch, **_: dict.fromkeys(trial.number for trial in front),
    )  # fmt: skip
    publisher: Any = MagicMock()
    track.publish_end(
        SimpleNamespace(file=file, records=None), publisher, trials, {}, "", Path(), listener=Listener(),  # type: ignore[arg-type]
        ship=ship, verdict="why",
    )  # fmt: skip
    ending = publisher.pages.ending
    assert list(ending.exports) == models
    assert (ending.front, ending.ship, ending.verdict) == ({0}, number, "why")


def test_the_gain_over_labels_alone_is_a_figure_of_each_trial():
    settings = {"student.hidden_dim": 4}
    trials = [
        Trial(0, "COMPLETE", settings, objective="structural", scores=scores(0.75, 0.5), steps=8),
        Trial(1, "FAILED", settings, objective="structural"),
        Trial(2, "COMPLETE", settings, role="baseline", scores=scores(0.5, 0.375), steps=8),
    ]
    assert gains_of(trials) == {0: Gain(2, {"over_gold": 0.25, "over_gold_test": 0.125})}


FILE = """\
name: again
corpus: {{source: builtin, languages: [en], train: 16, dev: 6, test: 6}}
teachers: {{kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}}
student: {{kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {{kind: wordpiece, size: 200}}}}
objective: {{kind: gold}}
schedule: {{epochs: 1}}
training: {{batch_tokens: 200}}
search: {{trials: 1}}
store: {folder}/store
tracking: {{uri: "{database}", models: none}}
"""


def test_a_sweep_that_ships_nothing_says_what_the_alias_names_still(database, tmp_path, capsys):
    client = MlflowClient(database)
    client.create_registered_model("again")
    client.create_model_version("again", str(tmp_path), tags={"trial": "#07 top_1"}, await_creation_for=0)
    client.set_registered_model_alias("again", "ship", "1")
    file = tmp_path / "again.yaml"
    file.write_text(FILE.format(folder=tmp_path, database=database))
    with without_ray():
        assert code_of("sweep", str(file)) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "do not ship" in output.lower()
    assert "MLflow: the alias ship of again still names version 1 (#07 top_1) of an earlier verdict" in output
    assert str(client.get_registered_model("again").aliases["ship"]) == "1"


def test_an_address_from_the_environment_is_looked_at_as_what_it_stands_for():
    for uri, hint in (
        ("http://me:word@host:1", "open LINK"),
        ("sqlite:///a.db", "mlflow ui --backend-store-uri ${MLFLOW}   and open LINK"),
    ):
        assert _mlflow_hint("${MLFLOW}", SimpleNamespace(uri=uri, link="LINK")) == hint
