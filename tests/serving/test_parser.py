"""Exported parsers: trees equal those of PyTorch, in all ways to get them."""

from __future__ import annotations

import json
import shutil

import pandas
import pytest
from mlflow import pyfunc

import raykd
from raykd.serving.labeller import LabellerError, is_tree, load
from raykd.serving.server import create_app
from raykd.tracking.student_models import save_model
from tests.serving.trained import get, post, served, tree

GOLD = [tree(number) for number in range(100, 130)]
WORDS = [[word for word, *_ in sentence] for sentence in GOLD]
POS = [[pos for _, pos, *_ in sentence] for sentence in GOLD]
# The classes in another order, so that trees are repaired too.
MIXED = [tags[::-1] for tags in POS]
# A universal one that the treebank lacks. Of few words: trees whose arcs no label means are equally good.
OTHERS = [["INTJ", *tags[1:]] for tags in POS]


def heads_and_labels(labelled):
    """Of the JSON of one sentence."""
    return [(head, word["label"]) for head, word in zip(labelled["heads"], labelled["words"], strict=True)]


def test_trees_are_those_that_raykd_gives(by_pos, by_place):
    for (run, folder), pos in ((by_pos, POS), (by_pos, MIXED), (by_pos, OTHERS), (by_place, None)):
        expected, parser = raykd.load(run).parse(WORDS, pos), raykd.load(folder)
        for batch in (1, 32):
            assert parser.parse(WORDS, pos, batch=batch) == expected
        assert parser.label(WORDS) == raykd.load(run).label(WORDS)
        assert {label.count("@") for labels in parser.label(WORDS) for label in labels} == {2}
    arcs = raykd.load(by_pos[1]).arcs(WORDS, MIXED)
    assert any(arc.repaired for sentence_arcs in arcs for arc in sentence_arcs)
    assert all(0 <= arc.probability <= 1 for sentence_arcs in arcs for arc in sentence_arcs)


def test_the_student_has_learnt_something(by_pos):
    actual = raykd.load(by_pos[1]).parse(WORDS, POS)
    right = [
        (head, relation) == arc
        for gold, arcs in zip(GOLD, actual, strict=True)
        for (*_, head, relation), arc in zip(gold, arcs, strict=True)
    ]
    assert sum(right) > 0.7 * len(right)


def test_the_export_says_how_its_labels_mean_trees(by_pos, by_place):
    cards = [json.loads((folder / "export.json").read_text()) for _, folder in (by_pos, by_place)]
    origin = "gold, column UPOS"
    assert cards[0]["trees"] == {"encoding": "relative_pos", "pos": "upos", "pos_origin": origin}
    assert cards[1]["trees"] == {"encoding": "relative_position", "pos": None, "pos_origin": None}
    agreement = cards[0]["agreement"]
    assert (agreement["score_label"], agreement["differing"]["model.onnx"]) == ("LAS", 0)
    assert agreement["scores"]["model.onnx"] == agreement["scores"]["model.safetensors"] > 0.5


def test_text_is_parsed_with_the_parts_of_speech_of_another_model(by_pos, by_place, tagger):
    tagged_parser = load(by_pos[1], pos=tagger)
    tags = load(tagger).label(WORDS)
    assert (
        tagged_parser.parse(WORDS) == tagged_parser.parse(WORDS, tags) == load(by_pos[1]).parse(WORDS, tags)
    )
    inputs = [tags[0], None, POS[2]]
    assert tagged_parser.parse(WORDS[:3], inputs) == tagged_parser.parse(
        WORDS[:3], [tags[0], tags[1], POS[2]]
    )
    texts = [" ".join(words) for words in WORDS]
    for parser in (tagged_parser, load(by_place[1])):
        for labelled, words in zip(parser(texts), WORDS, strict=True):
            assert [word.text for word in labelled.words] == words
            expected = parser.parse([words])[0]
            labels = [word.label for word in labelled.words]
            assert list(zip(labelled.heads or (), labels, strict=True)) == expected
    assert tagged_parser("").heads is None


def test_words_can_be_given_with_their_parts_of_speech(by_pos):
    parser = load(by_pos[1])
    pairs = [list(zip(words, pos, strict=True)) for words, pos in zip(WORDS, POS, strict=True)]
    actual = [[word.label for word in labelled.words] for labelled in parser(pairs)]
    assert actual == [[relation for _, relation in tree] for tree in parser.parse(WORDS, POS)]


def test_what_is_missing_is_said(by_pos, by_place, tagger, names):
    parser = load(by_pos[1])
    with pytest.raises(ValueError, match="its labels name parts of speech: give pos"):
        parser.parse(WORDS)
    with pytest.raises(ValueError, match="its labels name parts of speech: give pos"):
        parser("the dog sees")
    with pytest.raises(ValueError, match="1 sentences, and parts of speech of 2"):
        parser.parse(WORDS[:1], POS[:2])
    with pytest.raises(TypeError, match="task 'ner' predicts no trees; call label"):
        load(names).parse(WORDS)
    with pytest.raises(
        LabellerError, match="its labels name no parts of speech, so that a model of these has no"
    ):
        load(by_place[1], pos=tagger)
    with pytest.raises(LabellerError, match="it is a model of task 'ner', and one of task 'pos' is needed"):
        load(by_pos[1], pos=names)
    with pytest.raises(LabellerError, match=r"has no pipeline for trees; use raykd\.load\('.*'\)\.parse"):
        raykd.pipeline("token-classification", by_pos[1])


def test_a_model_of_other_parts_of_speech_is_refused(by_pos, tagger, tmp_path):
    folder = shutil.copytree(tagger, tmp_path / "folder")
    labels = json.loads((folder / "labels.json").read_text())
    (folder / "labels.json").write_text(json.dumps({**labels, "tags": ["NN", *labels["tags"][1:]]}))
    with pytest.raises(
        LabellerError, match=r"it gives the parts of speech NN, which the labels of .* do not have"
    ):
        load(by_pos[1], pos=folder)


def test_the_server(by_pos, by_place, tagger):
    expected = raykd.load(by_pos[1]).parse(WORDS, POS)
    with served(create_app(by_pos[1])) as at:
        assert json.loads(get(f"{at}/health"))["reads_pos"] is True
        status, answer = post(f"{at}/predict", {"tokens": WORDS, "pos": POS})
        assert status == 200
        assert [heads_and_labels(labelled) for labelled in answer["results"]] == expected
        for body, message in (
            (
                {"tokens": WORDS},
                "the model reads parts of speech: send tokens with pos, or start the server with",
            ),
            ({"texts": ["the dog"]}, "the model reads parts of speech: send tokens with pos"),
            (
                {"tokens": [["a", "b"]], "pos": [["DET"]]},
                "pos: give one part of speech for each word of tokens",
            ),
            ({"texts": ["a"], "pos": [["DET"]]}, "pos: give one part of speech for each word of tokens"),
            ({"tokens": [["a"]], "pos": [["NN"]]}, "pos.0: unknown part of speech 'NN' (ADJ, ADV"),
        ):
            status, answer = post(f"{at}/predict", body)
            assert (status, answer["detail"][: len(message)]) == (422, message)
    with served(create_app(load(by_pos[1], pos=tagger))) as at:
        assert json.loads(get(f"{at}/health"))["reads_pos"] is False
        _, answer = post(f"{at}/predict", {"texts": [" ".join(words) for words in WORDS]})
        actual = [heads_and_labels(labelled) for labelled in answer["results"]]
        assert actual == load(by_pos[1], pos=tagger).parse(WORDS)
    with served(create_app(by_place[1])) as at:
        status, answer = post(f"{at}/predict", {"tokens": WORDS[:1], "pos": POS[:1]})
        assert (status, answer["detail"]) == (
            422,
            "pos has no effect: the model reads words alone; leave it out",
        )


def test_a_factory_reads_both_models_from_the_environment(by_pos, tagger, monkeypatch):
    monkeypatch.setenv("RAYKD_MODEL", str(by_pos[1]))
    monkeypatch.setenv("RAYKD_POS", str(tagger))
    with served(create_app()) as at:
        assert post(f"{at}/predict", {"texts": ["the dog sees"]})[1]["results"][0]["heads"]


def test_a_model_of_mlflow(by_pos, by_place, tmp_path):
    frame = pandas.DataFrame({"tokens": WORDS, "pos": POS})
    for (_, folder), columns, pos in ((by_pos, ["tokens", "pos"], POS), (by_place, ["tokens"], None)):
        to = tmp_path / folder.parent.name
        save_model(folder, to)
        actual = pyfunc.load_model(str(to)).predict(frame[columns])
        assert [heads_and_labels(labelled) for labelled in actual] == raykd.load(folder).parse(WORDS, pos)
        with pytest.raises(Exception, match="tokens"):
            pyfunc.load_model(str(to)).predict(["the dog sees"])


def test_spacy(by_pos, tagger):
    spacy = pytest.importorskip("spacy", reason="spaCy is absent: pip install spacy")
    nlp = spacy.blank("en")
    nlp.add_pipe("raykd", config={"model": str(by_pos[1])})
    for words, pos, expected in zip(WORDS, POS, load(by_pos[1]).parse(WORDS, POS), strict=True):
        doc = nlp(spacy.tokens.Doc(nlp.vocab, words, pos=pos))
        actual = [(0 if token.head == token else token.head.i + 1, token.dep_) for token in doc]
        assert actual == [(head, relation if head else "ROOT") for head, relation in expected]
        assert is_tree(pandas.array([head for head, _ in actual]).to_numpy())
        assert doc.has_annotation("DEP")
    with pytest.raises(
        ValueError, match="'the' has no part of speech, which the model reads; set them by a component"
    ):
        nlp("the dog sees")
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("raykd", config={"model": str(by_pos[1]), "pos": str(tagger)})
    docs = list(nlp.pipe(["the dog  sees a cat. the cat likes a dog!", "", " ", " the dog likes"]))
    assert [len(list(doc.sents)) for doc in docs if len(doc)] == [2, 1, 1]
    label = load(by_pos[1], pos=tagger)
    for doc in docs:
        for sentence in doc.sents:
            visible = [token for token in sentence if not token.is_space]
            expected = label.parse([[token.text for token in visible]])[0] if visible else []
            for token, (head, relation) in zip(visible, expected, strict=True):
                assert token.head == (visible[head - 1] if head else token)
                assert token.dep_ == (relation if head else "ROOT")
    assert docs[0][2].is_space
    assert docs[0][2].head == docs[0][1]
