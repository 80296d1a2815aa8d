"""Students in MLflow: models that it serves without raykd, versions in its registry, and the alias `ship`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow.artifacts import download_artifacts
from mlflow.tracking import MlflowClient

import raykd
from raykd.deploy.export import export_run
from raykd.figures.trial import Trial
from raykd.storage.store import Storage
from raykd.tracking import publisher
from raykd.tracking.registry import SET_BY_RAYKD, SHIP
from raykd.tracking.sweep_pages import Ending
from raykd.training.prepare import prepare
from tests.scores import scores
from tests.tracking.swept import Swept
from tests.tracking.test_publisher import Away, Lost
from tests.training.small import executed, recipe, student_of

LEARNS = {"batch_tokens": 60, "learning_rate": 2e-2, "dropout": 0.0}
TEXTS = ["Ada Lovelace lives in London.", "", "Berlin liegt an der Spree, sagt Anna Schmidt."]


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """An exported student."""
    folder = tmp_path_factory.mktemp("models")
    student_recipe = recipe(objective={"kind": "gold"}, schedule={"epochs": 6}, training=LEARNS)
    ready = prepare(student_recipe, Storage(str(folder / "store")))
    run = student_of(ready, student_recipe)
    executed(ready, run)
    export_run(ready.storage.child(*run.folder), Storage(str(folder / "student")), store=ready.storage)
    return folder / "student"


@pytest.fixture(scope="module")
def database(empty_mlflow, tmp_path_factory):
    return f"sqlite:///{shutil.copy(empty_mlflow, tmp_path_factory.mktemp('mlflow'))}"


@pytest.fixture
def client(database):
    return MlflowClient(database)


@pytest.fixture
def name(request):
    return request.node.name


def published(database, name, export, *, ship, why="the verdict", numbers=(1, 2), **more):
    """One driver's whole sweep, whose front are the trials `numbers`. Returns which of them it had to export."""
    swept = Swept(database, name, **more)
    swept.record(*map(done, numbers))
    missing = [
        number for number in numbers if not swept.publisher.published.has_model(swept.pages.trial_key(number))
    ]
    exports = {number: export if number in missing else None for number in numbers}
    swept.pages.ending = Ending(frozenset(numbers), ship=ship, verdict=why, exports=exports)
    assert swept.close() == ()
    return missing


def done(number):
    settings = {"student.decoder": "crf"}
    return Trial(number, "COMPLETE", settings, run_ids=(f"run-{number}",), scores=scores(0.5))


def logged(client, name):
    return client.search_logged_models([client.get_experiment_by_name(name).experiment_id])


def versions(client, name):
    """Version → trial."""
    versions = client.search_model_versions(f"name='{name}'")
    return {str(version.version): int(version.tags["raykd.trial"].split("/")[1]) for version in versions}


def shipped(client, name):
    return client.get_registered_model(name).aliases.get(SHIP)


def test_the_model_labels_as_raykd_does_in_a_process_without_raykd(database, client, name, export, tmp_path):
    published(database, name, export, ship=1, numbers=(1,))
    (model,) = logged(client, name)
    assert (model.name, str(model.status)) == ("student-01", "READY")
    folder = Path(download_artifacts(artifact_uri=model.artifact_location, tracking_uri=database))
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not [
        path
        for path in files
        if path.suffix in (".pkl", ".pickle") or b"\x80\x05\x95" in path.read_bytes()[:64]
    ]
    assert {path.name for path in (folder / "artifacts/student").iterdir()} == {
        path.name for path in export.iterdir()
    }
    meta = (folder / "MLmodel").read_text()
    assert model.model_id in meta
    assert str(Path(__file__).parents[2]) not in meta
    assert str(export) not in meta
    pinned = dict(line.split("==") for line in (folder / "requirements.txt").read_text().split())
    assert set(pinned) == {"numpy", "onnxruntime", "pandas", "mlflow"}

    code = """
import json, sys
sys.modules["raykd"] = None  # importing it fails
import mlflow, pandas
model = mlflow.pyfunc.load_model(sys.argv[1])
texts = json.loads(sys.argv[2])
by_frame, by_list = model.predict(pandas.DataFrame({"text": texts})), model.predict(texts)
assert by_frame == by_list
from mlflow.pyfunc.scoring_server import init
from starlette.testclient import TestClient
body = {"dataframe_split": {"columns": ["text"], "data": [[text] for text in texts]}}
answer = TestClient(init(model)).post("/invocations", json=body)
assert answer.json()["predictions"] == by_frame, answer.text
assert TestClient(init(model)).post("/invocations", json={"inputs": texts}).json()["predictions"] == by_frame
assert not [name for name in sys.modules if name.startswith(("torch", "raykd.", "transformers"))]
print(json.dumps(by_frame))
"""
    process = subprocess.run(
        [sys.executable, "-c", code, str(folder), json.dumps(TEXTS)], cwd=tmp_path, capture_output=True, text=True,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    served = json.loads(process.stdout.splitlines()[-1])
    expected = list(raykd.load(export)(TEXTS))
    assert [answer["text"] for answer in served] == TEXTS
    assert [
        [(span["label"], span["start"], span["end"]) for span in answer["spans"]] for answer in served
    ] == [[(span.label, span.start, span.end) for span in answer.spans] for answer in expected]
    assert [[word["label"] for word in answer["words"]] for answer in served] == [
        [word.label for word in answer.words] for answer in expected
    ]
    assert served[0]["words"][0]["probability"] == pytest.approx(expected[0].words[0].probability)


def test_students_of_single_languages_are_one_model_that_asks_for_the_language(export, tmp_path):
    from mlflow.pyfunc import load_model

    from raykd.tracking.student_models import save_model

    for language in ("de", "en"):
        shutil.copytree(export, tmp_path / "both" / language)
    save_model(tmp_path / "both", tmp_path / "model")
    model = load_model(str(tmp_path / "model"))
    rows = {"text": TEXTS, "language": ["en", "de", "de"]}
    assert [answer["text"] for answer in model.predict(rows_of(rows))] == TEXTS
    with pytest.raises(ValueError, match="no student for fr; languages are de, en"):
        model.predict(rows_of(rows | {"language": ["en", "fr", "de"]}))
    with pytest.raises(Exception, match="language"):
        model.predict(rows_of({"text": TEXTS}))


def rows_of(columns):
    import pandas

    return pandas.DataFrame(columns)


def test_each_student_is_logged_and_registered_once(database, client, name, export):
    assert published(database, name, export, ship=1) == [1, 2]
    assert published(database, name, export, ship=1, numbers=(1, 2, 3)) == [3]
    models = logged(client, name)
    assert sorted(model.name for model in models) == ["student-01", "student-02", "student-03"]
    assert all({metric.key: metric.value for metric in model.metrics}["dev_f1"] == 0.5 for model in models)
    assert sorted(versions(client, name).values()) == [1, 2, 3]
    version = client.get_model_version_by_alias(name, SHIP)
    assert (version.tags["run_id"], version.tags["dev_f1"]) == ("run-1", "0.5")
    assert version.tags["trial"].startswith("#01")
    run = client.get_run(version.run_id)
    assert [output.model_id for output in run.outputs.model_outputs] == [
        model.model_id for model in models if model.name == "student-01"
    ]
    assert client.get_registered_model(name).tags["ship"] == "the verdict"


def test_the_alias_follows_the_verdict_until_a_person_sets_it(database, client, name, export):
    warnings = []
    published(database, name, export, ship=1)
    published(database, name, export, ship=2, why="the best dev F1")
    by_trial = {trial: version for version, trial in versions(client, name).items()}
    assert str(shipped(client, name)) == by_trial[2]
    assert client.get_registered_model(name).tags["ship"] == "the best dev F1"

    client.set_registered_model_alias(name, SHIP, by_trial[1])
    published(database, name, export, ship=2, warn=warnings.append)
    assert str(shipped(client, name)) == by_trial[1], "a person's choice stays"
    assert f"the alias ship of {name} was set to version {by_trial[1]} by hand" in warnings[-1]

    client.delete_registered_model_alias(name, SHIP)
    published(database, name, export, ship=2, warn=warnings.append)
    assert shipped(client, name) is None
    assert "was removed by hand" in warnings[-1]
    client.delete_registered_model_tag(name, SET_BY_RAYKD)
    published(database, name, export, ship=2)
    assert str(shipped(client, name)) == by_trial[2], "removing the tag gives the alias back"


@pytest.mark.parametrize("after", range(0, 16, 3))
def test_what_a_dead_server_missed_of_models_is_written_later_and_once(
    database, client, name, export, after, monkeypatch
):
    """However many calls still arrive before the server is away."""
    monkeypatch.setattr(publisher, "LAST_S", 0.0)
    first = Swept(database, name)
    first.shown.client = link = Away(first.shown.client)
    first.record(done(1))
    assert first.publish() == ()
    link.away, link.after = True, after
    first.pages.ending = Ending(frozenset({1}), ship=1, verdict="the verdict", exports={1: export})
    first.close()  # the driver is gone as well
    published(database, name, export, ship=1, numbers=(1,))
    assert [str(model.status) for model in logged(client, name)] == ["READY"]
    assert list(versions(client, name).values()) == [1]
    assert shipped(client, name) == 1 or str(shipped(client, name)) == "1"


@pytest.mark.parametrize(
    "calls", [("create_logged_model",), ("create_logged_model", "finalize_logged_model")]
)
def test_a_model_whose_answer_was_lost_is_logged_once(database, client, name, export, calls):
    swept = Swept(database, name)
    swept.shown.client = Lost(swept.shown.client, *calls)
    swept.record(done(1))
    swept.pages.ending = Ending(frozenset({1}), ship=1, verdict="the verdict", exports={1: export})
    for _ in calls:
        assert swept.publish() != ()
    assert swept.close() == ()
    assert [str(model.status) for model in logged(client, name)] == ["READY"]
    assert list(versions(client, name).values()) == [1]


def test_of_several_models_of_a_student_the_one_that_is_ready_counts(database, client, name, export):
    """Those of an earlier raykd, which began another one when an answer was lost."""
    published(database, name, export, ship=1, numbers=(1,))
    (ready,) = logged(client, name)
    experiment = client.get_experiment_by_name(name).experiment_id
    for _ in range(2):
        client.create_logged_model(
            experiment, name="student-01", source_run_id=ready.source_run_id, tags=ready.tags
        )
    assert published(database, name, export, ship=1, numbers=(1,)) == []
    assert list(versions(client, name).values()) == [1]


def test_what_the_alias_names_is_told(database, name, export):
    published(database, name, export, ship=None, numbers=(1,))
    swept = Swept(database, name)
    assert swept.publisher.shipped_version() == ""
    published(database, name, export, ship=1, numbers=(1,))
    assert swept.publisher.shipped_version().startswith("version 1 (#01")
    swept.shown.client = link = Away(swept.shown.client)
    link.away = True
    assert swept.publisher.shipped_version() == ""
    link.away = False
    swept.close()
