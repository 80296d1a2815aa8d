"""A run's folder alone, copied elsewhere with the store deleted: it labels text exactly as it was evaluated."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raykd
from raykd.corpora.vocabulary import WordVocabulary
from raykd.errors import StoreError
from raykd.figures.results import RunResult
from raykd.forms import FLAT
from raykd.layers.model_config import BuildInputs
from raykd.precompute.open_teacher import load_teacher
from raykd.recipes.recipe import Recipe
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import StoredVocabulary
from raykd.storage.store import Storage
from raykd.students import BiLSTMStudent
from raykd.tasks import TASKS
from raykd.training.data import cached_corpus, encoded_part
from raykd.training.evaluate import predict
from raykd.training.execute import execute_run
from raykd.training.load import COPY, Tagger
from raykd.training.model_folder import (
    ARCHITECTURE,
    LABELS,
    MODEL,
    RESULT,
    VOCABULARY,
    WEIGHTS,
    build_model,
    load_model,
    read_weights,
)
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs
from raykd.training.worker import Worker
from tests.stored import changed, stored
from tests.teachers.checkpoints import make_checkpoint
from tests.training.small import TREE, recipe

SENTENCE = ["Ada", "Lovelace", "lives", "in", "London"]
CHARACTERS = {"character_dim": 4, "character_hidden": 4}


def on_gold(**changes: Any) -> Recipe:
    """A recipe for models with more than one label after a second of training."""
    learns = {"batch_tokens": 60, "learning_rate": 2e-2, "dropout": 0.0}
    teachers = changes.pop("teachers", {})
    teachers = {
        **({} if "kind" in teachers else TREE["teachers"]),
        "epochs": 8,
        "training": learns,
        **teachers,
    }
    shape = {"embedding_dim": 16, "hidden_dim": 12, **changes.pop("student", {})}
    changes = {
        "teachers": teachers,
        "student": shape,
        "schedule": {"epochs": 8},
        "training": learns,
        **changes,
    }
    return recipe(objective={"kind": "gold"}, **changes)


def student(store: Path, run_recipe: Recipe) -> Run:
    (run,) = student_runs(run_recipe, prepare(run_recipe, Storage(str(store))))
    return run


def teacher(store: Path, run_recipe: Recipe) -> Run:
    return prepare(run_recipe, Storage(str(store))).teachers[0].run


def executed(store: Path, run: Run) -> Path:
    """The folder of the finished run."""
    for member in (*run.members, run):
        execute_run(str(store), member, worker=Worker(), report=lambda _: None)
    return store.joinpath(*run.folder)


def dev_of(store: Path, run: Run) -> tuple[list[list[str]], list[list[str]]]:
    """The sentences of the dev part, and what the stored run labels them with."""
    storage, corpus = Storage(str(store)), cached_corpus(str(store), run.corpus_id)
    part = encoded_part(storage.uri, run, "dev")
    decode = partial(TASKS[run.task].form.best_labellings, part.labels)
    paths = predict(load_model(storage, run), part.text, decode, worker=Worker())
    return corpus.parts["dev"]["tokens"].to_pylist(), [corpus.tag_set.decode(path) for path in paths]


def moved(folder: Path, store: Path, target: Path) -> Path:
    """The folder elsewhere, its store deleted."""
    shutil.copytree(folder, target)
    shutil.rmtree(store)
    return target


KINDS = {
    "word pieces, CRF": (student, {}),
    "words, characters, MaxEnt": (
        student, {"student": {"decoder": "maxent", "vocabulary": {"kind": "word"}, **CHARACTERS}}
    ),
    "one for each language": (student, {"corpus": {"languages": ("de",)}, "student": {"scope": "language"}}),
    "teacher": (teacher, {}),
    "spans": (
        teacher,
        {"teachers": {"kind": "biaffine_ner", "embedding_dim": 16, "hidden_dim": 12, "biaffine_dim": 8}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_loaded_is_what_was_evaluated(tmp_path, kind):
    role, changes = KINDS[kind]
    store = tmp_path / "store"
    run = role(store, on_gold(**changes))
    folder = executed(store, run)
    sentences, labels = dev_of(store, run)
    assert len({label for sentence in labels for label in sentence}) > 1
    part = encoded_part(str(store), run, "dev")
    target = moved(folder, store, tmp_path / "elsewhere")

    tagger = raykd.load(target)
    predicted_labels = tagger.label(sentences)
    assert predicted_labels == labels
    scored = tagger.task.score(
        part.labels, [tagger.tag_set.encode(sentence_labels) for sentence_labels in predicted_labels],
        tag_set=tagger.tag_set, languages=list(part.languages),
    )  # fmt: skip
    result = Storage(str(target)).read_json(RESULT, RunResult.from_plain)
    assert scored["source"] == result.scores.get("dev")


def test_a_student_with_a_checkpoints_pieces_needs_no_checkpoint(tmp_path):
    checkpoint, store = Path(make_checkpoint(tmp_path / "checkpoint")), tmp_path / "store"
    run = student(store, on_gold(student={"vocabulary": {"kind": "pretrained", "path": str(checkpoint)}}))
    folder = executed(store, run)
    sentences, labels = dev_of(store, run)
    shutil.rmtree(checkpoint)
    assert raykd.load(moved(folder, store, tmp_path / "elsewhere")).label(sentences) == labels


@pytest.mark.parametrize("vocabulary", ["whole", "pruned"])
def test_a_fine_tuned_checkpoint_stands_alone(tmp_path, vocabulary):
    checkpoint, store = Path(make_checkpoint(tmp_path / "checkpoint", layers=2)), tmp_path / "store"
    fine_tuned = {"kind": "hf_token_classifier", "path": str(checkpoint), "fine_tune": True, "epochs": 1}
    fine_tuned |= {"vocabulary": vocabulary, "freeze": ("embeddings",)}
    training = {"optimiser": "adamw", "learning_rate": 1e-2, "batch_tokens": 200}
    run = teacher(store, on_gold(teachers={**fine_tuned, "training": training}))
    folder = executed(store, run)
    # Its windows are shorter than the second sentence: how much it reads at once is part of its architecture.
    letters = [["abc", "jig", "an", "bo"], [*"abcdefghij"] * 3]
    batch = load_teacher(Storage(str(store)), run.id)._vocabulary.encode(letters).gather(np.arange(2))
    of_checkpoint = build_model(Storage(str(store)), run).eval()
    read_weights(of_checkpoint, Storage(str(folder)))
    sentences, labels = dev_of(store, run)
    shutil.rmtree(checkpoint)
    assert dev_of(store, run) == (sentences, labels)
    tagger = raykd.load(moved(folder, store, tmp_path / "elsewhere"))
    assert tagger.label(sentences) == labels
    with torch.inference_mode():
        first, second = (model(batch).distribution.emissions_BTY for model in (of_checkpoint, tagger.model))
    assert torch.equal(first, second)


def test_a_checkpoint_as_it_is_and_a_frozen_encoder_are_read_from_their_paths(tmp_path):
    labels = ["O", *(f"{letter}-{kind}" for kind in ("LOC", "ORG", "PER") for letter in "BI")]
    given_path = Path(make_checkpoint(tmp_path / "given", labels=labels))
    frozen = Path(make_checkpoint(tmp_path / "frozen", head=False))
    recipes = [
        (given_path, {"kind": "hf_token_classifier", "path": str(given_path)}, lambda plain: plain),
        (frozen, {"contextual": {"path": str(frozen)}}, lambda plain: plain["contextual"][0]),
    ]
    for number, (checkpoint, teachers, section) in enumerate(recipes):
        store = tmp_path / f"store-{number}"
        run = teacher(store, on_gold(teachers=teachers))
        folder = executed(store, run)
        sentences, labels = dev_of(store, run)
        target = moved(folder, store, tmp_path / f"elsewhere-{number}")
        assert not (target / ARCHITECTURE).exists()
        assert raykd.load(target).label(sentences) == labels

        elsewhere = checkpoint.rename(tmp_path / f"moved-{number}")
        with pytest.raises(StoreError, match=r"set its path in .*model.json to where the same files are now"):
            raykd.load(target)
        model = json.loads((target / MODEL).read_text())
        section(model["model"])["path"] = str(elsewhere)
        (target / MODEL).write_text(json.dumps(model))
        with pytest.raises(StoreError, match="its checksum is"):
            raykd.load(target)
        del model["sha256"]
        (target / MODEL).write_text(json.dumps(model))
        assert raykd.load(target).label(sentences) == labels

        config = elsewhere / "config.json"
        config.write_text(config.read_text() + "\n")
        with pytest.raises(StoreError, match="changed"):
            raykd.load(target)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, Run]:
    """A store with a finished student."""
    store = tmp_path_factory.mktemp("load") / "store"
    run = student(store, on_gold())
    executed(store, run)
    return store, run


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    """A copy of the finished student's folder."""
    store, run = finished
    return Path(shutil.copytree(store.joinpath(*run.folder), tmp_path / "folder"))


def test_one_label_per_word_for_any_number_of_sentences_in_their_order(finished, folder):
    sentences, labels = dev_of(*finished)
    tagger = raykd.load(str(folder))
    assert set(tagger.labels) >= {label for sentence in labels for label in sentence}
    assert tagger.label([]) == []
    assert tagger.label(sentences[::-1]) == labels[::-1]
    many = tagger.label([*sentences, tuple(SENTENCE)] * 400)
    assert len(many) == 400 * (len(sentences) + 1)
    assert many[: len(sentences)] == many[-len(sentences) - 1 : -1] == labels
    assert len(many[-1]) == len(SENTENCE)


def test_generators_are_read_once_and_split_is_for_exports(folder):
    tagger = raykd.load(folder)
    sentences = [SENTENCE, ["London"], SENTENCE[:2]]
    assert tagger.label(iter(words) for words in sentences) == tagger.label(sentences)
    with pytest.raises(TypeError, match=r"a word is a string, got None in \['Ada', None\]"):
        tagger.label([["Ada", None]])
    with pytest.raises(
        ValueError, match="split is for exported models, and the model of a run takes words; leave it out"
    ):
        raykd.load(folder, split="signs")


def test_what_is_no_list_of_sentences_is_refused(folder):
    tagger = raykd.load(folder)
    for wrong in (["Ada lives in London"], SENTENCE):
        with pytest.raises(TypeError, match="a sentence is a list of words, got the string"):
            tagger.label(wrong)
    with pytest.raises(ValueError, match="has no words"):
        tagger.label([SENTENCE, []])


def test_one_label_per_sentence():
    tag_set = FLAT.tag_set(["bad", "good"])
    pieces = WordVocabulary.build(SENTENCE)
    model = BiLSTMStudent(embedding_dim=4, hidden_dim=3, decoder="maxent").build(
        BuildInputs(vocabulary_size=pieces.size, tag_set=tag_set, unit="sentence")
    )
    vocabulary = StoredVocabulary("vocabulary-0", pieces, None)
    task, cpu = TASKS["classification"], torch.device("cpu")
    tagger = Tagger(model, vocabulary=vocabulary, tag_set=tag_set, task=task, device=cpu)
    predicted_labels = tagger.label([SENTENCE, SENTENCE[:1]])
    assert [len(labels) for labels in predicted_labels] == [1, 1]
    assert {label for labels in predicted_labels for label in labels} <= {"bad", "good"}


def test_loading_leaves_the_random_generator_alone(folder):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    raykd.load(folder)
    assert torch.equal(torch.rand(3), expected)


def test_an_ensembles_members_are_named(tmp_path):
    store = tmp_path / "store"
    run = teacher(store, on_gold(teachers={"count": 2}))
    folder = executed(store, run)
    assert load_teacher(Storage(str(store)), run.id)
    with pytest.raises(StoreError, match=f"the mean of {run.members[0].id}, {run.members[1].id}; load one"):
        raykd.load(folder)
    assert len(raykd.load(folder.parent / run.members[0].id).label([SENTENCE])[0]) == 5


@pytest.mark.parametrize("name", [WEIGHTS, MODEL, VOCABULARY, LABELS])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(StoreError, match=f"it has no {name}; copy the whole folder of the run again"):
        raykd.load(folder)


def test_what_is_no_runs_folder_is_refused(folder, tmp_path):
    with pytest.raises(StoreError, match=f"it has no {MODEL}, {VOCABULARY}, {LABELS}; correct the address"):
        raykd.load(tmp_path / "nowhere")
    with pytest.raises(StoreError, match=r"load a folder below it: folder$"):
        raykd.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (MODEL, "{", "JSONDecodeError"),
        (MODEL, "[]", "TypeError"),
        (MODEL, "{}", "KeyError"),
        (VOCABULARY, {"pieces": "{}", "characters": None, "context": []}, "KeyError"),
        (LABELS, {"tags": ["O", "O"], "scheme": "flat"}, "tags occur twice"),
    ],
)
def test_a_wrong_file_is_named(folder, name, content, reason):
    if isinstance(content, str):
        (folder / name).write_text(content)
    else:
        Storage(str(folder)).write_json(name, content)
    with pytest.raises(StoreError, match=f"{name}: is (damaged|of another).*{reason}.*{COPY}") as caught:
        raykd.load(folder)
    assert caught.value.name == str(folder / name)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"task": "chunks"}, "unknown task 'chunks'"), ({"model": {"kind": "other"}}, "validation error")],
)
def test_a_run_of_another_raykd_is_refused(folder, changes, reason):
    changed(folder / MODEL, lambda plain: {**plain, **changes})
    with pytest.raises(StoreError, match=reason):
        raykd.load(folder)


@pytest.mark.parametrize("damage", ["cut", "flipped", "another model's"])
def test_wrong_weights_are_named(folder, damage):
    if damage == "cut":
        (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-1])
    elif damage == "flipped":
        data = bytearray((folder / WEIGHTS).read_bytes())
        data[-7] ^= 1
        (folder / WEIGHTS).write_bytes(data)
    else:
        size = stored(folder / MODEL)["model"]["hidden_dim"]
        changed(folder / MODEL, lambda plain: {**plain, "model": {**plain["model"], "hidden_dim": size + 1}})
    with pytest.raises(StoreError) as caught:
        raykd.load(folder)
    assert caught.value.name == str(folder / WEIGHTS)


def test_three_lines_in_a_process_of_its_own(folder):
    script = (
        "import sys, raykd\n"
        "assert [name for name in sys.modules if name.startswith('raykd')] == ['raykd'], 'import is heavy'\n"
        "assert 'torch' not in sys.modules\n"
        f"tagger = raykd.load({str(folder)!r})\n"
        f"print(tagger.label([{SENTENCE!r}]))\n"
        "assert not {'ray', 'optuna', 'mlflow'} & set(sys.modules)\n"
    )
    root = Path(raykd.__file__).parents[1]
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == str(raykd.load(folder).label([SENTENCE]))


def test_loading_reads_object_stores(folder, tmp_path):
    address = f"file://{folder}"
    assert raykd.load(address).label([SENTENCE]) == raykd.load(folder).label([SENTENCE])
