"""A file has the same words and labels for all readers."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

import pytest

import raykd
from raykd.forms.tag_schemes import SpanScheme, from_bioes
from raykd.metrics.bioes import read_spans
from raykd.spec import load
from raykd.sweep.sweep import Sweep
from tests.sweep.in_process import call, without_ray

Words = list[tuple[str, str]]
"""The words of a sentence with their tags in IOB2."""
PEOPLE = ("Ada", "Grace Hopper", "Zoë", "Mary-Ann", "O'Neill", "王芳")
PLACES = ("Paris", "São\u00a0Paulo", "New York", "Łódź", "Ulm", "東京")
SHAPES = ("{0} lives in {1} .", "Never did {0} see 10\u00a0000 {1} again", "{1} is cold", "# {0} went")
PARTS = {"train": 48, "dev": 24, "test": 24}


def sentences(first: int, count: int) -> list[Words]:
    return [_sentence(number) for number in range(first, first + count)]


def _sentence(number: int) -> Words:
    words: Words = []
    for word in SHAPES[number % len(SHAPES)].split(" "):
        if word not in ("{0}", "{1}"):
            words.append((word, "O"))
            continue
        names, kind = (PEOPLE, "PER") if word == "{0}" else (PLACES, "LOC")
        name = names[(number // 4 + number) % len(names)].split(" ")
        words += [(part, f"{'I' if place else 'B'}-{kind}") for place, part in enumerate(name)]
    return [*words, (f"w{number}", "O")]


def _pos(word: str) -> str:
    return "PROPN" if word[0].isupper() else "NUM" if word[-1].isdigit() else "ADP"


def _lines(sentence: Words, separator: str, *, index: bool = False) -> str:
    rows = [
        (str(i), word, _pos(word), tag) if index else (word, tag)
        for i, (word, tag) in enumerate(sentence, start=1)
    ]
    return "".join(f"{separator.join(row)}\n" for row in rows)


def tabs(corpus: Sequence[Words]) -> str:
    return "\n".join(_lines(sentence, "\t") for sentence in corpus)


def spaces(corpus: Sequence[Words]) -> str:
    """With comments that have a tab, document starts without an empty line, a BOM, Windows' line ends."""
    blocks = [f"# text =\ta b\tc\n{_lines(sentence, ' ')}" for sentence in corpus]
    return ("\ufeff" + "-DOCSTART- -X- O\n".join(blocks)).replace("\n", "\r\n")


def numbered(corpus: Sequence[Words]) -> str:
    return "\n".join(f"# id = 1\n{_lines(sentence, chr(9), index=True)}" for sentence in corpus)


def packed(corpus: Sequence[Words]) -> bytes:
    return gzip.compress(tabs(corpus).encode())


def bioes(corpus: Sequence[Words]) -> str:
    from raykd.forms.tag_schemes import to_bioes

    tags = [to_bioes([tag for _, tag in sentence], "iob2")[0] for sentence in corpus]
    both = [
        [(word, tag) for (word, _), tag in zip(sentence, sentence_tags, strict=True)]
        for sentence, sentence_tags in zip(corpus, tags, strict=True)
    ]
    return tabs(both)


def bmes(corpus: Sequence[Words]) -> str:
    return bioes(corpus).replace("\tI-", "\tM-")


def underscores(corpus: Sequence[Words]) -> str:
    """Tags spelled otherwise, and spaces around cells."""
    return tabs(corpus).replace("-PER", "_PER \t").replace("-LOC", "_LOC \t").replace("\tO\n", "\tO\t\n")


def offsets(corpus: Sequence[Words]) -> str:
    """Spans of characters, as doccano writes them; the words are those of the splitter."""
    rows = []
    for sentence in corpus:
        text = " ".join(word for word, _ in sentence)
        starts = list(accumulate((len(word) + 1 for word, _ in sentence), initial=0))
        spans = [[starts[a], starts[b] - 1, kind] for a, b, kind in read_spans([tag for _, tag in sentence])]
        rows.append({"id": 1, "text": text, "label": spans})
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def conllu(corpus: Sequence[Words]) -> str:
    """A multi-word token in front of each sentence; the parts of speech are the tags."""
    return "\n".join(
        "# text = x\n1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n"
        + "".join(
            f"{i}\t{word}\t_\t{_pos(word)}\t_\t_\t_\t_\t_\t_\n"
            for i, (word, _) in enumerate(sentence, start=1)
        )
        for sentence in corpus
    )


def word_objects(corpus: Sequence[Words]) -> str:
    rows = [
        {"id": 7, "tokens": [word for word, _ in sentence], "ner_tags": [tag for _, tag in sentence]}
        for sentence in corpus
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _texts(corpus: Sequence[Words]) -> list[tuple[str, str]]:
    return [
        (
            " ".join(word for word, _ in sentence),
            "bad" if any(word in ("cold", "see") for word, _ in sentence) else "good",
        )
        for sentence in corpus
    ]


def classes(corpus: Sequence[Words]) -> str:
    return "".join(f"{text}\t{label}\n" for text, label in _texts(corpus))


def comma_separated(corpus: Sequence[Words]) -> str:
    file = io.StringIO()
    csv.writer(file).writerows([("text", "label"), *((f"{text},", label) for text, label in _texts(corpus))])
    return file.getvalue()


def text_objects(corpus: Sequence[Words]) -> str:
    rows = [{"review": text, "stars": label} for text, label in _texts(corpus)]
    return "".join(json.dumps(row) + "\n" for row in rows)


FORMATS: dict[str, Callable[[Sequence[Words]], str | bytes]] = {
    "tabs.conll": tabs, "spaces.txt": spaces, "numbered.iob2": numbered, "packed.conll.gz": packed,
    "bioes.conll": bioes, "bmes.conll": bmes, "underscores.conll": underscores, "offsets.jsonl": offsets,
    "treebank.conllu": conllu, "words.jsonl": word_objects, "classes.tsv": classes,
    "classes.csv": comma_separated, "classes.jsonl": text_objects,
}  # fmt: skip


SCHEMES: dict[SpanScheme, tuple[str, ...]] = {
    "iob2": ("tabs.conll", "spaces.txt", "numbered.iob2", "packed.conll.gz", "underscores.conll"),
    "bmes": ("bmes.conll",),
}  # fmt: skip
"""Scheme of the labels that `predict` writes → the formats whose tags have it; others have BIOES, or no scheme."""
STUDENTS = {"names": "tabs.conll", "pos": "treebank.conllu", "classes": "classes.csv"}
"""Kind of labels → the format that a student of them learns from."""


@pytest.fixture(scope="module")
def students(tmp_path_factory):
    """The export of a student of each kind, made by `init`, `sweep --small` and `export`."""
    exports = {}
    for kind, name in STUDENTS.items():
        folder = tmp_path_factory.mktemp(kind)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            _write(name)
            call("init", "mine")
            with without_ray():
                call("sweep", "sweep.yaml", "--small", "--set", "training.learning_rate=0.02")
            call("export", "mine-small#best", "student")
        exports[kind] = str(folder / "student")
    return exports


def _write(name: str) -> str:
    """The files of a format in the folder `mine`; the one of the test part."""
    Path("mine").mkdir()
    first, ending = 0, name.partition(".")[2]
    for part, count in PARTS.items():
        written = FORMATS[name](sentences(first, count))
        data = written if isinstance(written, bytes) else written.encode()
        Path(f"mine/{part}.{ending}").write_bytes(data)
        first += count
    return f"mine/test.{ending}"


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.slow
def test_the_same_words_and_labels_at_every_step(students, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    test, ending = _write(name), name.partition(".")[2].removesuffix(".gz")
    call("init", "mine")
    corpus = Sweep(load("sweep.yaml")).preparation.corpus
    words = corpus.parts["test"]["tokens"].to_pylist()
    gold = [corpus.tag_set.decode(tags) for tags in corpus.parts["test"]["tags"].to_pylist()]
    if corpus.unit == "word" and name != "offsets.jsonl":
        first = PARTS["train"] + PARTS["dev"]
        assert words == [[word for word, _ in sentence] for sentence in sentences(first, PARTS["test"])]
    kind = "classes" if corpus.unit == "sentence" else "pos" if ending == "conllu" else "names"
    call("predict", students[kind], test, "--out", f"out.{ending}")
    labels = raykd.load(students[kind]).label(words)
    assert len({label for sentence_labels in labels for label in sentence_labels}) > 1, (
        "labels that are all the same prove nothing"
    )
    assert _labels_in(f"out.{ending}", ending, words) == _as_written(labels, name)
    capsys.readouterr()
    call("evaluate", students[kind], test, "--json")
    figures = json.loads(capsys.readouterr().out)["exports"][0]["together"]["labels"]
    assert {label: row["support"] for label, row in figures.items() if row["support"]} == _support(gold)


def _as_written(labels: list[list[str]], name: str) -> list[list[str]]:
    """Labels in the scheme of the files."""
    scheme = next((scheme for scheme, names in SCHEMES.items() if name in names), None)
    return [from_bioes(sentence_labels, scheme) if scheme else sentence_labels for sentence_labels in labels]


def _labels_in(out: str, ending: str, words: list[list[str]]) -> list[list[str]]:
    """The labels that `predict` wrote; of columns the words before them are those that it read."""
    text = Path(out).read_text().removeprefix("\ufeff")
    if ending in ("jsonl", "tsv", "csv"):
        rows = [json.loads(line) for line in text.splitlines()]
        if rows[0].get("words"):  # of texts
            assert [[word["text"] for word in row["words"]] for row in rows] == words
            return [[word["label"] for word in row["words"]] for row in rows]
        return [
            row["labels"] if "labels" in row else [row.get("predicted_label", row.get("label"))]
            for row in rows
        ]
    blocks_of_words: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.startswith(("# text", "# id", "1-2\t")):
            continue
        if not line or line.startswith("-DOCSTART-"):
            blocks_of_words += [[]] if blocks_of_words[-1] else []
        else:
            blocks_of_words[-1].append(line)
    blocks = [[line.replace("\t", " ").split(" ") for line in block] for block in blocks_of_words if block]
    assert [len(block) for block in blocks] == list(map(len, words))
    assert all(
        word in cells
        for sentence_words, block in zip(words, blocks, strict=True)
        for word, cells in zip(sentence_words, block, strict=True)
    )
    return [[cells[-1] for cells in block] for block in blocks]


def _support(gold: list[list[str]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    spans = any(tag.startswith("S-") for tags in gold for tag in tags)
    for tags in gold:
        for label in [kind for _, _, kind in read_spans(tags)] if spans else tags:
            counts[label] = counts.get(label, 0) + 1
    return counts
