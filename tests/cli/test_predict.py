"""`raykd predict`: files of each form with an exported model, and what is wrong in them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

import raykd
from raykd.corpora.word_columns import layout_of
from raykd.deploy.export import export_run
from raykd.deploy.label_columns import _blocks
from raykd.errors import StoreError
from raykd.storage.store import Storage
from raykd.training.prepare import prepare
from tests.sweep.in_process import call, code_of
from tests.training.small import executed, recipe, student_of, train_teachers

SENTENCES = [["Ada", "Lovelace", "lives", "in", "London"], ["London"], ["Zoë", "ist", "hier", "."]]


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    learns = {"batch_tokens": 60, "learning_rate": 2e-2, "dropout": 0.0}
    asked = recipe(objective={"kind": "gold"}, schedule={"epochs": 8}, training=learns)
    ready = prepare(asked, Storage(str(folder / "store")))
    train_teachers(ready)
    run = student_of(ready, asked)
    executed(ready, run)
    export_run(ready.storage.child(*run.folder), Storage(str(folder / "student")), store=ready.storage)
    return str(folder / "student")


def test_the_start_of_a_document_is_no_word():
    lines = ["-DOCSTART- -X- O", "", "0 -DOCSTART- O", "0 Ada O", "1 sleeps O"]
    layout, rest = layout_of(iter(lines), "x")
    assert [block.words for block in _blocks(rest, layout, "x")] == [["Ada", "sleeps"]]


def test_conll_gets_a_column_of_labels(student, tmp_path):
    source, out = tmp_path / "in.conll", tmp_path / "out.conll"
    blocks = ["# id = 1\n" + "".join(f"{n}\t{word}\n" for n, word in enumerate(words)) for words in SENTENCES]
    source.write_text("\n".join(blocks) + "\n\n")
    call("predict", student, str(source), "--column", "1", "--out", str(out))
    labels = raykd.load(student).label(SENTENCES)
    read = [block.split("\n") for block in out.read_text().strip().split("\n\n")]
    assert [block[0] for block in read] == ["# id = 1"] * 3
    cells = [[line.split("\t") for line in block[1:]] for block in read]
    assert [[row[1] for row in block] for block in cells] == SENTENCES
    assert [[row[2] for row in block] for block in cells] == labels


def test_numbers_of_words_are_no_words(student, tmp_path):
    """CoNLL-U has a number first, and lines of tokens that are several words; other files begin with the word."""
    labels = raykd.load(student).label(SENTENCES)
    numbered = ["".join(f"{n}\t{word}\t_\n" for n, word in enumerate(words, start=1)) for words in SENTENCES]
    numbered[2] = "1-2\tZoëist\t_\n" + numbered[2].replace("3\t", "2.1\tleer\t_\n3\t")
    for name, blocks, column in (("a.conllu", numbered, 1), ("a.conll", map("\n".join, SENTENCES), 0)):
        (tmp_path / name).write_text("\n\n".join(block.strip() for block in blocks) + "\n")
        call("predict", student, str(tmp_path / name), "--out", str(tmp_path / "out"), "--overwrite")
        read = [block.split("\n") for block in (tmp_path / "out").read_text().strip().split("\n\n")]
        cells = [[line.split("\t") for line in block if line[:3] not in ("1-2", "2.1")] for block in read]
        assert [[row[column] for row in block] for block in cells] == SENTENCES
        assert [[row[-1] for row in block] for block in cells] == labels


def test_a_number_sign_is_a_word_where_it_has_all_columns(student, tmp_path):
    source, out = tmp_path / "in.conll", tmp_path / "out.conll"
    source.write_text("# a comment of five words\nLondon O\n# O\n\n#\n")
    call("predict", student, str(source), "--out", str(out))
    (labels,) = raykd.load(student).label([["London", "#"]])
    lines = out.read_text().split("\n")
    assert lines[:3] == ["# a comment of five words", f"London O {labels[0]}", f"# O {labels[1]}"]


def test_text_becomes_lines_of_json(student, tmp_path, monkeypatch, capsys):
    texts = [" ".join(words) for words in SENTENCES] + [""]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join([*texts, ""]).encode())))
    call("predict", student, "-", "--batch", "2")
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [each["text"] for each in said] == texts
    assert [[word["label"] for word in each["words"]] for each in said[:3]] == raykd.load(student).label(
        SENTENCES
    )
    assert said[3] == {"text": "", "words": [], "spans": []}


def test_texts_are_marked_for_people(student, tmp_path, capsys):
    text = "Ada Lovelace lives in London ."
    (tmp_path / "in.txt").write_text(f"{text}\n\n{text}\n")
    call("predict", student, str(tmp_path / "in.txt"), "--marked")
    lines = capsys.readouterr().out.splitlines()
    (said,) = raykd.load(student)([text])
    marked = text
    for span in reversed(said.spans):
        marked = f"{marked[: span.start]}[{span.text} {span.label}]{marked[span.end :]}"
    assert said.spans
    assert [line for line in lines if line] == [marked, marked]


def test_marks_are_of_texts(student, tmp_path, capsys):
    (tmp_path / "in.jsonl").write_text('{"text": "London"}\n')
    assert code_of("predict", student, str(tmp_path / "in.jsonl"), "--marked") == 3
    assert "--marked is for texts, and the file is jsonl" in capsys.readouterr().err


def test_json_lines_keep_what_they_have(student, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": 1, "text": "London"}, {"id": 2, "tokens": SENTENCES[0]}, {"id": 3, "text": "Ada lives."}]
    source.write_text("\n".join(map(json.dumps, rows)) + "\n")
    for extra in ((), ("--int8",)):
        call("predict", student, str(source), "--out", str(out), "--overwrite", *extra)
        said = [json.loads(line) for line in out.read_text().splitlines()]
        assert [each["id"] for each in said] == [1, 2, 3]
        assert len(said[1]["labels"]) == 5
        assert [word["text"] for word in said[2]["words"]] == ["Ada", "lives", "."]


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        (
            "a.conll",
            b"one\n",
            3,
            "a.conll:1: 1 column where at least 2 are expected: 'one'; correct the line, or set --column",
        ),
        ("a.jsonl", b'{"text": "x"}\n{"t": 1}\n', 3, 'a.jsonl:2: got \'{"t": 1}\'; expected {"text"'),
        ("a.jsonl", b"{\n", 3, "a.jsonl:1: the line is not JSON"),
        ("a.jsonl", b'{"tokens": []}\n', 3, "with one word at least"),
        ("a.txt", b"ok\n\xff\n", 3, "a.txt:2: byte 0xff is not utf-8; convert"),
        ("none.txt", None, 3, "there is no such file; give a file, or -"),
    ],
)
def test_what_is_wrong_in_a_file(student, tmp_path, capsys, name, content, code, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert code_of("predict", student, str(tmp_path / name), "--column", "1") == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_what_is_no_export(tmp_path, capsys):
    assert code_of("predict", str(tmp_path), "-") == 4
    assert "give a folder that raykd export wrote" in " ".join(capsys.readouterr().err.split())


def test_what_lies_near_an_export_says_what_to_write(student, tmp_path, capsys):
    run = next((Path(student).parent / "store/runs").iterdir())
    assert code_of("predict", str(run), "a.txt") == 4
    said = " ".join(capsys.readouterr().err.split())
    assert f"write raykd export {run} student, then raykd predict student a.txt" in said
    (tmp_path / "both").mkdir()
    (tmp_path / "both/de").symlink_to(student)
    assert code_of("predict", str(tmp_path / "both"), "a.txt") == 4
    said = " ".join(capsys.readouterr().err.split())
    assert f"holds one model for each language (de); write raykd predict {tmp_path}/both/de a.txt" in said


def test_a_file_is_not_written_over_and_never_over_itself(student, tmp_path, capsys):
    source = tmp_path / "in.txt"
    source.write_text("London\n")
    for words in ((), ("--overwrite",)):
        assert code_of("predict", student, str(source), "--out", str(source), *words) == StoreError.exit_code
        assert source.read_text() == "London\n"
    assert "is the file to label" in capsys.readouterr().err
    assert code_of("predict", student, str(source), "--out", str(tmp_path / "no/out")) == StoreError.exit_code
    assert "its folder does not exist" in capsys.readouterr().err


def test_columns_and_texts_are_told_apart_where_the_name_says_nothing(student, tmp_path):
    labels = raykd.load(student).label(SENTENCES)
    columns = "\n\n".join("\n".join(f"{word}\tO\tNIL" for word in words) for words in SENTENCES)
    (tmp_path / "en-test.txt").write_text(columns * 9)
    call("predict", student, str(tmp_path / "en-test.txt"), "--out", str(tmp_path / "out"))
    block = (tmp_path / "out").read_text().split("\n\n")[0].split("\n")
    assert [line.split("\t")[-1] for line in block] == labels[0]
    (tmp_path / "names.txt").write_text("London\nAda Lovelace lives\n")
    call("predict", student, str(tmp_path / "names.txt"), "--out", str(tmp_path / "texts"))
    assert [json.loads(line)["text"] for line in (tmp_path / "texts").read_text().splitlines()] == [
        "London",
        "Ada Lovelace lives",
    ]


def test_a_column_of_texts_is_labelled(student, tmp_path):
    (tmp_path / "in.tsv").write_text("1\tLondon\n2\tAda lives\n")
    call(
        "predict",
        student,
        str(tmp_path / "in.tsv"),
        "--format",
        "tsv",
        "--column",
        "1",
        "--out",
        str(tmp_path / "out"),
    )
    assert [json.loads(line)["text"] for line in (tmp_path / "out").read_text().splitlines()] == [
        "London",
        "Ada lives",
    ]
