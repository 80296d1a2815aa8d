"""CoNLL-U: multi-word tokens, empty nodes, what is malformed, and the `conllu` package as an oracle."""

import json

import conllu
import pytest

from raykd.corpora.conllu import ConlluSource, parse
from raykd.errors import CorpusError
from tests.corpora.parts import read
from tests.corpora_root import corpora_root

REST = "_\t_\t0\troot\t_\t_"


def row(number, form, upos="X", xpos="x1"):
    return f"{number}\t{form}\t_\t{upos}\t{xpos}\t{REST[2:]}"


def source(root, **settings):
    plain = {
        "source": "conllu",
        "root": str(root) or ".",
        "languages": ["xx"],
        "train": "t",
        "dev": "t",
        "test": "t",
    }
    return ConlluSource.model_validate_json(json.dumps(plain | settings))


def train(tmp_path, lines, **settings):
    (tmp_path / "t").write_text("\n".join(lines), encoding="utf-8")
    return read(source(tmp_path, **settings))["train"]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("1\tAda\tB-PER\n2\tsaw\tO\n\n", "{token: 1, tag: 2}"),
        ("Ada\tNNP\tB-PER\nsaw\tVB\tO\n", "{token: 0, tag: 2}"),
        ("# text\n0 Ada B-PER\n1 saw O\n", "{token: 1, tag: 2}"),
    ],
)
def test_a_file_of_few_columns_is_recognised(tmp_path, text, columns):
    (tmp_path / "t").write_text(text)
    with pytest.raises(CorpusError) as caught:
        read(source(tmp_path))
    assert caught.value.hint == f"set corpus.source: conll and corpus.columns: {columns}"
    assert "where CoNLL-U has 10" in caught.value.problem


def test_words_are_read_and_other_nodes_passed_over(tmp_path):
    lines = [
        "# text = vámonos al mar",
        "1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_",
        row(1, "vamos", "VERB"),
        row(2, "nos", "PRON"),
        "2.1\tempty\t_\tNOUN\t_\t_\t_\t_\t_\t_",
        "3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_",
        row(3, "a", "ADP"),
        row(4, "el", "DET"),
        row(5, "mar azul", "NOUN"),
        "",
        row(1, "#", "SYM"),
    ]
    first, second = train(tmp_path, lines)
    assert first.tokens == ["vamos", "nos", "a", "el", "mar azul"]
    assert first.tags == ["VERB", "PRON", "ADP", "DET", "NOUN"]
    assert (second.tokens, second.tags) == (["#"], ["SYM"])
    assert [s.tags for s in train(tmp_path, lines, tag="xpos")] == [["x1"] * 5, ["x1"]]


@pytest.mark.parametrize(
    ("lines", "line", "problem"),
    [
        ([row(1, "a"), "2\tb\tNOUN"], 2, "3 columns where 10 are expected"),
        ([row(1, "a") + "\tmore"], 1, "11 columns where 10 are expected"),
        ([row(1, "a"), row(3, "b")], 2, "word id '3' where 2 is expected"),
        ([row(1, "a"), row(1, "b")], 2, "word id '1' where 2 is expected"),
        (["", row("x", "a")], 2, "word id 'x' where 1 is expected"),
        ([row(1, "")], 1, "the word is empty"),
        ([row(1, "a"), row(2, "b", upos="_")], 2, "'b' has no upos"),
        ([row(1, "a"), row("2-", "b")], 2, "word id '2-' where 2 is expected"),
        ([row(1, "a"), row("x.1", "b")], 2, "word id 'x.1' where 2 is expected"),
        ([row(1, "a"), row("-2", "b")], 2, "word id '-2' where 2 is expected"),
        (["# text"], None, "has no sentence"),
    ],
)
def test_faults_are_reported_with_file_and_line(tmp_path, lines, line, problem):
    with pytest.raises(CorpusError) as caught:
        train(tmp_path, lines)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "t"), line)
    assert problem in caught.value.problem


@pytest.mark.parametrize("name", ["ta_ttb", "vi_vtb", "fr_sequoia", "el_gdt", "en_ewt"])
def test_real_treebanks_read_as_the_conllu_package_reads_them(name):
    text = corpora_root("ud", f"{name}-ud-test.conllu").read_text(encoding="utf-8")
    text = "\n\n".join(text.split("\n\n")[:150])  # the oracle is slow
    sentences = list(parse(source(""), text.split("\n"), file="t", language="xx", part="train"))
    expected = conllu.parse(text)
    assert len(sentences) == len(expected) >= 120
    for sentence, tokens in zip(sentences, expected, strict=True):
        words = [token for token in tokens if isinstance(token["id"], int)]
        assert sentence.tokens == [token["form"] for token in words]
        assert sentence.tags == [token["upos"] for token in words]
