"""Damage to stored files: one byte of every kind of file is flipped.

A sweep refuses the file, the doctor finds and repairs it, and a resumed sweep ends as the undisturbed one.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import time
from pathlib import Path

import psutil
import pytest
import torch

from raykd.errors import StoreError
from raykd.storage.layout import CHECKPOINT
from raykd.storage.store import Storage
from raykd.sweep.doctor import KINDS, examine_store, repair_store
from raykd.sweep.lease import hold_lease
from raykd.sweep.records import SweepRecords
from tests.long import mostly_slow
from tests.sweep.in_process import code_of, without_ray

TEXT = """\
name: doctored
corpus: {source: builtin, languages: [en, de], train: 16, dev: 6, test: 6, unlabelled: 4}
teachers:
  {kind: bilstm_crf, scope: language, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {kind: wordpiece, size: 200}}
objective: {choice: [{kind: structural}, {kind: top_wk, k: 2}]}
schedule: {epochs: 1, anneal_horizon: 2}
training: {batch_tokens: 200}
search: {sampler: grid}
teachers_must_learn: false
baseline: gold
"""
READ = (
    "corpora/*/corpus.json",
    "corpora/sources/*.json",
    "corpora/*/train.arrow",
    "corpora/*/dev.arrow",
    "vocabularies/*.json",
    "encoded/*/encoded.json",
    "encoded/*/block-*.arrow",
    "teachers/*/result.json",
    "transfer/emissions-*/manifest.json",
    "transfer/emissions-*/shard-*.arrow",
    "transfer/kbest-*/k*/shard-*.arrow",
    "transfer/transitions-*/shard-*.arrow",
    "costs/*.json",
    "sweeps/doctored/sweep.json",
    "sweeps/doctored/trials/00001.json",
)
"""Files read again by a sweep with students to train again."""
KEPT = (
    "teachers/*/model.safetensors",
    "teachers/*/labels.json",
    "teachers/*/model.json",
    "transfer/text-*/text.arrow",
    "transfer/text-*/hashes.bin",
    "runs/*/model.safetensors",
    "runs/*/vocabulary.json",
    "runs/*/model.json",
    "runs/*/result.json",
    "sweeps/doctored/teachers.json",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, empty_mlflow) -> Path:
    """A folder with an ended sweep."""
    folder = tmp_path_factory.mktemp("doctor")
    (folder / "sweep.yaml").write_text(TEXT)
    shutil.copy(empty_mlflow, folder / "mlflow.db")
    with without_ray():
        assert raykd(folder, "sweep") == 0
    return folder


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    """A copy of `whole`."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def raykd(folder: Path, verb: str, *words: str) -> int:
    """A verb of raykd on the sweep in `folder`, or on its store; gives the exit code."""
    on = [str(folder / "store")] if verb == "doctor" else [
        str(folder / "sweep.yaml"), "--set", f"store={folder / 'store'}", "--set",
        f"tracking.uri=sqlite:///{folder / 'mlflow.db'}",
    ]  # fmt: skip
    return code_of(verb, *on, *words)


def scores(folder: Path) -> dict:
    """The final state and score of all trials, by their runs."""
    records = SweepRecords(Storage(str(folder / "store")), "doctored").load()
    return {trial.run_ids: (trial.state, trial.role, trial.scores) for trial in (r.trial for r in records)}


def flip(folder: Path, pattern: str) -> Path:
    """Flip one bit of the first file with the pattern.

    In text the bit is one of a number's last digit, so that it stays a number; in an Arrow file, of a value.
    """
    return flipped(min((folder / "store").glob(pattern)))


def flipped(path: Path) -> Path:
    """Flip one bit of the file."""
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    digits = [chr(byte).isdigit() for byte in data[middle:]] + [False]
    last = (place for place in range(len(data) - middle) if digits[place] and not digits[place + 1])
    place = middle + next(last, 0)
    data[place] ^= 1
    path.write_bytes(data)
    return path


def forgotten(folder: Path) -> None:
    """Students are to be trained again: their results are gone, and their trials ran."""
    storage = Storage(str(folder / "store"))
    for name in storage.names("runs/"):
        if name.endswith("/result.json"):
            storage.remove(name)
    for name in storage.names("sweeps/doctored/trials/"):
        if not name.endswith("1.json"):
            storage.remove(name)


@pytest.mark.parametrize("pattern", mostly_slow(READ, quick=READ[:2]))
def test_a_sweep_refuses_what_is_damaged_by_name(folder, capsys, pattern):
    # Of text that is encoded for teachers and for students the latter is read again.
    paths = [flipped(path) for path in (folder / "store").glob(pattern)]
    forgotten(folder)
    with without_ray():
        code = raykd(folder, "sweep", "--resume")
    printed = capsys.readouterr()
    assert code == StoreError.exit_code, printed
    assert any(str(path) in printed.err for path in paths)
    assert "damaged" in printed.err
    assert "Traceback" not in printed.err


@pytest.mark.parametrize("pattern", mostly_slow([*READ, *KEPT], quick=[READ[9], KEPT[0]]))
def test_the_doctor_repairs_and_a_resumed_sweep_ends_as_the_undisturbed_one(whole, folder, capsys, pattern):
    name = str(flip(folder, pattern).relative_to(folder / "store"))
    assert raykd(folder, "doctor") == StoreError.exit_code
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if ": " in line and name.startswith(line.split(": ")[0])]
    assert "checksum" in line or "it has no sha256" in line
    assert lines[-1].startswith("Next: raykd doctor")
    assert name in {
        file for damage in examine_store(Storage(str(folder / "store"))).damages for file in damage.remove
    }
    assert raykd(folder, "doctor", "--repair") == 0
    assert raykd(folder, "doctor") == 0
    with without_ray():
        assert raykd(folder, "sweep", "--resume") == 0, capsys.readouterr().err
    assert scores(folder) == scores(whole)
    assert raykd(folder, "doctor") == 0


def test_every_kind_of_file_is_flipped_in_these_tests(whole):
    flipped = {pattern.split("/")[0] for pattern in (*READ, *KEPT)}
    # tests/training/test_contextual.py, test_embeddings.py, test_parsers.py, test_answer_reader.py and
    # test_cut_students.py
    elsewhere = {"encoders", "embeddings", "labels", "answers", "importance"}
    flipped |= elsewhere
    stored = elsewhere | {path.name for path in (whole / "store").iterdir()}
    assert flipped == stored == set(KINDS)


def test_what_another_version_wrote_is_told_from_damage_and_never_removed(folder, capsys):
    store = Storage(str(folder / "store"))
    run = sorted(path.name for path in (folder / "store/runs").iterdir())[0]
    new_name = f"run-{'0' * 16}"
    (folder / "store/runs" / run).rename(folder / "store/runs" / new_name)  # as that version called it
    trial = store.read_json("sweeps/doctored/trials/00001.json")
    store.write_json("sweeps/doctored/trials/00001.json", {**trial, "trial": {**trial["trial"], "shoe": 43}})
    note = next((folder / "store/vocabularies").iterdir())
    note.write_text('{"kind": "words"}')  # before there were checksums
    names = {f"runs/{new_name}/model.json", "sweeps/doctored/trials/00001.json", f"vocabularies/{note.name}"}
    examination = examine_store(store)
    assert {damage.name for damage in examination.other_version} == names
    assert examination.damages == ()
    damaged = str(flip(folder, "costs/*.json").relative_to(folder / "store"))
    before = set(store.names())
    capsys.readouterr()
    assert code_of("doctor", str(folder / "store"), "--repair") in (0, StoreError.exit_code)
    output = " ".join(capsys.readouterr().out.split())
    for name in names:
        assert f"{name}: is of another version of raykd, or was" in output
    assert "doctor: 1 damaged of" in output
    assert "3 of another version, which stay: use the raykd that wrote it" in output
    assert before - set(store.names()) == {damaged}


def test_an_undamaged_store_is_left_as_it_is(folder, capsys):
    def state() -> dict[str, tuple[int, int]]:
        files = (path for path in (folder / "store").rglob("*") if path.is_file())
        return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}

    before = state()
    assert raykd(folder, "doctor", "--repair") == 0
    assert "doctor: 0 damaged of" in capsys.readouterr().out
    assert state() == before


def test_old_temporary_files_are_removed_and_young_ones_stay(folder):
    store = folder / "store"
    old, young = (store / "runs" / f".model.json.{name}.tmp" for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"123")
    os.utime(old, (time.time() - 7200,) * 2)
    examination = examine_store(Storage(str(store)))
    assert examination.temporary_files == {f"runs/{old.name}": 3}
    repair_store(Storage(str(store)), examination)
    assert not old.exists()
    assert young.exists()


def test_a_damaged_lease_is_repaired_and_one_that_is_held_is_not_passed_over(folder, capsys):
    path = folder / "store/sweeps/doctored/lease.json"
    path.write_text("{")
    assert raykd(folder, "doctor") == StoreError.exit_code
    assert raykd(folder, "doctor", "--repair") == 0
    assert not path.exists()
    with hold_lease(Storage(str(path.parent))):
        flip(folder, "costs/*.json")
        lease = Storage(str(path.parent))
        holds = {**lease.read_json("lease.json"), "process": os.getppid(), "started": parent()}
        lease.write_json("lease.json", holds)
        capsys.readouterr()
        assert raykd(folder, "doctor", "--repair") == StoreError.exit_code
        assert "works on this sweep" in capsys.readouterr().err


def parent() -> float:
    """The start of the parent process, in seconds since the epoch."""
    return psutil.Process(os.getppid()).create_time()


@pytest.mark.parametrize("progress", [{"shoe": 43}, None, "not pickled"])
def test_a_checkpoint_of_another_version_is_one_sentence_and_stays(folder, capsys, progress):
    run = min((folder / "store/runs").iterdir())
    buffer = io.BytesIO()
    torch.save({"progress": progress}, buffer)
    state = b"not what PyTorch writes" if progress == "not pickled" else buffer.getvalue()
    (run / CHECKPOINT).write_bytes(hashlib.sha256(state).digest() + state)
    assert raykd(folder, "doctor", "--repair") == 0
    message = f"runs/{run.name}/{CHECKPOINT}: the checkpoint is of another version of raykd or of PyTorch"
    assert message in " ".join(capsys.readouterr().out.split())
    assert (run / CHECKPOINT).exists()


def test_a_folder_that_does_not_exist_is_refused(tmp_path, capsys):
    assert raykd(tmp_path, "doctor") == StoreError.exit_code
    assert "there is no such folder" in capsys.readouterr().err
