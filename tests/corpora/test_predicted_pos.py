"""Parts of speech predicted by a model."""

import hashlib
import json
import shutil
from collections import Counter
from functools import partial

import pyarrow as pa
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from raykd import corpora
from raykd.cli.corpus import app
from raykd.corpora import corpus_id, open_corpus, write_corpus
from raykd.corpora.predicted_pos import PosTaggers, PredictedPos
from raykd.corpora.preview import preview as bare_glance
from raykd.corpora.stored_sources import find_corpus, source_key
from raykd.deploy.pos_models import open_pos_model
from raykd.errors import CorpusError
from raykd.serving.labeller import load
from raykd.storage.store import Storage
from tests.corpora.test_treebanks import config, files, rows, text
from tests.serving.trained import of_words

DOGS = [("the", "DET", 2, "det"), ("dog", "NOUN", 3, "nsubj"), ("sees", "VERB", 0, "root")]
CATS = [("a", "DET", 2, "det"), ("cat", "VERB", 0, "root"), (".", "PUNCT", 2, "punct")]
"""Its noun is a verb in the treebank."""
DEV = [("likes", "VERB", 0, "root"), ("the", "DET", 3, "det"), ("house", "X", 1, "obj")]
read_corpus = partial(corpora.read_corpus, open_model=open_pos_model)
glance = partial(bare_glance, open_model=open_pos_model)
TEXT = "the cat likes a house .\nsees the dog\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return of_words(tmp_path_factory.mktemp("pos"))


@pytest.fixture
def copied(model, tmp_path):
    return shutil.copytree(model, tmp_path / "copied")


def treebank(folder, model, **settings):
    files(folder, train=text(DOGS, CATS), dev=text(DEV), unlabelled=TEXT)
    text_settings = {"unlabelled": "unlabelled", "unlabelled_form": "sentences"} | settings
    predicted = {"model": str(model), "replace": text_settings.pop("replace", False)}
    return config(folder, predicted_pos=predicted, **text_settings)


def pos_of(corpus, part):
    return [(words, pos) for words, _, _, pos in rows(corpus, part)]


def predicted(model, corpus, part):
    words = [words for words, *_ in rows(corpus, part)]
    return list(zip(words, load(model).label(words), strict=True))


def test_text_without_parts_of_speech_gets_them(tmp_path, model):
    corpus = read_corpus(treebank(tmp_path, model))
    assert pos_of(corpus, "unlabelled") == predicted(model, corpus, "unlabelled")
    assert pos_of(corpus, "unlabelled")[1] == (["sees", "the", "dog"], ["VERB", "DET", "NOUN"])
    assert rows(corpus, "train")[1] == (
        ["a", "cat", "."], ["det", "root", "punct"], [2, 0, 2], ["DET", "VERB", "PUNCT"],
    )  # fmt: skip
    assert pos_of(corpus, "dev") == [(["likes", "the", "house"], ["VERB", "DET", "X"])]
    report = corpus.report.pos
    assert report.origin == f"gold, column UPOS, and where there are none predicted by {model}"
    assert report.predicted == {part: {"en": 2 * (part == "unlabelled")} for part in corpus.parts}
    assert report.sentences["unlabelled"] == {"en": 2}
    assert not [warning for warning in corpus.report.warnings() if "parts of speech" in warning]


def test_all_parts_of_speech_are_predicted_where_asked_for(tmp_path, model):
    corpus = read_corpus(treebank(tmp_path, model, replace=True))
    for part in corpus.parts:
        assert pos_of(corpus, part) == predicted(model, corpus, part)
    assert pos_of(corpus, "train")[1] == (["a", "cat", "."], ["DET", "NOUN", "PUNCT"])
    assert corpus.report.pos.origin == f"predicted by {model}"
    assert corpus.report.pos.predicted == {
        "train": {"en": 2}, "unlabelled": {"en": 2}, "dev": {"en": 1}, "test": {"en": 1}
    }  # fmt: skip
    gold = config(tmp_path, unlabelled="unlabelled", unlabelled_form="sentences")
    names = {corpus_id(read_corpus(corpus_config)) for corpus_config in (gold, treebank(tmp_path, model))}
    assert len({*names, corpus_id(corpus)}) == 3


@pytest.mark.parametrize("replace", [False, True])
def test_predicted_and_gold_ones_are_compared_in_every_part(tmp_path, model, replace):
    report = read_corpus(treebank(tmp_path, model, replace=replace)).report.pos
    gold = read_corpus(config(tmp_path, unlabelled="unlabelled", unlabelled_form="sentences"))
    for part in ("train", "dev", "test"):
        pairs = zip(pos_of(gold, part), predicted(model, gold, part), strict=True)
        same = [
            a == b
            for (_, gold_pos), (_, predicted_pos) in pairs
            for a, b in zip(gold_pos, predicted_pos, strict=True)
        ]
        counts = (report.compared[part]["en"], report.agreeing[part]["en"])
        assert counts == (len(same), sum(same))
        assert report.accuracy[part] == {"en": sum(same) / len(same)}
    assert report.accuracy["train"]["en"] == 5 / 6
    assert "unlabelled" not in report.accuracy
    assert (
        "; model and treebank agree on 83.3 % of the words of train, 66.7 % of the words of dev, "
        in report.message()
    )


def test_a_treebank_without_parts_of_speech_needs_no_column(tmp_path, model):
    files(tmp_path, **{part: text([("the", "_", 2, "x"), (word, "_", 0, "root")]) for part, word in
                       (("train", "dog"), ("dev", "cat"), ("test", "house"))})  # fmt: skip
    with pytest.raises(CorpusError, match=r"set corpus\.pos \(upos, xpos\) or corpus\.predicted_pos"):
        read_corpus(config(tmp_path))
    for column in ("upos", "xpos"):
        for part in ("train", "dev", "test"):
            lines = (tmp_path / part).read_text().replace("\tx_\t", "\t_\t")
            (tmp_path / part).write_text(lines)
        corpus = read_corpus(config(tmp_path, pos=column, predicted_pos={"model": str(model)}))
        assert pos_of(corpus, "train") == [(["the", "dog"], ["DET", "NOUN"])]
        assert corpus.report.pos.accuracy == {}


def test_each_language_has_its_model(tmp_path, model):
    for language in ("en", "nl"):
        shutil.copytree(model, tmp_path / f"pos_{language}")
        for part, words in (("train", DOGS), ("dev", DEV), ("test", CATS)):
            (tmp_path / f"{language}.{part}").write_text(text(words))
    parts = {part: f"{{lang}}.{part}" for part in ("train", "dev", "test")}
    labels = json.loads((tmp_path / "pos_nl" / "labels.json").read_text())
    switched = {"NOUN": "VERB", "VERB": "NOUN"}
    labels["tags"] = [switched.get(tag, tag) for tag in labels["tags"]]
    rewritten(tmp_path / "pos_nl", "labels.json", json.dumps(labels).encode())
    for folders in (f"{tmp_path}/pos_{{lang}}", {"nl": f"{tmp_path}/pos_nl", "default": str(model)}):
        settings = {"languages": ["en", "nl"], **parts, "predicted_pos": {"model": folders, "replace": True}}
        corpus = read_corpus(config(tmp_path, **settings))
        assert [pos for _, pos in pos_of(corpus, "train")] == [
            ["DET", "NOUN", "VERB"],
            ["DET", "VERB", "NOUN"],
        ]
        report = corpus.report.pos
        assert report.accuracy["train"] == {"en": 1.0, "nl": pytest.approx(1 / 3)}
        assert "100.0 % of the words of train en, 33.3 % of the words of train nl, " in report.message()
        dutch = corpus.select_languages(["nl"]).report.pos
        assert dutch.accuracy["train"] == {"nl": pytest.approx(1 / 3)}
        assert "agree on 33.3 % of the words of train, " in dutch.message()


def rewritten(folder, name, content):
    """Replace a file of an export, together with its checksum in the card."""
    (folder / name).write_bytes(content)
    card = json.loads((folder / "export.json").read_text())
    card["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "export.json").write_text(json.dumps(card))


def refused(config):
    """The same fault where the corpus is looked at, read and found in a store."""
    faults = []
    for look in (
        glance,
        read_corpus,
        lambda config: find_corpus(config, Storage(config.root + "/store"), read_corpus),
    ):
        with pytest.raises(CorpusError) as caught:
            look(config)
        faults.append((caught.value.file, caught.value.line, caught.value.problem, caught.value.hint))
    assert len(set(faults)) == 1
    return faults[0]


def test_folders_without_a_model_of_parts_of_speech_are_refused(tmp_path, copied):
    config = treebank(tmp_path, copied)
    (tmp_path / "dev").write_text("this is not CoNLL-U and would be refused if it were read\n")
    hint = "set corpus.predicted_pos.model to a folder that raykd export wrote of a student of task pos"
    absent = treebank(tmp_path, tmp_path / "absent")
    assert refused(absent) == (
        f"{tmp_path}/absent", None, "there is no exported model: it has no export.json", hint
    )  # fmt: skip
    card = json.loads((copied / "export.json").read_text())
    (copied / "export.json").write_text(json.dumps({**card, "task": "ner"}))
    assert refused(config)[2:] == ("it has a model of task 'ner', not of 'pos'", hint)
    for content in ("{", "[]", json.dumps({**card, "files": {}})):
        (copied / "export.json").write_text(content)
        assert refused(config)[2].startswith("export.json is damaged")


def test_a_reader_that_is_given_nothing_to_open_models_with_says_so(tmp_path, model):
    with pytest.raises(CorpusError) as caught:
        corpora.read_corpus(treebank(tmp_path, model))
    assert (caught.value.file, caught.value.hint) == (
        str(model), "pass open_model=raykd.deploy.pos_models.open_pos_model to what reads the corpus"
    )  # fmt: skip


def test_damaged_models_are_refused(tmp_path, copied):
    config = treebank(tmp_path, copied)
    for name in ("model.onnx", "labels.json", "vocabulary.json"):
        content = (copied / name).read_bytes()
        (copied / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert refused(config)[2].startswith(f"{name} is damaged: its checksum is ")
        (copied / name).unlink()
        assert refused(config)[2:] == (f"it has no {name}", "copy the whole folder that raykd export wrote")
        (copied / name).write_bytes(content)
    read_corpus(config)


def test_labels_that_are_no_parts_of_speech_of_the_treebank_are_refused(tmp_path, model):
    with pytest.raises(CorpusError) as caught:
        read_corpus(treebank(tmp_path, model, pos="xpos"))
    assert caught.value.file == str(model)
    assert caught.value.problem.startswith(
        "it predicts 'DET', 'NOUN', 'NUM', 'PUNCT', 'VERB', and the treebank has xDET, xNOUN, "
    )
    assert caught.value.hint.startswith("set corpus.pos to the column of the model's training")


def test_another_model_makes_the_corpus_be_read_again(tmp_path, copied):
    config, store = treebank(tmp_path, copied), Storage(str(tmp_path / "store"))
    count = Counter()

    def read(config):
        count["read"] += 1
        return read_corpus(config)

    name = find_corpus(config, store, read)[1]
    key = source_key(config)
    assert find_corpus(config, store, read)[1] == name
    assert (count["read"], source_key(config)) == (1, key)
    labels = json.loads((copied / "labels.json").read_text())
    labels["tags"] = ["X" if tag == "VERB" else tag for tag in labels["tags"]]
    rewritten(copied, "labels.json", json.dumps(labels).encode())
    corpus, other_id = find_corpus(config, store, read)
    assert (count["read"], source_key(config) == key, other_id == name) == (2, False, False)
    assert pos_of(corpus, "unlabelled")[1] == (["sees", "the", "dog"], ["X", "DET", "NOUN"])
    stored = open_corpus(store, write_corpus(corpus, store))
    assert stored.report == corpus.report


def test_blocks_are_filled_like_the_whole(tmp_path, model):
    corpus = read_corpus(treebank(tmp_path, model))
    table = pa.concat_tables([corpus.parts["unlabelled"], corpus.parts["train"]]).combine_chunks()
    results = []
    for size in (1, 2, 10):
        taggers = PosTaggers(PredictedPos(model=str(model), replace=True), corpus.languages, open_pos_model)
        batches = taggers.filled(table.to_batches(max_chunksize=size), "train", corpus.pos)
        results.append((pa.Table.from_batches(batches).combine_chunks(), taggers.agreeing, taggers.predicted))
    assert results[0] == results[1] == results[2]
    assert results[0][0].drop_columns("pos").equals(table.drop_columns("pos"))


def test_what_is_predicted_is_shown(tmp_path, model):
    config = treebank(tmp_path, model)
    plain = config.model_dump(mode="json", exclude_none=True)
    (tmp_path / "mine.yaml").write_text(f"task: pos\ncorpus: {json.dumps(plain)}\n")
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["show", str(tmp_path / "mine.yaml")])
    sentence = (
        f"parts of speech: gold, column UPOS, and where there are none predicted by {model}; predicted for"
    )
    assert (
        f"\n{sentence} 2 sentences of unlabelled; model and treebank agree on 83.3 % of the words"
        in result.output
    )


def test_settings_that_do_not_agree_are_refused(tmp_path):
    for settings, problem in (
        ({"tag": "upos"}, "predicted_pos has no effect without trees"),
        ({"model": {"de": "x"}}, "predicted_pos.model names de, not among languages"),
        ({"model": {"en": "x"}, "languages": ["en", "nl"], "train": "{lang}", "dev": "{lang}", "test": "{lang}"},
         "predicted_pos.model has nothing for nl"),
    ):  # fmt: skip
        with pytest.raises(ValidationError, match=problem):
            config(tmp_path, **settings | {"predicted_pos": {"model": settings.pop("model", "x")}})
