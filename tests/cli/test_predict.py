"""`raykd predict`: files of each form with an exported model, and what is wrong in them."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import raykd
from raykd.corpora.column_files import read_beginning
from raykd.corpora.files import read_lines
from raykd.corpora.word_columns import layout_of
from raykd.deploy.export import export_run
from raykd.deploy.label_columns import _read_blocks
from raykd.errors import StoreError
from raykd.forms.tag_schemes import from_bioes
from raykd.storage.store import Storage
from raykd.training.prepare import prepare
from tests.sweep.in_process import call, code_of
from tests.training.small import executed, recipe, student_of, train_teachers

SENTENCES = [["Ada", "Lovelace", "lives", "in", "London"], ["London"], ["Zoë", "ist", "hier", "."]]


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    learns = {"batch_tokens": 60, "learning_rate": 2e-2, "dropout": 0.0}
    student_recipe = recipe(objective={"kind": "gold"}, schedule={"epochs": 8}, training=learns)
    ready = prepare(student_recipe, Storage(str(folder / "store")))
    train_teachers(ready)
    run = student_of(ready, student_recipe)
    executed(ready, run)
    export_run(ready.storage.child(*run.folder), Storage(str(folder / "student")), store=ready.storage)
    return str(folder / "student")


def test_the_start_of_a_document_is_no_word():
    lines = ["-DOCSTART- -X- O", "", "0 -DOCSTART- O", "0 Ada O", "1 sleeps O"]
    start = read_beginning(iter(lines), "#")
    layout, rest = layout_of(start, "x"), start.lines
    assert [block.words for block in _read_blocks(rest, layout, "x")] == [["Ada", "sleeps"]]


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
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [answer["text"] for answer in answers] == texts
    assert [[word["label"] for word in answer["words"]] for answer in answers[:3]] == raykd.load(
        student
    ).label(SENTENCES)
    assert answers[3] == {"text": "", "words": [], "spans": []}


def test_texts_are_marked_for_people(student, tmp_path, capsys):
    text = "Ada Lovelace lives in London ."
    (tmp_path / "in.txt").write_text(f"{text}\n\n{text}\n")
    call("predict", student, str(tmp_path / "in.txt"), "--marked")
    lines = capsys.readouterr().out.splitlines()
    (answer,) = raykd.load(student)([text])
    marked = text
    for span in reversed(answer.spans):
        marked = f"{marked[: span.start]}[{span.text} {span.label}]{marked[span.end :]}"
    assert answer.spans
    assert [line for line in lines if line] == [marked, marked]


def test_marks_are_of_texts(student, tmp_path, capsys):
    (tmp_path / "in.jsonl").write_text('{"text": "London"}\n')
    assert code_of("predict", student, str(tmp_path / "in.jsonl"), "--marked") == 3
    assert "--marked is for texts, but the file is jsonl" in capsys.readouterr().err


def test_json_lines_keep_what_they_have(student, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": 1, "text": "London"}, {"id": 2, "tokens": SENTENCES[0]}, {"id": 3, "text": "Ada lives."}]
    source.write_text("\n".join(map(json.dumps, rows)) + "\n")
    for extra in ((), ("--int8",)):
        call("predict", student, str(source), "--out", str(out), "--overwrite", *extra)
        answers = [json.loads(line) for line in out.read_text().splitlines()]
        assert [answer["id"] for answer in answers] == [1, 2, 3]
        assert len(answers[1]["labels"]) == 5
        assert [word["text"] for word in answers[2]["words"]] == ["Ada", "lives", "."]


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
        ("a.txt", b"ok\n\xff\n", 3, "a.txt:2: byte 0xff is not utf-8; write the file in UTF-8"),
        ("none.txt", None, 3, "there is no such file; give a file, or -"),
    ],
)
def test_what_is_wrong_in_a_file(student, tmp_path, capsys, name, content, code, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    column = ("--column", "1") if name.endswith(".conll") else ()
    assert code_of("predict", student, str(tmp_path / name), *column) == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_what_is_no_export(tmp_path, capsys):
    assert code_of("predict", str(tmp_path), "-") == 4
    assert "give a folder that raykd export wrote" in " ".join(capsys.readouterr().err.split())


def test_what_lies_near_an_export_says_what_to_write(student, tmp_path, capsys):
    run = next((Path(student).parent / "store/runs").iterdir())
    assert code_of("predict", str(run), "a.txt") == 4
    message = " ".join(capsys.readouterr().err.split())
    assert f"run raykd export {run} student, then raykd predict student a.txt" in message
    (tmp_path / "both").mkdir()
    (tmp_path / "both/de").symlink_to(student)
    assert code_of("predict", str(tmp_path / "both"), "a.txt") == 4
    message = " ".join(capsys.readouterr().err.split())
    assert f"holds one model for each language (de); run raykd predict {tmp_path}/both/de a.txt" in message


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


LINES = [
    f"{word}{{0}}{tag}" for word, tag in zip(SENTENCES[0], ("B-PER", "I-PER", "O", "O", "B-LOC"), strict=True)
]


@pytest.mark.parametrize("separator", ["\t", " "])
def test_columns_get_labels_in_the_scheme_and_with_the_separator_of_the_file(
    student, tmp_path, capsys, separator
):
    lines = [line.format(separator) for line in LINES]
    # A tab in a comment says nothing of the columns; a document's start ends a sentence; blank lines stay.
    written = [
        "# text = Ada\tlives",
        *lines,
        f"-DOCSTART- -X-{separator}O",
        *lines,
        "",
        "",
        "# the end",
        *lines,
    ]
    (tmp_path / "in.conll").write_text("\n".join(written) + "\n")
    call("predict", student, str(tmp_path / "in.conll"), "--out", str(tmp_path / "out"))
    (bioes,) = raykd.load(student).label([SENTENCES[0]])
    labels = from_bioes(bioes, "iob2")
    labelled = [f"{line}{separator}{label}" for line, label in zip(lines, labels, strict=True)]
    expected = [written[0], *labelled, written[6], *labelled, "", "", "# the end", *labelled, "", ""]
    assert (tmp_path / "out").read_text().split("\n") == expected
    between = "tabs" if separator == "\t" else "spaces"
    message = " ".join(capsys.readouterr().err.split())
    assert f"in.conll: words in column 0, between {between}; labels are written in iob2" in message
    assert "predict: 3 sentences" in message
    call(
        "predict", student, str(tmp_path / "in.conll"), "--scheme", "bioes", "--out", str(tmp_path / "bioes")
    )
    assert [line.split(separator)[-1] for line in (tmp_path / "bioes").read_text().split("\n")[1:6]] == bioes


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (
            "1\tO\n\nAda\tB-PER\nlives\tO\n",
            ["1", "Ada", "lives"],
        ),  # a numbered heading is no column of numbers
        ("The O\n10\u00a0000 O\nSão\u00a0Paulo B-LOC\n", ["The", "10\u00a0000", "São\u00a0Paulo"]),
        ("\ufeffAda\tO\r\nlives\tO\r\n", ["Ada", "lives"]),
        (
            "1\tx\tAda\n2\ty\tlives\n\n1\tx\tin\n2\ty\tParis\n\n1\tx\tand\n2\ty\tRome\n3\tx\ttoo\n",
            ["Ada", "lives", "in", "Paris", "and", "Rome", "too"],
        ),
    ],
)
def test_the_words_of_columns(student, tmp_path, written, words):
    """Those of the reader of corpora, also of a packed file."""
    (tmp_path / "in.conll.gz").write_bytes(gzip.compress(written.encode()))
    start = read_beginning(read_lines(Storage(str(tmp_path)), "in.conll.gz", "utf-8"), "#")
    layout, rest = layout_of(start, "x"), start.lines
    assert [word for block in _read_blocks(rest, layout, "x") for word in block.words] == words
    call("predict", student, str(tmp_path / "in.conll.gz"), "--out", str(tmp_path / "out"))
    lines = [line for line in (tmp_path / "out").read_text().split("\n") if line]
    assert [len(re.split("[\t ]", line)) for line in lines] == [
        len(re.split("[\t ]", written.split("\n")[0])) + 1
    ] * len(words)


def test_a_document_without_empty_lines_is_labelled_in_pieces(student, tmp_path):
    words = [*("word",) * 900, ".", *("other",) * 900]
    (tmp_path / "in.conll").write_text("".join(f"{word}\tO\n" for word in words))
    call("predict", student, str(tmp_path / "in.conll"), "--out", str(tmp_path / "out"))
    labels = raykd.load(student).label([words[:901], words[901:]])
    lines = (tmp_path / "out").read_text().split("\n")
    assert [line.split("\t")[-1] for line in lines if line] == [*labels[0], *labels[1]]


@pytest.mark.parametrize(
    ("name", "written", "texts"),
    [
        ("in.tsv", "id\ttext\n1\tAda lives here\n2\tParis is far\n", ["Ada lives here", "Paris is far"]),
        ("in.csv", 'id,text\n1,"Ada lives here"\n2,"Paris, is\nfar"\n', ["Ada lives here", "Paris, is\nfar"]),
        ("in.jsonl", '{"sentence": "Ada lives"}\n{"sentence": "Go home"}\n', ["Ada lives", "Go home"]),
    ],
)
def test_the_texts_of_a_table(student, tmp_path, name, written, texts):
    (tmp_path / name).write_text(written)
    call("predict", student, str(tmp_path / name), "--out", str(tmp_path / "out"))
    read = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [row.get("text", row.get("sentence")) for row in read] == texts


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        (
            "a.json",
            '[\n {"text": "London"}\n]\n',
            "a.json: the file is not read: JSON, and not one object per line",
        ),
        ("a.conll", "token\tlabel\nAda\tO\n", "a.conll:1: the line has the names of columns, not a word"),
        ("a.jsonl", '{"text": "x"}\n{"text": "\\ud800"}\n', "a.jsonl:2: half of a surrogate pair"),
        ("a.jsonl", '{"text": "x"}\n{"text": "x", "id": NaN}\n', "a.jsonl:2: the line is not JSON"),
        ("a.csv", "id,text\n1,one two\n2,three, four\n", "a.csv: the file is not read: CSV"),
    ],
)
def test_what_predict_refuses(student, tmp_path, capsys, name, written, message):
    (tmp_path / name).write_text(written)
    (tmp_path / "out").write_text("before")
    assert (
        code_of("predict", student, str(tmp_path / name), "--out", str(tmp_path / "out"), "--overwrite") == 3
    )
    assert message in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "out").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "out"])


def test_a_field_of_the_file_is_not_written_over(student, tmp_path, capsys):
    rows = [{"text": "London", "spans": [1]}, {"tokens": ["Ada"], "spans": []}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    call("predict", student, str(tmp_path / "a.jsonl"), "--out", str(tmp_path / "out"))
    first, second = (json.loads(line) for line in (tmp_path / "out").read_text().splitlines())
    assert first["spans"] == [1]
    assert first["predicted_spans"] == json.loads(json.dumps(asdict(raykd.load(student)("London"))["spans"]))
    assert second["labels"] == raykd.load(student).label([["Ada"]])[0]
    (tmp_path / "b.jsonl").write_text('{"text": "London"}\n{"text": "Paris", "spans": 3}\n')
    assert code_of("predict", student, str(tmp_path / "b.jsonl")) == 3
    message = " ".join(capsys.readouterr().err.split())
    assert (
        "b.jsonl:2: the line has a field 'spans', which `raykd predict` writes, and the first line has none"
        in message
    )


def test_the_standard_output_is_utf_8_whatever_the_terminal(student, tmp_path):
    (tmp_path / "in.txt").write_text("Zoë likes 東京 👍🏽\n")
    command = [str(Path(sys.executable).with_name("raykd")), "predict", student, str(tmp_path / "in.txt")]
    process = subprocess.run(
        command, env=os.environ | {"PYTHONIOENCODING": "latin-1"}, capture_output=True, check=True
    )
    assert json.loads(process.stdout)["text"] == "Zoë likes 東京 👍🏽"


def test_json_lines_that_have_labels_already(student, tmp_path):
    """Also where the first one is as the model would have it."""
    (right,) = raykd.load(student).label([SENTENCES[0]])
    rows = [{"tokens": SENTENCES[0], "labels": right}, {"tokens": SENTENCES[1], "labels": ["X"]}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    call("predict", student, str(tmp_path / "a.jsonl"), "--out", str(tmp_path / "b.jsonl"))
    first_answers = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert [row["labels"] for row in first_answers] == [right, ["X"]]
    assert first_answers[0]["predicted_labels"] == right
    call("predict", student, str(tmp_path / "b.jsonl"), "--out", str(tmp_path / "c.jsonl"))
    second_answers = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [row["predicted_predicted_labels"] for row in second_answers] == [
        row["predicted_labels"] for row in first_answers
    ]


@pytest.mark.parametrize(
    ("name", "written", "texts"),
    [
        (
            "names.txt",
            "Ada Lovelace\n\nGrace Hopper\n\nAlan Turing\n",
            ["Ada Lovelace", "", "Grace Hopper", "", "Alan Turing"],
        ),
        ("one.CSV", 'text\n"Ada lives, here."\n"Go"\n', ["Ada lives, here.", "Go"]),
        ("blank.txt", "\n\n", ["", ""]),
        ("empty.txt", "", []),
    ],
)
def test_short_texts_are_no_columns(student, tmp_path, name, written, texts):
    (tmp_path / name).write_text(written)
    call("predict", student, str(tmp_path / name), "--out", str(tmp_path / "out"))
    assert [json.loads(line)["text"] for line in (tmp_path / "out").read_text().splitlines()] == texts


def test_columns_without_labels_are_labelled_whatever_the_file_is_called(student, tmp_path):
    (tmp_path / "in.txt").write_text("1\tAda\n2\tlives\n\n1\tNew York\n2\tsleeps\n" * 9)
    call("predict", student, str(tmp_path / "in.txt"), "--out", str(tmp_path / "out"))
    rows = [line.split("\t") for line in (tmp_path / "out").read_text().split("\n")[:2]]
    assert [row[:2] for row in rows] == [["1", "Ada"], ["2", "lives"]]
    assert [row[2] for row in rows] == raykd.load(student).label([["Ada", "lives"]])[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("in.txt", "--column", "1"), "--column has no effect, as the file is text"),
        (("in.txt", "--scheme", "iob2"), "--scheme has no effect, as the file is text"),
        (("in.txt", "--out", "folder", "--overwrite"), "cannot be written"),
    ],
)
def test_what_has_no_effect_or_no_place_is_refused(student, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "in.txt").write_text("London\n")
    assert code_of("predict", student, *words) in (3, 4)
    assert message in " ".join(capsys.readouterr().err.split())


def test_packed_text_comes_through_a_pipe(student, tmp_path, monkeypatch, capsys):
    packed = gzip.compress(b"Ada lives\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    call("predict", student, "-")
    assert json.loads(capsys.readouterr().out.splitlines()[0])["text"] == "Ada lives"
