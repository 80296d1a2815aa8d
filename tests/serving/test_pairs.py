"""A student and a checkpoint for pairs of texts: all ways to their labels agree."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import raykd
from raykd.deploy.export import export_run
from raykd.recipes.recipe import Recipe
from raykd.serving.labeller import SEPARATOR, LabellerError
from raykd.serving.server import create_app
from raykd.storage.store import Storage
from raykd.training.prepare import prepare
from tests.serving.trained import post, served
from tests.sweep.in_process import call, code_of
from tests.teachers.checkpoints import make_checkpoint
from tests.training.small import TREE, executed, student_of, train_teachers

WORDS = ("an", "bo", "abc", "jij", "fed")
LEARNS = {"batch_tokens": 60, "learning_rate": 2e-2, "dropout": 0.0}


def pairs(count: int) -> list[tuple[str, str, str]]:
    """Texts of one to five words, and whether the second one has fewer."""
    result = []
    for number in range(count):
        first, second = (
            " ".join(WORDS[(number * step + place) % 5] for place in range(1 + (number * step) % 5))
            for step in (1, 3)
        )
        result.append(
            (first, f"{second} a{'bcdefghij'[number % 9]}", "less" if len(second) < len(first) else "more")
        )
    return result


@pytest.fixture(scope="module")
def exports(tmp_path_factory) -> dict[str, Any]:
    """Name → (the folder of a run, of its export): a student, and a checkpoint that reads 16 pieces."""
    folder = tmp_path_factory.mktemp("pairs")
    for part, rows in (("train", pairs(60)), ("dev", pairs(80)[60:]), ("test", pairs(100)[80:])):
        lines = ["id\tone\tother\tlabel", *(f"{n}\t" + "\t".join(row) for n, row in enumerate(rows))]
        (folder / part).write_text("\n".join(lines) + "\n")
    corpus = {
        "source": "tsv", "root": str(folder), "languages": ("en",), "header": True, "train": "train", "dev": "dev",
        "columns": {"text": "one", "second": "other", "label": "label"}, "test": "test", "overlaps": "keep",
    }  # fmt: skip
    path = make_checkpoint(folder / "checkpoint", labels=("less", "more"), head="sequence")
    teachers = {"kind": "hf_sequence_classifier", "path": path, "fine_tune": True, "epochs": 2}
    student = {**TREE["student"], "decoder": "maxent"}
    changes = {"task": "pairs", "corpus": corpus, "teachers": teachers, "student": student}
    tree = {**TREE, **changes, "objective": {"kind": "gold"}, "schedule": {"epochs": 8}, "training": LEARNS}
    config = Recipe.model_validate(tree)
    ready = prepare(config, Storage(str(folder / "store")))
    train_teachers(ready)
    runs = {"checkpoint": ready.teachers[0].run, "student": student_of(ready, config)}
    executed(ready, runs["student"])
    for name, run in runs.items():
        export_run(ready.storage.child(*run.folder), Storage(str(folder / name)), store=ready.storage)
    return {name: (ready.storage.child(*run.folder).uri, folder / name) for name, run in runs.items()}


@pytest.fixture(params=["student", "checkpoint"])
def way(exports, request):
    """(the tagger in PyTorch, the folder of its export, texts, their labels in PyTorch)."""
    run, folder = exports[request.param]
    tagger = raykd.load(run)
    texts = [f"{first}{SEPARATOR}{second}" for first, second, _ in pairs(100)]
    words = [[*first.split(), SEPARATOR, *second.split()] for first, second, _ in pairs(100)]
    expected = [label for (label,) in tagger.label(words)]
    assert len(set(expected)) == 2
    return tagger, folder, texts, words, expected


def test_in_onnx_runtime_also_of_pairs_that_are_too_long(way):
    _, folder, texts, words, expected = way
    label = raykd.load(folder)
    assert label.pairs
    assert [sentence for (sentence,) in label.label(words)] == expected
    assert [labelled.label for labelled in label(texts)] == expected
    assert label(texts[0]).text == texts[0]
    pieces = [sum(len(label._reader.split(word)) for word in sentence) for sentence in words]
    limit = label.card["piece_limit"]
    assert limit is None or max(pieces) > limit > min(pieces)


def test_the_longer_text_loses_its_end_as_in_pytorch(exports):
    run, folder = exports["checkpoint"]
    tagger, label = raykd.load(run), raykd.load(folder)
    ids = {word: tagger.vocabulary.pieces.pieces([word]).values.tolist() for word in (*WORDS, SEPARATOR)}
    for first, second in ((1, 9), (9, 1), (4, 4), (5, 4), (4, 5), (3, 8), (20, 20)):
        words = [*("abc" for _ in range(first)), SEPARATOR, *("jij" for _ in range(second))]
        (answer,) = label.answers([words], 1)
        probabilities_1Y = answer.lattice(temperature=1.0).marginals()
        batch = tagger.vocabulary.encode([words]).gather([0])
        theirs = tagger.model.eval()(batch).distribution.emissions_BTY[0].softmax(-1)
        assert probabilities_1Y[0].tolist() == pytest.approx(theirs[0].tolist(), abs=1e-4)
    assert ids["abc"] == label._reader.split("abc")
    assert ids[SEPARATOR] == label._reader.split(SEPARATOR) == [3]


@pytest.mark.parametrize("form", ["txt", "tsv", "jsonl"])
def test_predict_reads_pairs_in_lines_columns_and_json(way, tmp_path, form):
    _, folder, texts, _, expected = way
    rows = {
        "txt": texts,
        "tsv": [f"{number}\t{text}\tmore" for number, text in enumerate(texts)],
        "jsonl": [
            json.dumps({"text": first, "text_pair": second, "id": 7})
            for first, second in (text.split(SEPARATOR) for text in texts)
        ],
    }
    source, out = tmp_path / f"in.{form}", tmp_path / "out.jsonl"
    source.write_text("\n".join(rows[form]) + "\n")
    call(
        "predict", str(folder), str(source), "--out", str(out), *(["--column", "1"] if form == "tsv" else [])
    )
    actual = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["label"] for row in actual] == expected
    if form == "jsonl":
        assert actual[0]["text"] + SEPARATOR + actual[0]["text_pair"] == texts[0]
        assert actual[0]["id"] == 7


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("one.txt", "an\tbo\nan bo\n"),
        ("three.txt", "an\tbo\nan\tbo\tan\n"),
        ("empty.txt", "an\tbo\n \tbo\n"),
        ("one.jsonl", '{"text": "an", "text_pair": "bo"}\n{"text": "an"}\n'),
        ("words.jsonl", '{"tokens": ["an", "\\t", "bo"]}\n{"tokens": ["an", "bo"]}\n'),
    ],
)
def test_what_is_no_pair_is_refused_by_line(exports, tmp_path, capsys, name, content):
    source = tmp_path / name
    source.write_text(content)
    assert code_of("predict", str(exports["student"][1]), str(source), "--out", str(tmp_path / "out"))
    labelled = capsys.readouterr().err
    assert f"{source}:2: " in labelled
    assert "is not two texts with one tab between them" in labelled


def test_columns_of_words_are_refused(exports, tmp_path, capsys):
    (tmp_path / "in.conll").write_text("an\nbo\n")
    assert code_of("predict", str(exports["student"][1]), str(tmp_path / "in.conll"))
    assert "give --format text, tsv or jsonl" in capsys.readouterr().err


def test_the_labellers_refuse_single_texts(exports):
    run, folder = exports["student"]
    for label in (raykd.load(run).label, raykd.load(folder).label):
        with pytest.raises(ValueError, match="is not two texts with one tab between them"):
            label([["an", "bo"]])
    with pytest.raises(ValueError, match="is not two texts"):
        raykd.load(folder)("an bo")


def test_the_form_of_transformers_pipelines(way):
    _, folder, texts, _, expected = way
    pipe = raykd.pipeline("text-classification", folder)
    inputs = [dict(zip(("text", "text_pair"), text.split(SEPARATOR), strict=True)) for text in texts]
    assert [entry["label"] for entry in pipe(inputs)] == expected
    assert pipe(inputs[0]) == pipe(texts[0])


def test_behind_http(way):
    _, folder, texts, words, expected = way
    with served(create_app(folder)) as url, ThreadPoolExecutor(1) as pool:
        for body in ({"texts": texts}, {"tokens": words}):
            status, answer = pool.submit(post, f"{url}/predict", body).result()
            assert status == 200
            assert [entry["label"] for entry in answer["results"]] == expected
        status, answer = pool.submit(post, f"{url}/predict", {"texts": ["an bo"]}).result()
        assert status == 422
        assert "is not two texts with one tab between them" in answer["detail"]


def test_spacy_has_no_pairs(exports):
    component = pytest.importorskip("raykd.serving.spacy_component")
    with pytest.raises(LabellerError, match="a document of spaCy is one"):
        component.Component(str(exports["student"][1]))


def test_evaluate_reads_the_columns_that_are_named(exports, tmp_path, capsys):
    run, folder = exports["student"]
    data, out = folder.parent / "test", tmp_path / "scores.json"
    columns = {"text": "one", "second": "other", "label": "label"}
    settings = [f"corpus.columns.{key}={value}" for key, value in columns.items()]
    arguments = [
        arg
        for setting in ("corpus.source=tsv", "corpus.header=true", *settings)
        for arg in ("--set", setting)
    ]
    call("evaluate", str(folder), f"en={data}", *arguments, "--out", str(out))
    tagger = raykd.load(run)
    rows = pairs(100)[80:]
    labels = tagger.label([[*first.split(), SEPARATOR, *second.split()] for first, second, _ in rows])
    right = sum(predicted == [label] for predicted, (*_, label) in zip(labels, rows, strict=True)) / len(rows)
    written = json.loads(out.read_text())
    assert written["exports"][0]["mean"] == pytest.approx(right)
    del arguments[6:8]  # the second text
    assert code_of("evaluate", str(folder), f"en={data}", *arguments)
    labelled = capsys.readouterr().err
    assert "the file has single texts" in labelled
    assert "corpus.columns.second=2" in labelled
