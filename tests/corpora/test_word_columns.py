"""Words in columns for the unlabelled part, whatever the other files are."""

import pytest

from raykd.corpora import read_corpus
from raykd.errors import CorpusError
from tests.corpora.test_plain_text import text
from tests.corpora.test_real_corpora import UD
from tests.corpora.test_treebanks import config, files, rows
from tests.corpora_root import corpora_root

CONLLU = "# text = don't go\n1-2\tdon't\t_\n1\tdo\t_\n2\tn't\t_\n2.1\tnot\t_\n3\tgo\t_\n"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("0\tOn\tO\n1\t1\tO\n\n0\tUp\tO\n", [["On", "1"], ["Up"]]),
        ("1 On O\n2 it O\n", [["On", "it"]]),
        ("-DOCSTART- -X-\n\nOn IN O\n# # O\n\nUp IN O\n", [["On", "#"], ["Up"]]),
        ("1 CD O\n000 CD O\n\n1 CD O\n", [["1", "000"], ["1"]]),
        ("0\n1\n", [["0", "1"]]),
        ("On\nit\n", [["On", "it"]]),
        (f"{CONLLU}\n1\t# \t_\n", [["do", "n't", "go"], ["#"]]),
        ("# id 7\n0\t#\tO\n1\tit\tO\textra\n", [["#", "it"]]),
    ],
)
def test_the_word_is_the_first_column_or_behind_its_number(tmp_path, written, expected):
    sentences = text(tmp_path, written, unlabelled_form="columns")
    assert [sentence.tokens for sentence in sentences] == expected
    assert {sentence.tags for sentence in sentences} == {None}


def test_the_lines_that_are_looked_at_first_are_read_like_the_others(tmp_path):
    written = "".join(f"0\tword{i}\tO\n1\t.\tO\n\n" for i in range(1500))
    sentences = text(tmp_path, written, unlabelled_form="columns")
    assert [(s.tokens, s.origin[1]) for s in sentences] == [
        ([f"word{i}", "."], 3 * i + 1) for i in range(1500)
    ]


def test_faults_name_the_line(tmp_path):
    for written, line, problem in (
        ("0\ta\tO\n1\n", 2, "1 column where at least 2 are expected"),
        ("0\ta\tO\n1\t\tO\n", 2, "the word is empty"),
        ("0\ta\tO\n1\t\udcff\tO\n", 2, "byte 0xff is not utf-8"),
        ("On this occasion\nHe failed to gain it\nNo\n", 2, "5 columns where most lines with a word have 3"),
    ):
        with pytest.raises(CorpusError) as caught:
            text(tmp_path, written.encode(errors="surrogateescape"), unlabelled_form="columns")
        assert caught.value.line == line
        assert problem in caught.value.problem
    assert caught.value.hint == "if each line is a sentence set corpus.unlabelled_form: sentences"


def test_a_treebank_with_text_of_a_corpus_of_names(tmp_path):
    files(tmp_path, train="1\tran\t_\tVERB\t_\t_\t0\troot\t_\t_\n", unlabelled="0\tAda\tB-PER\n1\tran\tO\n")
    corpus = read_corpus(config(tmp_path, unlabelled="unlabelled", unlabelled_form="columns"))
    assert rows(corpus, "unlabelled") == [(["Ada", "ran"], None, None, None)]
    with pytest.raises(CorpusError, match=r"set corpus\.unlabelled_form: columns$"):
        read_corpus(config(tmp_path, unlabelled="unlabelled"))


def test_real_text_beside_a_real_treebank():
    root = corpora_root("wikineural").parent
    pattern = "wikineural/{lang}/*.conllu"
    corpus_config = config(
        root, languages=["en", "ta"], unlabelled={"en": pattern}, unlabelled_form="columns",
        unlabelled_cap=3000, **UD,
    )  # fmt: skip
    corpus = read_corpus(corpus_config)
    assert corpus.report.sentences["unlabelled"] == {"en": 3000, "ta": 0}
    assert "3,000 sentences of unlabelled en have no parts of speech" in corpus.report.warnings()
    treebank_words = {
        tuple(line.split("\t")[1] for line in block.splitlines())
        for path in root.glob("wikineural/en/*.conllu")
        for block in path.read_text().split("\n\n")
        if block.strip()
    }
    assert treebank_words.issuperset(tuple(words) for words, *_ in rows(corpus, "unlabelled"))


def test_a_document_without_empty_lines_is_cut_behind_a_sentence_and_counted(tmp_path):
    words = [*("word",) * 900, ".", *("other",) * 900, *("more",) * 900]
    (tmp_path / "doc").write_text("".join(f"{word}\tO\n" for word in words) + "\nEnd\tO\n")
    files(tmp_path, train="1\tran\t_\tVERB\t_\t_\t0\troot\t_\t_\n")
    corpus = read_corpus(config(tmp_path, unlabelled="doc", unlabelled_form="columns"))
    pieces = [tokens for tokens, *_ in rows(corpus, "unlabelled")]
    assert pieces == [words[:901], words[901:1901], words[1901:], ["End"]]
    assert corpus.report.notes["endless"]["unlabelled"] == {"en": 1}
    (warning,) = (message for message in corpus.report.warnings() if "no empty lines" in message)
    assert (
        "1 document of unlabelled en has no empty lines and was cut into sentences of at most 1,000 words"
        in warning
    )
    assert f"{tmp_path}/doc:1: 2,701 words in 3 pieces" in warning
