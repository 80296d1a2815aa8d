"""Text classification as TSV."""

import json

import pytest

from raykd.corpora.corpus import read_corpus
from raykd.corpora.tsv import TsvSource, read
from raykd.errors import CorpusError
from tests.corpora_root import corpora_root


def source(root, **settings):
    plain = {"source": "tsv", "root": str(root), "languages": ["en"], "train": "t", "dev": "t", "test": "t"}
    return TsvSource.model_validate_json(json.dumps(plain | settings))


def test_words_and_label(tmp_path):
    (tmp_path / "t").write_text("label\ttext\n1\ta fine  film\n\n0\tdull\n")
    (tmp_path / "u").write_text("label\ttext\n\tnobody knows\n")
    parts = read(source(tmp_path, header=True, columns={"text": 1, "label": 0}, unlabelled="u"))
    assert [(s.tokens, s.tags, s.label, s.origin) for s in parts["train"]] == [
        (["a", "fine", "film"], None, "1", (str(tmp_path / "t"), 2)),
        (["dull"], None, "0", (str(tmp_path / "t"), 4)),
    ]
    assert [(s.tokens, s.label) for s in parts["unlabelled"]] == [(["nobody", "knows"], None)]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("good\t1\nbad\n", 2, "1 columns between tabs where at least 2 are expected"),
        ("good\t1\n \t0\n", 2, "the text or its class is empty"),
        ("good\t\n", 1, "the text or its class is empty"),
    ],
)
def test_faults_are_told_with_file_and_line(tmp_path, text, line, problem):
    (tmp_path / "t").write_text(text)
    with pytest.raises(CorpusError) as caught:
        read(source(tmp_path))
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "t"), line)
    assert problem in caught.value.problem


def test_sst2_is_read_as_published():
    names = {part: f"{part}.tsv" for part in ("train", "dev", "test")}
    corpus = read_corpus(source(corpora_root("sst2"), **names))
    assert corpus.labels == ("0", "1")
    assert len(corpus.tag_set) == 0
    assert corpus.parts["dev"].num_rows == 872
    assert corpus.parts["test"].num_rows == 1821
    train = corpus.parts["train"]
    dropped = corpus.report.overlaps["train"] + corpus.report.duplicates["train"]
    assert train.num_rows + dropped == 6920
    assert train["tags"].null_count == train.num_rows
    assert train["tokens"][0].as_py()[:4] == ["a", "stirring", ",", "funny"]
    assert train["label"][0].as_py() == "1"
