"""A run as files: what is written, what is compared, and that the files run without raykd."""

from __future__ import annotations

import json
import re
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import raykd
from raykd.deploy import export as module
from raykd.deploy.export import FILES, ONNX, ONNX_INT8, export_run
from raykd.deploy.onnx_files import Session
from raykd.deploy.splitting import measure_splitting
from raykd.errors import ExportError, StoreError
from raykd.layers.model import save_weights
from raykd.metrics.bioes import read_spans
from raykd.recipes.card_config import CardConfig
from raykd.recipes.recipe import Recipe
from raykd.recipes.run import Run
from raykd.report.card import model_card
from raykd.storage.layout import MODEL, WEIGHTS
from raykd.storage.store import Storage
from raykd.tasks import TASKS
from raykd.training.prepare import prepare
from tests.training.small import TREE, executed, recipe, student_of, train_teachers

ROOT = Path(__file__).parents[2]
LEARNS = {"batch_tokens": 60, "learning_rate": 2e-2, "dropout": 0.0}


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    """A store and the folder of a student that learnt enough to give several labels."""
    settings = recipe(objective={"kind": "gold"}, schedule={"epochs": 8}, training=LEARNS)
    ready = prepare(settings, Storage(str(tmp_path_factory.mktemp("export") / "store")))
    train_teachers(ready)
    run = student_of(ready, settings)
    executed(ready, run)
    return ready.storage, ready.storage.child(*run.folder)


@pytest.fixture(scope="module")
def exported(student, tmp_path_factory):
    storage, folder = student
    target = Storage(str(tmp_path_factory.mktemp("exported") / "student"))
    return export_run(folder, target, store=storage, model_card=lambda written: written.run.id), Path(
        target.address
    )


def test_files_are_described_and_the_weights_are_those_of_the_run(student, exported):
    written, folder = exported
    card = json.loads((folder / "export.json").read_text())
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == sorted(
        FILES
    )
    assert card["run"] == written.run.id == student[1].address.rpartition("/")[2]
    assert (card["task"], card["unit"], card["piece_limit"]) == ("ner", "word", None)
    assert card["inputs"]["first"] == ["batch", "word"]
    assert card["outputs"]["labels"] == ["batch", "word"]
    for name, size in written.sizes.items():
        content = (folder / name).read_bytes()
        assert card["files"][name] == {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        assert len(content) == size
    tagger = raykd.load(student[1].uri)
    assert (folder / WEIGHTS).read_bytes() == save_weights(tagger.model) == student[1].read(WEIGHTS)
    assert card["parameters"] == sum(parameter.numel() for parameter in tagger.model.parameters())
    assert json.loads((folder / "labels.json").read_text())["tags"] == list(tagger.labels)


def test_both_files_are_compared_with_the_model_on_its_own_test(exported):
    agreement = exported[0].agreement
    assert (agreement.part, agreement.sentences, agreement.too_long) == ("test", 16, 0)
    assert agreement.labels > 16
    assert agreement.differing[ONNX] == 0
    assert agreement.differing[ONNX_INT8] < 0.1 * agreement.labels
    assert agreement.scores[WEIGHTS] == agreement.scores[ONNX]
    assert abs(agreement.scores[ONNX_INT8] - agreement.scores[WEIGHTS]) < 0.1


def test_sentences_are_taken_from_all_over_the_part(student, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SENTENCES", 5)
    storage, folder = student
    agreement = export_run(folder, Storage(str(tmp_path)), store=storage).agreement
    assert agreement.sentences == 5
    run = folder.read_json(MODEL, Run.from_plain)
    assert set(module._comparison_sentences(module._corpus(storage, run))[1]["language"].to_pylist()) == {
        "en",
        "de",
    }


def test_the_example_of_the_documentation_runs_and_is_right(student, exported, monkeypatch, capsys):
    code, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "docs/EXPORT.md").read_text(), re.DOTALL)
    monkeypatch.chdir(exported[1].parent)
    exec(code, {})
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    (labels,) = raykd.load(student[1].uri).label([["Ada", "Lovelace", "lives", "in", "London", "."]])
    assert [line[0] for line in printed] == [name for _, _, name in read_spans(labels)]
    assert printed
    assert all(
        "Ada Lovelace lives in London."[int(a) : int(b)] == " ".join(text) for _, *text, a, b, _ in printed
    )


def test_another_label_in_float32_is_an_error_and_nothing_is_written(student, tmp_path, monkeypatch):
    storage, folder = student
    labels = Session.labels
    monkeypatch.setattr(Session, "labels", lambda session, batch: np.maximum(labels(session, batch), 1))
    with pytest.raises(
        ExportError, match=r"run-\w+: \d+ of \d+ labels of model.onnx differ from the model's; nothing"
    ):
        export_run(folder, Storage(str(tmp_path / "out")), store=storage)
    assert not (tmp_path / "out").exists()


def test_a_run_without_its_corpus_is_exported_and_not_compared(student, exported, tmp_path):
    _, folder = student
    for name, store in (("none", None), ("other", Storage(str(tmp_path / "empty")))):
        written = export_run(folder, Storage(str(tmp_path / name)), store=store)
        assert written.agreement is None
        assert (tmp_path / name / ONNX).read_bytes() == (exported[1] / ONNX).read_bytes()


def test_sentences_that_are_read_in_parts_are_left_out_of_the_comparison(student, tmp_path, monkeypatch):
    storage, folder = student
    tagger = raykd.load(folder.uri)
    _, table = module._comparison_sentences(module._corpus(storage, folder.read_json(MODEL, Run.from_plain)))
    limit = int(np.median(tagger.vocabulary.encode(table).piece_lengths))
    monkeypatch.setattr(type(tagger.model), "piece_limit", limit)
    agreement = export_run(folder, Storage(str(tmp_path)), store=storage).agreement
    assert agreement.sentences + agreement.too_long == 16
    assert 0 < agreement.sentences < 16
    assert json.loads((tmp_path / "export.json").read_text())["piece_limit"] == limit


def test_a_teacher_that_reads_characters_is_exported(student, tmp_path):
    storage, _ = student
    (folder, *_) = [storage.child("teachers", name.split("/")[1]) for name in storage.names("teachers/")]
    written = export_run(folder, Storage(str(tmp_path)), store=storage)
    assert written.agreement.differing[ONNX] == 0
    inputs = json.loads((tmp_path / "export.json").read_text())["inputs"]
    assert inputs["characters"] == ["batch", "word", "character"]


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(StoreError, match="is not the folder of a finished run"):
        export_run(Storage(str(tmp_path)), Storage(str(tmp_path / "out")))


def conll_of(folder: Path, sentences: list[list[str]]) -> dict[str, object]:
    """A corpus of these sentences, in which every second word is a place."""
    folder.mkdir()
    blocks = [
        "".join(f"{word} {'B-LOC' if i % 2 else 'O'}\n" for i, word in enumerate(words))
        for words in sentences
    ]
    parts = ("train", "dev", "test")
    for part in parts:
        (folder / part).write_text("\n".join(blocks))
    return {
        "source": "conll",
        "root": str(folder),
        "languages": ("en",),
        "overlaps": "keep",
        **{p: p for p in parts},
    }


def exported_of(folder: Path, sentences: list[list[str]], **options: object):
    """An export of a student of these sentences, and what was written."""
    corpus = conll_of(folder / "corpus", sentences)
    settings = Recipe.model_validate(
        {**TREE, "corpus": corpus, "objective": {"kind": "gold"}, "training": LEARNS}
    )
    ready = prepare(settings, Storage(str(folder / "store")))
    run = student_of(ready, settings)
    executed(ready, run)
    target = Storage(str(folder / "out"))
    card = partial(model_card, stated=CardConfig())
    source = ready.storage.child(*run.folder)
    return export_run(source, target, store=ready.storage, model_card=card, **options), Path(target.address)


def test_a_corpus_with_other_words_than_those_of_text_is_said(tmp_path):
    numbers = [str(number) for number in range(5)]
    sentences = [
        *(["@ada", "met", "COVID-19", number] for number in numbers),
        *(["do", "n't", number] for number in numbers),
    ]
    written, folder = exported_of(tmp_path, sentences)
    splitting = written.splitting
    assert (splitting.split, splitting.sentences, splitting.same) == (
        "signs",
        10,
        {"signs": 5, "whitespace": 10},
    )
    assert splitting.problem == (
        "texts are split at white space and signs, which gives the words of 50.0 % of 10 training sentences (not: @ada)"
    )
    assert splitting.proposal == "whitespace"
    card = json.loads((folder / "export.json").read_text())
    assert card["split"] == raykd.load(folder).split == "signs"
    assert card["splitting"] == {
        "sentences": 10, "same": {"signs": 5, "whitespace": 10}, "examples": ["@ada"]
    }  # fmt: skip
    text = (folder / "README.md").read_text()
    assert splitting.problem in text
    assert 'split="whitespace"' in text


def test_the_split_of_an_export_is_that_of_all_who_load_it(tmp_path):
    sentences = [["@ada", "met", "COVID-19", number] for number in map(str, range(10))]
    written, folder = exported_of(tmp_path, sentences, split="whitespace")
    assert (written.splitting.problem, written.splitting.proposal) == (None, None)
    assert "Texts are split into words at white space alone." in (folder / "README.md").read_text()
    text = "@ada met O'Neill."
    assert [word.text for word in raykd.load(folder)(text).words] == text.split()
    assert len(raykd.load(folder, split="signs")(text).words) == 5
    assert raykd.pipeline("ner", folder).labeller.split == "whitespace"
    assert raykd.pipeline("ner", folder, split="signs").labeller.split == "signs"


def test_words_with_spaces_inside_are_not_those_of_a_text(tmp_path):
    table = pa.table({"tokens": [["10 000", "km"], ["Ada"]], "text": ["10 000 km", None]})
    splitting = measure_splitting(TASKS["ner"], table, None)
    assert (splitting.same, splitting.examples, splitting.proposal) == (
        {"signs": 1, "whitespace": 1}, ("10 000",), None,
    )  # fmt: skip
    raw = pa.table({"tokens": [["do", "n't"], ["東", "京"]], "text": ["don't", "東京"]})
    assert measure_splitting(TASKS["ner"], raw, "whitespace").same == {"signs": 1, "whitespace": 0}
    assert measure_splitting(TASKS["ner"], raw, "whitespace").proposal == "signs"


def test_whole_texts_are_split_as_in_training():
    assert measure_splitting(TASKS["classification"], None, None).split == "whitespace"
    with pytest.raises(ExportError, match=r"'classification' labels whole texts.*leave --split out"):
        measure_splitting(TASKS["classification"], None, "signs")
