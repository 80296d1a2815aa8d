"""CoNLL columns in all the forms that published corpora have, and what is said of malformed ones."""

import gzip
import json

import pytest
from pydantic import ValidationError

from raykd.corpora import corpus_id, read_corpus
from raykd.corpora.conll import ConllSource
from raykd.errors import CorpusError
from tests.corpora.parts import read


def source(root, **settings):
    plain = {"source": "conll", "root": str(root), "languages": ["xx"], "train": "t", "dev": "t", "test": "t"}
    return ConllSource.model_validate_json(json.dumps(plain | settings))


def train(tmp_path, data, **settings):
    """(tokens, tags) of every sentence of one file with these bytes."""
    (tmp_path / "t").write_bytes(data if isinstance(data, bytes) else data.encode())
    return [(s.tokens, s.tags) for s in read(source(tmp_path, **settings))["train"]]


INDEXED = {"columns": {"token": 1, "tag": 2}}
PETER = [(["Peter", "went"], ["B-PER", "O"]), (["Home"], ["O"])]


@pytest.mark.parametrize(
    ("data", "settings"),
    [
        ("Peter\tB-PER\nwent\tO\n\nHome\tO\n\n", {}),
        ("Peter B-PER\nwent O\n\nHome O", {}),  # no line end and no empty line after the last sentence
        ("Peter\tB-PER\r\nwent\tO\r\n\r\nHome\tO\r\n", {}),  # Windows
        ("\ufeffPeter\tB-PER\nwent\tO\n \t \nHome\tO\n", {}),  # byte-order mark; white space parts sentences
        ("\n\n\nPeter\tB-PER\nwent\tO\n\n\n\nHome\tO\n\n\n", {}),
        ("0\tPeter\tB-PER\n1\twent\tO\n\n0\tHome\tO\n", {"columns": {"token": 1, "tag": 2}}),
        ("Peter\tB-PER\tx\twhy\nwent\tO\n\nHome\tO\tz\n", {"columns": {"tag": 1}}),  # more columns behind
        ("Peter  NNP   B-PER\nwent VBD O\n\nHome NN O\n", {"separator": "space"}),
        (
            "-DOCSTART- -X- O\n\nPeter NNP B-PER\nwent VBD O\n\n-DOCSTART- -X- O\n\nHome NN O\n",
            {},
        ),
        *(
            (f"{start}\n\n0{cut}Peter{cut}B-PER\n1{cut}went{cut}O\n\n{start}\n0{cut}Home{cut}O\n", INDEXED)
            for start, cut in (
                ("0 -DOCSTART- O", " "),
                ("1\t-DOCSTART-\tO", "\t"),
                ("0\t-DOCSTART- -X-\tO", "\t"),
                ("-DOCSTART- -X- O", " "),
            )
        ),
        ("# text = Peter went\nPeter\tB-PER\n# in between\nwent\tO\n\n# 2\nHome\tO\n", {}),
        ("// a\nPeter\tB-PER\nwent\tO\n\nHome\tO\n", {"comment": "//"}),
        (
            gzip.compress(b"Peter\tB-PER\nwent\tO\n\nHome\tO\n", mtime=0),
            dict.fromkeys(("train", "dev", "test"), "t.gz"),
        ),
    ],
)
def test_forms_of_the_same_text(tmp_path, data, settings):
    if "train" in settings:
        (tmp_path / "t.gz").write_bytes(data)
    assert train(tmp_path, data, **settings) == PETER


def test_iob1_tags_are_handed_over_as_written(tmp_path):
    assert train(tmp_path, "A I-PER\nB B-PER\n") == [(["A", "B"], ["I-PER", "B-PER"])]


def test_the_word_hash_is_not_a_comment(tmp_path):
    data = "# newdoc\n# sent_id = 3\n#\tO\n1\tB-X\n\n# 2 sentences\n#tag\tO\n"
    assert train(tmp_path, data) == [(["#", "1"], ["O", "B-X"]), (["#tag"], ["O"])]
    with_index = "# text\tof\tcolumns\n1\t#\tO\n2\tyes\tO\n"
    assert train(tmp_path, with_index, columns={"token": 1, "tag": 2}) == [(["#", "yes"], ["O", "O"])]
    assert train(tmp_path, "# O\n\n#x O\n", comment="") == [(["#"], ["O"]), (["#x"], ["O"])]


def test_comments_between_spaces(tmp_path):
    """They have as many columns as words, and are told by their sign, or by what is between their columns."""
    written = "# sent_id = 5\nPeter NNP X B-PER\n# id a\tdomain=en\nwent VBD X O\n\n# # # O\nHome NN X O\n"
    assert train(tmp_path, written) == [(["Peter", "went"], ["B-PER", "O"]), (["#", "Home"], ["O", "O"])]
    with pytest.raises(CorpusError, match="t:2: the line has the names of columns"):
        train(tmp_path, "# my corpus\nword\ttag\nPeter\tB-PER\n")


@pytest.mark.parametrize("tag", ["B-ORG,B-GPE", "B-ORG/B-GPE", "B-ORG B-GPE", "B-ORG;I-GPE"])
def test_several_labels_with_another_sign_are_refused(tmp_path, tag):
    (tmp_path / "t").write_text(f"Peter\tB-PER\nwent\tO\nBonn\t{tag}\n")
    with pytest.raises(CorpusError, match=r"inside each other .*separate the labels of a word by \|"):
        read_corpus(source(tmp_path, duplicates="keep", overlaps="keep"))


@pytest.mark.parametrize("word", ["a\u00a0b", "\u00a0", "a\u2028b", "a\u0085b", "a\x0bb", "a\x1cb"])
def test_unicode_space_is_part_of_a_word(tmp_path, word):
    for cut in ("\t", " "):
        assert train(tmp_path, f"{word}{cut}O\nb{cut}O\n") == [([word, "b"], ["O", "O"])]


def test_words_with_spaces_between_tabs(tmp_path):
    assert train(tmp_path, "Việt Nam\tB-LOC\n", separator="tab") == [(["Việt Nam"], ["B-LOC"])]


def test_other_encodings(tmp_path):
    data = "Müller\tB-PER\n".encode("latin-1")
    assert train(tmp_path, data, encoding="latin-1") == [(["Müller"], ["B-PER"])]
    assert train(tmp_path, data, encoding={"xx": "latin-1"}) == [(["Müller"], ["B-PER"])]


def test_origin_is_the_line_of_the_first_word(tmp_path):
    (tmp_path / "t").write_text("# c\nA\tO\nB\tO\n\n\nC\tO\n")
    assert [s.origin for s in read(source(tmp_path))["train"]] == [
        (str(tmp_path / "t"), 2),
        (str(tmp_path / "t"), 6),
    ]


def test_unlabelled_text_needs_no_tag_column(tmp_path):
    (tmp_path / "t").write_text("A\tO\n")
    (tmp_path / "u").write_text("A\nB\n\nC\n")
    parts = read(source(tmp_path, unlabelled="u"))
    assert [(s.tokens, s.tags) for s in parts["unlabelled"]] == [(["A", "B"], None), (["C"], None)]


def test_patterns_find_files_per_language(tmp_path):
    for name in ("da_a-train", "da_b-train", "sv_a-train"):
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / name).write_text(f"{name}\tO\n")
    pattern = "data/{lang}_*-train"
    config = source(tmp_path, languages=["sv", "da"], train=pattern, dev=pattern, test=pattern)
    assert [(s.language, s.tokens) for s in read(config)["train"]] == [
        ("sv", ["sv_a-train"]),
        ("da", ["da_a-train"]),
        ("da", ["da_b-train"]),
    ]


@pytest.mark.parametrize(
    ("data", "settings", "line", "problem", "hint"),
    [
        ("A\tO\nB\n", {}, 2, "1 column where 2 are expected: 'B'", "correct the line"),
        ("A\tO\nB\tO\tO\n", {}, 2, "3 columns where 2 are expected", "corpus.columns"),
        (
            "1\tA\tO\n2\tB\n",
            {"columns": {"token": 1, "tag": 2}},
            2,
            "2 columns where at least 3",
            "correct the line",
        ),
        ("A\tO\n\tO\n", {}, 2, "the word is empty", "write the word, or remove the line"),
        ("A\tO\nB\t\n", {}, 2, "the word 'B' has no tag", "write the tag"),
        ("A O\nB O\n", {"separator": "tab"}, 1, "one column cannot be both word and tag", "corpus.separator"),
        (
            "A\tO\n",
            {"columns": {"tag": 4}},
            1,
            "column 4 (tag) is not there: 2 columns between tabs",
            "columns.tag",
        ),
        ("A\tO\n", {"columns": {"token": -3}}, 1, "column -3 (token) is not there", "corpus.columns.token"),
        (
            "0\tA\tO\n1\tB\tO\n\n0\tC\tO\n",
            {},
            None,
            "has running numbers, not words",
            "columns.token, for example to 1",
        ),
        (
            b"A\tO\nM\xfcller\tO\n",
            {},
            2,
            "byte 0xfc is not utf-8",
            "set corpus.encoding: latin-1; the line then reads 'Müller\\tO'",
        ),
        ("A\tO\n", {"encoding": "utf-9"}, None, "there is no text encoding 'utf-9'", "corpus.encoding"),
        ("A\tO\rB\tO\r\rC\tO\r", {}, 1, "a carriage return is inside the line", "end lines with LF or CR LF"),
        ("A\tO\nB\t\0O\n", {}, 2, "a zero byte is inside the line", "restore the file"),
        ("", {}, None, "the file is empty", "add sentences"),
        ("\n \n", {}, None, "the file is empty", "add sentences"),
        ("# only\n# comments\n", {}, None, "has no sentence", "fill it"),
    ],
)
def test_faults_are_reported_with_file_line_and_hint(tmp_path, data, settings, line, problem, hint):
    with pytest.raises(CorpusError) as caught:
        train(tmp_path, data, **settings)
    error = caught.value
    assert (error.file, error.line) == (str(tmp_path / "t"), line)
    assert problem in error.problem
    assert hint in error.hint


def test_a_missing_file_names_the_nearest(tmp_path):
    (tmp_path / "de").mkdir()
    (tmp_path / "de" / "train.txt").write_text("A\tO\n")
    with pytest.raises(CorpusError, match=r"de/trian.txt: no such file; use one of de/train.txt"):
        read(source(tmp_path, train="de/trian.txt"))
    with pytest.raises(CorpusError, match=r"no file matches; use one of de/train.txt"):
        read(source(tmp_path, train="de/*.conll"))
    with pytest.raises(CorpusError, match=r"no such file; set corpus.root: .* has no files"):
        read(source(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"languages": ["da", "da"]}, "languages names da twice"),
        ({"languages": ["da", "sv"]}, "da and sv would both be read from 't': write {lang} into train"),
        ({"dev": None}, "dev and test are needed: name both, or draw them with split"),
        ({"split": {}}, "remove dev and test"),
        ({"unlabelled": "rest"}, "unlabelled: rest takes what cap leaves: set cap"),
        ({"cap": {"de": 3}}, "cap names de, not among languages (xx)"),
        ({"scheme": {"de": "iob1"}}, "scheme names de"),
        ({"encoding": {"de": "latin-1"}}, "encoding names de"),
        ({"train": "/etc/passwd"}, "train must be below root"),
        ({"split": {}, "dev": None, "test": None, "dev_cap": 3}, "large dev and test are: remove dev_cap"),
        ({"scheme": "iobes"}, "'bmes', 'bmewo', 'io', 'flat' or 'auto'"),
        ({"trian": "x"}, "Extra inputs are not permitted"),
    ],
)
def test_settings_that_do_not_agree_are_refused(tmp_path, settings, message):
    with pytest.raises(ValueError, match="valid") as caught:
        source(tmp_path, **settings)
    assert message in str(caught.value)


def write(root, **files):
    for name, text in files.items():
        (root / name).write_text(text)


def test_patterns_and_columns_of_their_own(tmp_path):
    write(tmp_path, t="1\tA\tO\n", d="1\tB\tO\n", da="C O x\n", sv="D O x\n", u="E\n")
    parts = {"train": {"xx": "t", "default": "{lang}"}, "dev": {"xx": "d", "default": "{lang}"}}
    corpus_read = read(
        source(
            tmp_path, languages=["da", "xx", "sv"], **parts, test={"xx": "d", "default": "{lang}"},
            unlabelled={"sv": "u"}, columns={"xx": {"token": 1, "tag": 2}, "default": {"tag": 1}},
        )
    )  # fmt: skip
    assert [(s.language, s.tokens) for s in corpus_read["train"]] == [
        ("da", ["C"]),
        ("xx", ["A"]),
        ("sv", ["D"]),
    ]
    assert [(s.language, s.tokens, s.tags) for s in corpus_read["unlabelled"]] == [("sv", ["E"], None)]


def test_targets_are_read_without_dev_or_tags_and_need_no_other_files(tmp_path):
    write(tmp_path, **{"xx.t": "A O\n", "xx.d": "B O\n", "xx.e": "C O\n"})
    write(tmp_path, **{"da.t": "D\n", "da.e": "E O\n", "sv.e": "F O\n"})
    targets = {"unlabelled_languages": ["da"], "zero_shot_languages": ["sv"]}
    settings = {"languages": ["xx", "da", "sv"], "train": "{lang}.t", "dev": "{lang}.d", "test": "{lang}.e"}
    corpus_read = read(source(tmp_path, **targets, **settings, columns={"da": {"tag": -1}}))
    assert [(s.language, s.tags) for s in corpus_read["train"]] == [("xx", ["O"]), ("da", None)]
    assert [s.language for s in corpus_read["dev"]] == ["xx"]
    assert [s.tokens for s in corpus_read["test"]] == [["C"], ["E"], ["F"]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unlabelled_languages": ["de"]}, "zero_shot_languages name de, not among languages (da, sv)"),
        ({"zero_shot_languages": ["da", "sv"]}, "no language with labels is left"),
        ({"zero_shot_languages": ["da"], "unlabelled_languages": ["da"]}, "name da twice"),
        ({"dev": {"da": "d"}}, "dev has nothing for sv (labelled): name it there, or add default"),
        ({"dev": {"de": "d"}}, "dev names de"),
        ({"train": {"da": "t"}, "unlabelled_languages": ["sv"]}, "train has nothing for sv (unlabelled)"),
        ({"test": {"da": "../x", "default": "{lang}"}}, "test must be below root"),
        ({"test": {"da": "t", "sv": "t"}}, "da and sv would both be read from 't': write {lang} into test"),
        ({"columns": {"de": {"token": 1}}}, "columns names de"),
        ({"unlabelled": {"sv": "rest"}}, "unlabelled: rest takes what cap leaves"),
    ],
)
def test_patterns_and_roles_that_do_not_agree_are_refused(tmp_path, settings, message):
    plain = {"languages": ["da", "sv"], "train": "{lang}", "dev": "{lang}d", "test": "{lang}t"}
    with pytest.raises(ValueError, match="valid") as caught:
        source(tmp_path, **(plain | settings))
    assert message in str(caught.value)


def test_a_target_whose_files_are_not_named_may_bring_text_alone(tmp_path):
    write(tmp_path, **{"a.t": "A O\n", "a.e": "C O\n", "text": "D\n", "test": "E O\n"})
    corpus_read = read(
        source(
            tmp_path, languages=["da", "sv"], unlabelled_languages=["sv"], train={"da": "a.t"}, dev="a.t",
            test={"da": "a.e", "sv": "test"}, unlabelled={"sv": "text"},
        )
    )  # fmt: skip
    assert [(s.language, s.tokens) for s in corpus_read["unlabelled"]] == [("sv", ["D"])]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("columns", [{}, {"tag": 1}, {"xx": {"token": 1, "tag": 2}, "default": {"tag": 1}}])
def test_columns_for_all_or_each_survive_json(tmp_path, columns):
    configured = source(tmp_path, columns=columns)
    assert ConllSource.model_validate_json(configured.model_dump_json()) == configured
    written = configured.model_dump(mode="json", exclude_defaults=True).get("columns", {})
    assert {**columns, **written} == written


def test_a_fault_inside_one_languages_columns_is_reported_once(tmp_path):
    with pytest.raises(ValidationError) as caught:
        source(tmp_path, columns={"xx": {"tokn": 1}})
    assert [error["loc"] for error in caught.value.errors()] == [("columns", "each", "xx", "tokn")]


def test_damaged_compressed_files_are_reported(tmp_path):
    data = bytearray(gzip.compress(b"Peter\tB-PER\n" * 100, mtime=0))
    data[20] ^= 255
    (tmp_path / "t.gz").write_bytes(data)
    parts = dict.fromkeys(("train", "dev", "test"), "t.gz")
    with pytest.raises(CorpusError, match=r"t\.gz: the file cannot be read"):
        read(source(tmp_path, **parts))


def whole(tmp_path, train, **settings):
    """The corpus of this training text; dev and test are another sentence."""
    (tmp_path / "t").write_text(train)
    (tmp_path / "other").write_text("elsewhere\tO\n")
    return read_corpus(source(tmp_path, dev="other", test="other", **settings))


@pytest.mark.parametrize("tag", ["B-", "I-"])
@pytest.mark.parametrize(
    ("scheme", "problem"), [("auto", "some tags are spans"), ("iob2", "is not of scheme iob2")]
)
def test_a_tag_without_a_type_is_reported_with_its_line(tmp_path, tag, scheme, problem):
    with pytest.raises(CorpusError, match=problem) as caught:
        whole(tmp_path, f"Peter\tB-PER\n\nwent\t{tag}\n", scheme=scheme)
    assert caught.value.line == 3


def test_a_file_in_bilou_is_the_same_corpus_as_in_bioes(tmp_path):
    text = "Ada\tB-PER\nKing\tI-PER\nLovelace\tE-PER\nin\tO\nLondon\tS-LOC\n"
    bioes = whole(tmp_path, text)
    bilou = whole(tmp_path, text.replace("E-", "L-").replace("S-", "U-"))
    assert bilou.report.schemes == {"xx": "bilou"}
    assert corpus_id(bilou) == corpus_id(bioes)


def test_a_type_may_be_called_o(tmp_path):
    corpus = whole(tmp_path, "Peter\tB-O\nwent\tO\n")
    assert set(corpus.tag_set.tags) == {"O", "B-O", "I-O", "E-O", "S-O"}
