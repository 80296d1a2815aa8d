"""All ways to a student's labels give the same labels.

The ways are PyTorch, ONNX Runtime by words, files, the form of Transformers' pipelines, HTTP and spaCy.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import raykd
from raykd.metrics.bioes import read_spans
from raykd.serving.labeller import words_in
from raykd.serving.server import create_app
from tests.corpora_root import corpora_root
from tests.serving.trained import exported, post, served
from tests.sweep.in_process import call
from tests.training.small import TREE

SENTENCES = 1000
MADE = [
    ["Ada", "Lovelace", "lives", "in", "London", "."],
    ["New", "York", "!"],
    ["Zoë", "ist", "in", "Berlin"],
] * 20


def of_file(path, count):
    """The words of the first sentences of a file with indices before the words."""
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    return [[line.split("\t")[1] for line in block.splitlines()] for block in blocks[:count] if block.strip()]


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    """(folder of the run, of the export, sentences): WikiAnn's, or made ones where it is absent."""
    folder = tmp_path_factory.mktemp("ways")
    try:
        root = corpora_root("wikiann")
    except pytest.skip.Exception:
        return *exported(folder), MADE
    corpus = {
        "source": "conll", "root": str(root), "languages": ("en", "de"), "train": "{lang}/train.conllu",
        "dev": "{lang}/val.conllu", "test": "{lang}/test.conllu", "columns": {"token": 1, "tag": 2}, "cap": 300,
        "dev_cap": 50, "test_cap": 50,
    }  # fmt: skip
    vocabulary = {"kind": "wordpiece", "size": 1500}
    training = {"batch_tokens": 300, "learning_rate": 1e-2, "dropout": 0.1}
    export = exported(
        folder, corpus=corpus, student={**TREE["student"], "vocabulary": vocabulary}, training=training
    )
    half = SENTENCES // 2
    return *export, [words for lang in ("en", "de") for words in of_file(root / lang / "test.conllu", half)]


@pytest.fixture(scope="module")
def expected(student):
    """The labels given by PyTorch."""
    run, _, sentences = student
    labels = raykd.load(run).label(sentences)
    assert len({label for sentence in labels for label in sentence}) > 2
    return labels


def test_the_labeller(student, expected):
    _, folder, sentences = student
    label = raykd.load(folder)
    assert label.label(sentences) == expected
    assert [[word.label for word in labelled.words] for labelled in label(sentences)] == expected


def test_predict(student, expected, tmp_path):
    _, folder, sentences = student
    source, out = tmp_path / "in.conll", tmp_path / "out.conll"
    source.write_text("\n\n".join("\n".join(f"{word}\t_" for word in words) for words in sentences))
    call("predict", str(folder), str(source), "--out", str(out))
    read = [block.split("\n") for block in out.read_text().strip().split("\n\n")]
    assert [[line.split("\t")[2] for line in block] for block in read] == expected


def test_the_pipeline(student, expected):
    """The pipeline reads text, so only sentences are compared that split into their words."""
    _, folder, sentences = student
    same = [number for number, words in enumerate(sentences) if words_in(" ".join(words)) == words]
    assert len(same) > 0.5 * len(sentences)
    pipe = raykd.pipeline("token-classification", folder)
    for number, entries in zip(same, pipe(" ".join(sentences[number]) for number in same), strict=True):
        labels = ["O"] * len(sentences[number])
        for entry in entries:
            labels[entry["index"] - 1] = entry["entity"]
        assert labels == expected[number]


def test_the_server(student, expected):
    _, folder, sentences = student
    parts = [sentences[first : first + 7] for first in range(0, len(sentences), 7)]
    with served(create_app(folder)) as at, ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda part: post(f"{at}/predict", {"tokens": part}), parts))
    actual = [labelled for _, answer in answers for labelled in answer["results"]]
    assert [[word["label"] for word in labelled["words"]] for labelled in actual] == expected


def test_spacy(student, expected):
    spacy = pytest.importorskip("spacy", reason="spaCy is absent: pip install spacy")
    _, folder, sentences = student
    nlp = spacy.blank("xx")
    nlp.add_pipe("raykd", config={"model": str(folder)})
    docs = nlp.pipe(spacy.tokens.Doc(nlp.vocab, words) for words in sentences)
    for doc, labels in zip(docs, expected, strict=True):
        assert [(ent.start, ent.end, ent.label_) for ent in doc.ents] == list(read_spans(labels))
