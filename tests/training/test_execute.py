"""A run's result in the store as seen by a second process."""

from __future__ import annotations

import pytest

from raykd.storage.layout import RESULT
from raykd.storage.store import Storage
from raykd.training import execute, node_check
from tests.sweep.samples import result_of, run_of

SETTING = {"student": {"embedding_dim": 8}, "objective": {"kind": "gold"}, "schedule": {"epochs": 1}}


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(node_check, "PAUSE_S", 0.0)
    return run_of(SETTING)


def test_a_result_stands_when_its_file_is_there(run, tmp_path):
    store = Storage(str(tmp_path))
    assert not execute.result_is_visible(store, run)
    assert not store.names(), "nothing is left of the question"
    store.child(*run.folder).write_json(RESULT, result_of(run, 0.5).to_plain())
    assert execute.result_is_visible(store, run)


def test_a_network_folder_shows_a_result_once_it_is_written_into(run, tmp_path, monkeypatch):
    store, written = Storage(str(tmp_path)), []
    folder = store.child(*run.folder)
    folder.write_json(RESULT, result_of(run, 0.5).to_plain())
    exists, write = Storage.exists, Storage.write
    monkeypatch.setattr(Storage, "exists", lambda storage, name: bool(written) and exists(storage, name))
    monkeypatch.setattr(
        Storage, "write", lambda storage, name, data: (written.append(name), write(storage, name, data))
    )
    assert execute.result_is_visible(store, run)
    assert folder.names() == [RESULT]
