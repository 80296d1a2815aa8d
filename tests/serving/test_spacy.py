"""The component of spaCy: what it sets, in which order, and that a pipeline with it is saved and loaded."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import raykd
from raykd.metrics.bioes import read_spans
from tests.serving.trained import of_texts, of_words

spacy = pytest.importorskip("spacy", reason="spaCy is absent: pip install spacy")
from spacy.tokens import Doc  # noqa: E402

TEXTS = ["Ada Lovelace lives in London.", "", "  \n ", "New York,\n\nNew York!"]


def with_component(folder, *before):
    nlp = spacy.blank("en")
    for name in before:
        nlp.add_pipe(name)
    nlp.add_pipe("raykd", config={"model": str(folder)})
    return nlp


def ents(doc):
    return [(ent.start, ent.end, ent.label_) for ent in doc.ents]


def test_the_package_says_where_spacy_finds_the_component():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    wanted = project["entry-points"]["spacy_factories"]["raykd"]
    installed = {entry.name: entry.value for entry in entry_points(group="spacy_factories")}
    assert installed.get("raykd") == wanted, "install raykd again: pip install -e ."
    assert "raykd.serving.spacy_component" not in vars(raykd)


def test_spans_are_the_entities_of_spacys_own_words(names):
    nlp, label = with_component(names), raykd.load(names)
    docs = list(nlp.pipe(TEXTS * 20, batch_size=3))
    assert [doc.text for doc in docs] == TEXTS * 20
    for doc in docs[: len(TEXTS)]:
        kept = [token for token in doc if not token.is_space]
        spans = read_spans(label.label([[token.text for token in kept]])[0]) if kept else []
        assert ents(doc) == [(kept[a].i, kept[b - 1].i + 1, name) for a, b, name in spans]
    assert any(ents(doc) for doc in docs)
    assert [ents(doc) for doc in docs] == [ents(nlp(text)) for text in TEXTS] * 20


def test_sentences_are_read_one_by_one_where_they_are_set(names):
    text = "Ada lives in London. Zoë lives in New York."
    doc, label = with_component(names, "sentencizer")(text), raykd.load(names)
    wanted = []
    for sentence in doc.sents:
        (labels,) = label.label([[token.text for token in sentence]])
        wanted += [(sentence.start + a, sentence.start + b, name) for a, b, name in read_spans(labels)]
    assert len(list(doc.sents)) == 2
    assert ents(doc) == wanted


def test_a_pipeline_is_saved_and_loaded(names, tmp_path):
    nlp = with_component(names)
    nlp.to_disk(tmp_path / "nlp")
    again = spacy.load(tmp_path / "nlp")
    assert again.pipe_names == ["raykd"]
    assert ents(again(TEXTS[0])) == ents(nlp(TEXTS[0]))
    assert not [path for path in (tmp_path / "nlp").rglob("*") if path.suffix in (".pkl", ".pickle")]


def test_labels_of_words_are_tags_and_universal_ones_parts_of_speech(tmp_path):
    folder = of_words(tmp_path)
    words = ["the", "dog", "likes", "a", "house", "."]
    nlp = with_component(folder)
    doc = nlp(Doc(nlp.vocab, words))
    (labels,) = raykd.load(folder).label([words])
    assert [token.tag_ for token in doc] == labels
    assert [token.pos_ for token in doc] == labels


def test_a_label_of_the_text_is_its_category(tmp_path):
    folder = of_texts(tmp_path)
    label = raykd.load(folder)
    docs = list(with_component(folder).pipe(["a dull film", "", "a fine film"]))
    assert docs[1].cats == {}
    for doc in (docs[0], docs[2]):
        said = label(doc.text)
        assert sum(doc.cats.values()) == pytest.approx(1)
        assert max(doc.cats, key=doc.cats.get) == said.label
        assert doc.cats[said.label] == pytest.approx(said.probability, rel=1e-4)


def test_raykd_is_imported_without_spacy():
    assert "spacy" not in (getattr(module, "__name__", "") for module in vars(raykd).values())
    assert sys.modules["raykd"] is raykd
