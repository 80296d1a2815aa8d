"""Exported models in the labeller: labels as in raykd, from words and from text, in an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import raykd
from raykd.deploy.export import export_run
from raykd.metrics.bioes import read_spans
from raykd.serving.labeller import INT8, Labelled, LabellerError, load, session
from raykd.storage.store import Storage
from raykd.training.prepare import prepare
from tests.teachers.checkpoints import make_checkpoint
from tests.training.small import executed, recipe, student_of, train_teachers

ROOT = Path(__file__).parents[2]
LEARNS = {"batch_tokens": 60, "learning_rate": 2e-2, "dropout": 0.0}
TEXTS = (
    "Ada Lovelace lives in London.", "", "  ", "Zoë ist in Unbekannt¿ Berlin", "London", "¿", "New York, New York!",
)  # fmt: skip


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """Name → (the folder of a run, of its export, sentences of its test)."""
    folder = tmp_path_factory.mktemp("exports")
    config = recipe(objective={"kind": "gold"}, schedule={"epochs": 8}, training=LEARNS)
    ready = prepare(config, Storage(str(folder / "store")))
    train_teachers(ready)
    checkpoint = {"kind": "hf_token_classifier", "path": make_checkpoint(folder / "checkpoint", longest=64)}
    fine = recipe(
        teachers={**checkpoint, "fine_tune": True, "vocabulary": "pruned", "training": {"batch_tokens": 200}}
    )
    tuned = prepare(fine, Storage(str(folder / "store")))
    train_teachers(tuned)
    decoders = {
        "crf": {},
        "maxent": {"decoder": "maxent"},
        "words": {"vocabulary": {"kind": "word"}, "character_dim": 4},
    }
    runs = {"teacher": ready.teachers[0].run, "checkpoint": tuned.teachers[0].run}
    for name, student in decoders.items():
        runs[name] = student_of(ready, recipe(objective={"kind": "gold"}, training=LEARNS, student=student))
        executed(ready, runs[name])
    sentences = ready.corpus.parts["test"]["tokens"].to_pylist()
    for name, run in runs.items():
        export_run(ready.storage.child(*run.folder), Storage(str(folder / name)), store=ready.storage)
    return {
        name: (ready.storage.child(*run.folder).uri, folder / name, sentences) for name, run in runs.items()
    }


MODELS = ("teacher", "checkpoint", "crf", "maxent", "words")


@pytest.mark.parametrize("name", MODELS)
def test_labels_are_those_that_raykd_gives(exports, name):
    run, folder, sentences = exports[name]
    expected = raykd.load(run).label(sentences)
    label = raykd.load(folder)
    assert json.loads((folder / "export.json").read_text())["tokenizer"] == "own"
    for batch in (1, 5, 32):
        assert label.label(sentences, batch=batch) == expected
    rounded = load(folder, file=INT8).label(sentences)
    assert [len(labels) for labels in rounded] == [len(labels) for labels in expected]


@pytest.mark.parametrize("name", MODELS)
def test_text_is_read_in_its_order_with_offsets_and_probabilities(exports, name):
    run, folder, _ = exports[name]
    label, tagger = load(folder), raykd.load(run)
    actual = list(label(iter(TEXTS * 50), batch=2))
    assert [labelled.text for labelled in actual] == list(TEXTS * 50)
    assert actual[1] == Labelled("")
    assert actual[: len(TEXTS)] == [label(text) for text in TEXTS]
    for labelled in actual[: len(TEXTS)]:
        words = [word.text for word in labelled.words]
        labels = [word.label for word in labelled.words]
        assert [labelled.text[word.start : word.end] for word in labelled.words] == words
        assert labels == (tagger.label([words])[0] if words else [])
        assert all(0 < word.probability <= 1 for word in labelled.words)
        spans = [
            (labelled.words[a].start, labelled.words[b - 1].end, kind) for a, b, kind in read_spans(labels)
        ]
        assert [(span.start, span.end, span.label) for span in labelled.spans] == spans
        for span in labelled.spans:
            assert span.text == labelled.text[span.start : span.end]
            inside = [word.probability for word in labelled.words if span.start <= word.start < span.end]
            assert 0 < span.probability <= min(inside) + 1e-9


def test_sentences_of_any_length_are_labelled(exports):
    run, folder, sentences = exports["checkpoint"]
    card = json.loads((folder / "export.json").read_text())
    assert card["piece_limit"] == 64
    label, tagger = load(folder), raykd.load(run)
    long = [word for words in sentences for word in words]
    assert len(long) > card["piece_limit"]
    for words in (long, long[:70], *sentences):
        assert label.label([words]) == tagger.label([words])


@pytest.mark.parametrize("name", ["crf", "checkpoint"])
def test_how_many_pieces_are_read_at_once_changes_no_label(exports, name, monkeypatch):
    _, folder, sentences = exports[name]
    expected = load(folder).label(sentences)
    for padded in (1, 20, 2**20):
        monkeypatch.setattr(session, "BATCH_PIECES", padded)
        monkeypatch.setattr(session, "LONG_TEXT_PIECES", 4 * padded)
        assert load(folder).label(sentences) == expected


def test_what_is_no_export_is_refused(exports, tmp_path):
    _, folder, _ = exports["crf"]
    with pytest.raises(
        LabellerError, match=r"export\.json: there is no such file; give a folder that raykd export"
    ):
        load(tmp_path)
    with pytest.raises(LabellerError, match=r"is no model; use 'model\.onnx' or 'model-int8\.onnx'"):
        load(folder, file="best.onnx")
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "model.onnx").write_bytes(b"cut")
    with pytest.raises(LabellerError, match=r"model\.onnx: it has 3 bytes, and [\d,]+ were exported; copy"):
        load(copy)
    (copy / "model.onnx").unlink()
    with pytest.raises(LabellerError, match=r"model\.onnx: there is no such file; copy the whole folder"):
        load(copy)
    (copy / "labels.json").write_text("{")
    with pytest.raises(LabellerError, match=r"labels\.json: it is damaged"):
        load(copy)
    label = load(folder)
    with pytest.raises(TypeError, match="got the string 'London'; call the labeller itself with text"):
        label.label(["London"])
    with pytest.raises(ValueError, match="has no words"):
        label.label([["London"], []])


@pytest.mark.slow
def test_the_folder_runs_on_onnxruntime_and_numpy_alone(exports, tmp_path):
    """Run in an environment with nothing else."""
    folders = {name: shutil.copytree(exports[name][1], tmp_path / name) for name in MODELS}
    python = tmp_path / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    install = [python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", "numpy", "onnxruntime"]
    subprocess.run(install, check=True)
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from labeller import load\n"
        "print(json.dumps(load(sys.argv[1]).label(json.load(sys.stdin))))"
    )
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for name, folder in folders.items():
        sentences = exports[name][2]
        process = subprocess.run(
            [python, "-c", code, folder], input=json.dumps(sentences), capture_output=True, text=True, env=clean,
            cwd=tmp_path, check=False,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        assert json.loads(process.stdout) == raykd.load(exports[name][0]).label(sentences)
