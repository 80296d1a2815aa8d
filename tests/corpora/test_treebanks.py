"""Corpora with trees: from CoNLL-U to tables, the store and back."""

import json
from collections import Counter

import conllu
import numpy as np
import pyarrow as pa
import pytest
from pydantic import TypeAdapter, ValidationError
from typer.testing import CliRunner

from raykd.cli.corpus import app
from raykd.corpora import (
    PARTS,
    CorpusConfig,
    Sentence,
    corpus_id,
    make_corpus,
    open_corpus,
    read_corpus,
    write_corpus,
)
from raykd.corpora.describe import describe_corpus
from raykd.corpora.preview import preview
from raykd.corpora.source import SourceConfig
from raykd.errors import CorpusError
from raykd.forms.tree.codes import encode_tree
from raykd.storage.store import Storage
from tests.corpora.parts import read
from tests.corpora.test_real_corpora import SENTENCES, UD
from tests.corpora_root import corpora_root


def text(*sentences, upos="UPOS"):
    """CoNLL-U of sentences of (word, part of speech, head, relation)."""
    blocks = []
    for words in sentences:
        lines = [
            f"{number}\t{word}\t_\t{pos}\tx{pos}\t_\t{head}\t{relation}\t_\t_\n"
            for number, (word, pos, head, relation) in enumerate(words, 1)
        ]
        blocks.append("".join(lines))
    return "\n".join(blocks)


ADA = [("Ada", "PROPN", 2, "nsubj:pass"), ("saw", "VERB", 0, "root"), ("it", "PRON", 2, "obj")]
RAIN = [("rain", "NOUN", 0, "root"), ("!", "PUNCT", 1, "punct")]
GO = [("go", "VERB", 0, "root")]
TREE = {"dev": text(GO), "test": text([("sun", "NOUN", 0, "root")])}


def config(folder, **settings):
    plain = {"source": "conllu", "tag": "tree", "root": str(folder), "languages": ["en"]}
    plain |= {part: part for part in ("train", "dev", "test")}
    return TypeAdapter(CorpusConfig).validate_json(json.dumps(plain | settings))


def files(folder, **parts):
    for part, content in (TREE | parts).items():
        (folder / part).write_text(content, encoding="utf-8")
    return folder


def rows(corpus, part):
    """(words, relations, heads, parts of speech) of each sentence."""
    return [
        (
            row["tokens"],
            row["tags"] and corpus.tag_set.decode(row["tags"]),
            row["heads"],
            row["pos"] and [corpus.pos[number] for number in row["pos"]],
        )
        for row in corpus.parts[part].to_pylist()
    ]


def test_heads_relations_and_parts_of_speech_are_read(tmp_path):
    corpus = read_corpus(config(files(tmp_path, train=text(ADA, RAIN))))
    assert rows(corpus, "train") == [
        (["Ada", "saw", "it"], ["nsubj:pass", "root", "obj"], [2, 0, 2], ["PROPN", "VERB", "PRON"]),
        (["rain", "!"], ["root", "punct"], [0, 1], ["NOUN", "PUNCT"]),
    ]
    assert corpus.tag_set.form.scheme == "flat"
    assert corpus.pos == ("NOUN", "PRON", "PROPN", "PUNCT", "VERB")
    assert corpus.report.pos is not None
    assert corpus.report.pos.origin == "gold, column UPOS"
    for table in corpus.parts.values():
        assert table.schema.field("heads").type == table.schema.field("pos").type == pa.list_(pa.int16())


def test_the_column_of_parts_of_speech_and_the_relations_are_chosen(tmp_path):
    corpus = read_corpus(config(files(tmp_path, train=text(ADA, RAIN)), pos="xpos", relations="universal"))
    assert rows(corpus, "train")[0][1:] == (
        ["nsubj", "root", "obj"], [2, 0, 2], ["xPROPN", "xVERB", "xPRON"],
    )  # fmt: skip
    assert corpus.report.pos is not None
    assert corpus.report.pos.origin == "gold, column XPOS"


def test_heads_count_words_alone(tmp_path):
    """Multi-word tokens and empty nodes are not counted."""
    lines = text(ADA).splitlines(keepends=True)
    lines.insert(1, "1.1\tnobody\t_\tNOUN\t_\t_\t_\t_\t2:nsubj\t_\n")
    lines.insert(2, "2-3\tsawit\t_\t_\t_\t_\t_\t_\t_\t_\n")
    corpus = read_corpus(config(files(tmp_path, train="".join(lines))))
    assert rows(corpus, "train")[0][0::2] == (["Ada", "saw", "it"], [2, 0, 2])


def test_unlabelled_text_has_no_heads_and_the_parts_of_speech_that_are_known(tmp_path):
    some = text([("Ada", "_", "_", "_"), ("ran", "VERB", "_", "_")], [("rain", "X", 7, "_")])
    files(tmp_path, train=text(ADA), unlabelled=some)
    corpus = read_corpus(config(tmp_path, unlabelled="unlabelled"))
    assert rows(corpus, "unlabelled") == [
        (["Ada", "ran"], None, None, None),
        (["rain"], None, None, ["X"]),
    ]
    assert "1 sentence of unlabelled en has no parts of speech" in corpus.report.warnings()
    (tmp_path / "unlabelled").write_text("Ada ran .\n")
    plain = read_corpus(config(tmp_path, unlabelled="unlabelled", unlabelled_form="sentences"))
    assert rows(plain, "unlabelled") == [(["Ada", "ran", "."], None, None, None)]


def test_the_rest_of_the_labelled_sentences_loses_its_heads(tmp_path):
    corpus = read_corpus(config(files(tmp_path, train=text(ADA, RAIN)), unlabelled="rest", cap=1))
    (words, relations, heads, pos) = rows(corpus, "unlabelled")[0]
    assert (relations, heads) == (None, None)
    assert pos == {"Ada": ["PROPN", "VERB", "PRON"], "rain": ["NOUN", "PUNCT"]}[words[0]]
    # Dev and test have a verb and a noun; what only the rest has, has a number too.
    assert {"PROPN", "PUNCT"} <= set(corpus.pos)


def with_heads(*heads, relations=None):
    return text(
        [(f"w{i}", "X", head, (relations or ["dep"] * len(heads))[i]) for i, head in enumerate(heads)]
    )


@pytest.mark.parametrize(
    ("train", "line", "problem"),
    [
        (with_heads("x", 0), 1, "the head of 'w0' is 'x', which is no number"),
        (with_heads(0, 3), 2, "the head of 'w1' is word 3, and the sentence has 2"),
        (with_heads(0, 2), 2, "the head of 'w1' is the word itself"),
        (with_heads(2, 3, 1), 1, "the sentence has no root"),
        (with_heads(0, 1, 0), 3, "'w2' is another root beside 'w0'"),
        (with_heads(0, 3, 2), 2, "words 2, 3 are each other's heads"),
        (with_heads(0, 1, relations=["root", "_"]), 2, "'w1' has no deprel; annotate it"),
        (text([("a", "_", 0, "root")]), 1, "'a' has no upos; annotate it, or set corpus.pos (upos, xpos)"),
        (text([("a", "", 0, "root")]), 1, "'a' has no upos"),
        (f"{text(ADA)}\n{with_heads(0, 9)}", 6, "the head of 'w1' is word 9"),
    ],
)
def test_faults_are_reported_with_file_and_line(tmp_path, train, line, problem):
    treebank = config(files(tmp_path, train=train))
    for look in (read_corpus, preview):
        with pytest.raises(CorpusError) as caught:
            look(treebank)
        assert (caught.value.file, caught.value.line) == (f"{tmp_path}/train", line)
        assert problem in f"{caught.value.problem}; {caught.value.hint}"


def test_ten_faults_are_reported_together(tmp_path):
    treebank = config(files(tmp_path, train="\n".join([with_heads(0, 9)] * 12)))
    with pytest.raises(CorpusError) as caught:
        read_corpus(treebank)
    assert [fault.line for fault in (caught.value, *caught.value.more_errors)] == list(range(2, 32, 3))
    assert "these are the first 10 faults" in str(caught.value)
    assert "set corpus.on_error: skip" in str(caught.value)


def test_faulty_trees_are_skipped_and_counted(tmp_path):
    train = "\n".join([text(ADA), with_heads(0, 0), with_heads("_")])
    corpus = read_corpus(config(files(tmp_path, train=train), on_error="skip", most_skipped=1))
    assert [words for words, *_ in rows(corpus, "train")] == [["Ada", "saw", "it"]]
    assert corpus.report.skipped == {"train": {"en": 2}}
    assert "'w1' is another root beside 'w0'" in corpus.report.examples["skipped"]["train"]["en"][0]


def test_settings_of_trees_have_no_effect_without_them(tmp_path):
    for settings in ({"pos": "xpos"}, {"relations": "universal"}):
        with pytest.raises(ValidationError, match=f"{next(iter(settings))} has no effect without trees"):
            config(tmp_path, tag="deprel", **settings)
    with pytest.raises(ValidationError, match="relations are no spans: remove scheme"):
        config(tmp_path, scheme="iob2")


def test_trees_and_other_sentences_are_not_one_corpus():
    parts = {
        part: [Sentence([part], ["root"], "en", heads=[0], pos=["X"])] for part in ("train", "dev", "test")
    }
    parts["dev"].append(Sentence(["b"], ["root"], "en"))
    with pytest.raises(CorpusError, match=r"no tree, where other sentences have trees, .*'b'"):
        make_corpus(parts, SourceConfig(languages=("en",)))


def test_written_and_opened_again(tmp_path):
    files(tmp_path, train=text(ADA, RAIN), unlabelled=text([("Ada", "_", "_", "_")]))
    corpus = read_corpus(config(tmp_path, unlabelled="unlabelled"))
    store = Storage(str(tmp_path / "store"))
    opened = open_corpus(store, write_corpus(corpus, store))
    assert (opened.pos, opened.tag_set, opened.report) == (corpus.pos, corpus.tag_set, corpus.report)
    for part in PARTS:
        assert opened.parts[part].equals(corpus.parts[part])
        assert rows(opened, part) == rows(corpus, part)
    manifest = json.loads((tmp_path / "store" / "corpora" / corpus_id(corpus) / "corpus.json").read_text())
    assert "gold, column UPOS" in json.dumps(manifest)


def test_restricted_and_cut_corpora_keep_their_trees(tmp_path):
    for language, words in (("en", ADA), ("nl", RAIN)):
        for part in ("train", "dev", "test"):
            (tmp_path / f"{language}.{part}").write_text(text([(f"{part}", "X", 0, "root")], words))
    treebank = config(
        tmp_path, languages=["en", "nl"], overlaps="keep",
        **{part: f"{{lang}}.{part}" for part in ("train", "dev", "test")},
    )  # fmt: skip
    corpus = read_corpus(treebank)
    dutch = corpus.select_languages(["nl"])
    assert dutch.pos == corpus.pos
    assert rows(dutch, "train")[1] == (["rain", "!"], ["root", "punct"], [0, 1], ["NOUN", "PUNCT"])
    assert dutch.report.pos is not None
    assert dutch.report.pos.sentences["train"] == {"nl": 2}


@pytest.mark.parametrize(
    "changed",
    [
        [("Ada", "PROPN", 2, "nsubj:pass"), ("saw", "VERB", 0, "root"), ("it", "PRON", 1, "obj")],
        [("Ada", "PROPN", 2, "nsubj:pass"), ("saw", "VERB", 0, "root"), ("it", "VERB", 2, "obj")],
        [("Ada", "PROPN", 2, "obj"), ("saw", "VERB", 0, "root"), ("it", "PRON", 2, "obj")],
    ],
)
def test_every_difference_gives_another_identity(tmp_path, changed):
    sentences = text(ADA, RAIN, [("so", "PRON", 0, "nsubj:pass")])
    files(tmp_path, test=sentences, train=text(ADA), dev=text(ADA))
    settings = {"overlaps": "keep"}
    before = corpus_id(read_corpus(config(tmp_path, **settings)))
    files(tmp_path, test=sentences, train=text(changed), dev=text(ADA))
    assert corpus_id(read_corpus(config(tmp_path, **settings))) != before


def test_a_corpus_without_trees_has_neither_heads_nor_parts_of_speech(tmp_path):
    corpus = read_corpus(config(files(tmp_path, train=text(ADA, RAIN)), tag="deprel"))
    assert corpus.parts["train"].schema.names == ["tokens", "tags", "language"]
    assert (corpus.pos, corpus.report.pos) == ((), None)


def test_a_treebank_is_described_and_shown(tmp_path):
    crossing = [("a", "X", 3, "dep"), ("b", "X", 4, "dep"), ("c", "X", 0, "root"), ("d", "X", 3, "dep")]
    dev = text([("go", "VERB", 0, "root"), ("it", "X", 1, "obj")], ADA)
    files(tmp_path, train=text(ADA, crossing, RAIN), dev=dev, unlabelled="so .\n")
    settings = {"unlabelled": "unlabelled", "unlabelled_form": "sentences", "overlaps": "keep"}
    treebank = config(tmp_path, **settings)
    figures = json.loads(json.dumps(describe_corpus(read_corpus(treebank))))
    assert [row.get("projective") for row in figures["parts"]] == [2, None, 2, 1]
    encodings = figures["trees"]["encodings"]
    sentences = {
        part: [
            ([h for _, _, h, _ in sentence], [r for *_, r in sentence], [p for _, p, _, _ in sentence])
            for sentence in words
        ]
        for part, words in (("train", [ADA, crossing, RAIN]), ("dev", [[*GO, ("it", "X", 1, "obj")], ADA]))
    }
    for name, counts in encodings.items():
        train = {label for example in sentences["train"] for label in encode_tree(*example, name)}
        dev_labels = [label for example in sentences["dev"] for label in encode_tree(*example, name)]
        missing = sum(label not in train for label in dev_labels)
        assert counts == {"labels": len(train), "not_in_train": pytest.approx(missing / len(dev_labels))}
    plain = treebank.model_dump(mode="json", exclude_none=True)
    (tmp_path / "mine.yaml").write_text(f"task: pos\ncorpus: {json.dumps(plain)}\n")
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["show", str(tmp_path / "mine.yaml")])
    assert "trees with 5 relations" in result.output
    assert "\nparts of speech: gold, column UPOS\n" in result.output
    assert "heads as labels by relative_position: " in result.output
    tree = "  ┌──   a  dep\n  │ ┌── b  dep\n──┤ │   c  root\n  └─┘   d  dep\n"
    assert f"a tree of en:\n{tree}" in result.output
    assert "66.7 %" in result.output


@pytest.mark.parametrize("language", SENTENCES["ud"])
def test_real_treebanks_read_as_the_conllu_package_reads_them(language):
    root = corpora_root("ud")
    treebank = config(root.parent, languages=[language], **UD)
    for part, sentences in read(treebank).items():
        count = SENTENCES["ud"][language][("train", "dev", "test").index(part)]
        assert len(sentences) == count
        path = next(root.glob(f"{language}_*-ud-{part}.conllu"))
        content = path.read_text(encoding="utf-8")
        ids = [line.split("\t")[0] for line in content.split("\n") if line and line[0] != "#"]
        assert sum(len(sentence.tokens) for sentence in sentences) == sum(map(str.isdecimal, ids))
        some = "\n\n".join(content.split("\n\n")[:50])  # the oracle is slow
        for sentence, tokens in zip(sentences, conllu.parse(some), strict=False):
            words = [token for token in tokens if isinstance(token["id"], int)]
            assert sentence.heads == [token["head"] for token in words]
            assert sentence.tags == [token["deprel"] for token in words]
            assert sentence.pos == [token["upos"] for token in words]


def test_the_treebanks_have_what_is_no_word():
    """Without such lines, the counts of words above would not show that they are left out."""
    counts = Counter(
        "-" if "-" in line.partition("\t")[0] else "."
        for path in corpora_root("ud").glob("*-train.conllu")
        for line in path.read_text(encoding="utf-8").split("\n")
        if line and line[0] != "#" and not line.partition("\t")[0].isdecimal()
    )
    assert counts["-"] > 1000
    assert counts["."] > 10


def test_the_treebanks_together():
    languages = list(SENTENCES["ud"])
    treebanks = config(
        corpora_root(), languages=languages, relations="universal", overlaps="keep", duplicates="keep", **UD
    )
    corpus = read_corpus(treebanks)
    for place, part in enumerate(("train", "dev", "test")):
        counts = {language: lengths[place] for language, lengths in SENTENCES["ud"].items()}
        assert corpus.report.sentences[part] == counts
        assert corpus.report.pos is not None
        assert corpus.report.pos.sentences[part] == counts
        table = corpus.parts[part]
        tokens, *columns = (
            table[name].combine_chunks().value_lengths().to_numpy()
            for name in ("tokens", "heads", "pos", "tags")
        )
        assert all(np.array_equal(lengths, tokens) for lengths in columns)
    assert not [label for label in corpus.labels if ":" in label]
    assert len(corpus.labels) <= 37  # of Universal Dependencies
    assert len(corpus.pos) == 17
