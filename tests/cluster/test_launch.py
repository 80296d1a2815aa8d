"""A run is launched, and the driver hears meanwhile how far it is."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace

from raykd.cluster import progress_channel
from raykd.cluster.launch import Launcher
from raykd.recipes.resources import Resources
from raykd.storage.store import Storage
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs
from tests.training.small import recipe

PATIENCE_S = 60.0


def test_a_run_of_one_worker_reports_by_its_id_before_its_first_epoch_ends(tmp_path, monkeypatch):
    store, sent, heard = Storage(str(tmp_path)), list[tuple[str, list]](), threading.Event()

    def put(key: str, text: str) -> None:
        sent.append((key, json.loads(text)))
        heard.set()

    context = SimpleNamespace(get_job_id=lambda: "job", get_worker_id=lambda: "worker")
    monkeypatch.setattr(progress_channel.ray, "is_initialized", lambda: True)
    monkeypatch.setattr(progress_channel.ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(progress_channel, "_put", put)
    student_recipe = recipe(objective={"kind": "gold"}, student={"scope": "all"}, schedule={"epochs": 1})
    (run,) = student_runs(student_recipe, prepare(student_recipe, store))
    epochs: list[dict] = []

    def report(epoch: dict) -> None:
        epochs.append(epoch)
        assert heard.wait(PATIENCE_S)

    result = Launcher().launch(store.uri, run, Resources(), report)
    assert (result.run_id, len(epochs)) == (run.id, 1)
    key, (part, share, _, first) = sent[0]
    assert (key, part, first) == ("job/worker", run.id, 0.0)
    assert share is None or 0 <= share <= 1
