"""The component of spaCy: what it sets, in which order, and that a pipeline with it is saved and loaded."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import raykd
from raykd.metrics.bioes import read_spans
from raykd.serving.labeller import LabellerError
from tests.serving.trained import of_texts, of_words

spacy = pytest.importorskip("spacy", reason="spaCy is absent: pip install spacy")
from spacy.tokens import Doc, Span  # noqa: E402

TEXTS = ["Ada Lovelace lives in London.", "", "  \n ", "New York,\n\nNew York!"]


PROCESSES = """
import multiprocessing, sys
import spacy

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[2])
    nlp = spacy.blank("en")
    nlp.add_pipe("raykd", config={"model": sys.argv[1], "threads": 2})
    texts = ["Ada Lovelace lives in London.", "New York!"] * 4
    alone = [[str(ent) for ent in nlp(text).ents] for text in texts]
    together = [[str(ent) for ent in doc.ents] for doc in nlp.pipe(texts, n_process=2, batch_size=2)]
    assert any(alone) and together == alone, (together, alone)
"""


def with_component(folder, *before, **config):
    nlp = spacy.blank("en")
    for name in before:
        nlp.add_pipe(name)
    nlp.add_pipe("raykd", config={"model": str(folder), **config})
    return nlp


def ents(doc):
    return [(ent.start, ent.end, ent.label_) for ent in doc.ents]


def test_the_package_says_where_spacy_finds_the_component():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    expected = project["entry-points"]["spacy_factories"]["raykd"]
    installed = {entry.name: entry.value for entry in entry_points(group="spacy_factories")}
    assert installed.get("raykd") == expected, "install raykd again: pip install -e ."
    assert "raykd.serving.spacy_component" not in vars(raykd)


def test_spans_are_the_entities_of_spacys_own_words(names):
    nlp, label = with_component(names), raykd.load(names)
    docs = list(nlp.pipe(TEXTS * 20, batch_size=3))
    assert [doc.text for doc in docs] == TEXTS * 20
    for doc in docs[: len(TEXTS)]:
        visible = [token for token in doc if not token.is_space]
        spans = read_spans(label.label([[token.text for token in visible]])[0]) if visible else []
        assert ents(doc) == [(visible[a].i, visible[b - 1].i + 1, name) for a, b, name in spans]
    assert any(ents(doc) for doc in docs)
    assert [ents(doc) for doc in docs] == [ents(nlp(text)) for text in TEXTS] * 20


def test_sentences_are_read_one_by_one_where_they_are_set(names):
    text = "Ada lives in London. Zoë lives in New York."
    doc, label = with_component(names, "sentencizer")(text), raykd.load(names)
    expected = []
    for sentence in doc.sents:
        (labels,) = label.label([[token.text for token in sentence]])
        expected += [(sentence.start + a, sentence.start + b, name) for a, b, name in read_spans(labels)]
    assert len(list(doc.sents)) == 2
    assert ents(doc) == expected


def test_entities_of_a_component_before_stay_and_others_come_beside_them(names):
    words = ["Ada", "Lovelace", "lives", "in", "London", "."]
    spans = read_spans(raykd.load(names).label([words])[0])
    assert spans
    first, last, kind = spans[-1]
    nlp = with_component(names, "entity_ruler")
    ruler = nlp.get_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PRODUCT", "pattern": "lives"}])
    assert not [span for span in spans if span[0] <= 2 < span[1]]
    assert ents(nlp(Doc(nlp.vocab, words))) == sorted([*spans, (2, 3, "PRODUCT")])
    ruler.add_patterns([{"label": "SHIP", "pattern": " ".join(words[first:last])}])
    doc = nlp(Doc(nlp.vocab, words))
    assert (first, last, "SHIP") in ents(doc)
    assert (first, last, kind) not in ents(doc)
    assert {token.ent_iob_ for token in doc} <= {"B", "I", "O"}


def test_tokens_that_a_component_has_blocked_are_in_no_entity(names):
    words = ["Ada", "Lovelace", "lives", "in", "London", "."]
    first, last, _ = read_spans(raykd.load(names).label([words])[0])[-1]
    nlp = with_component(names)
    doc = Doc(nlp.vocab, words)
    doc.set_ents([], blocked=[Span(doc, first, last)], default="missing")
    assert not [ent for ent in ents(nlp(doc)) if ent[0] < last and first < ent[1]]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_several_processes_label_as_one_does(names, tmp_path, method):
    if method == "fork" and sys.platform == "win32":
        pytest.skip("Windows has no fork")
    (tmp_path / "several.py").write_text(PROCESSES)
    process = subprocess.run(
        [sys.executable, str(tmp_path / "several.py"), str(names), method], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("spaces", [True, False])
def test_documents_of_any_tokenizer_are_labelled_by_their_words(names, spaces):
    words = ["\n", "Ada", " ", "Lovelace", "lives", "\u200b", "in", "London", "\t", "\t"]
    visible = [place for place, word in enumerate(words) if word.strip() and word != "\u200b"]
    nlp = with_component(names)
    doc = nlp(Doc(nlp.vocab, words, spaces=[spaces] * len(words)))
    spans = read_spans(raykd.load(names).label([[words[place] for place in visible]])[0])
    assert spans
    assert ents(doc) == [(visible[a], visible[b - 1] + 1, kind) for a, b, kind in spans]


def test_the_labeller_splits_the_text_where_it_is_asked_to(names, tmp_path):
    text = "Zoë  (Ada Lovelace) doesn't like COVID-19. New York, London!"
    for before in ((), ("sentencizer",)):
        doc = with_component(names, *before, split="whitespace")(text)
        assert len(doc) > len(text.split())
        label, expected = raykd.load(names, split="whitespace"), []
        for sentence in doc.sents if before else [doc]:
            expected += [
                (sentence[0].idx + span.start, sentence[0].idx + span.end, span.label)
                for span in label(sentence.text).spans
            ]
        assert expected
        assert [(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents] == expected
    folder = of_words(tmp_path)
    doc = with_component(folder, split="whitespace")("the dog's house")
    assert [token.text for token in doc] == ["the", "dog", "'s", "house"]
    (first, second, third) = raykd.load(folder).label([["the", "dog's", "house"]])[0]
    assert [token.tag_ for token in doc] == [first, second, second, third]


def test_a_parser_reads_the_tokens(by_place):
    with pytest.raises(LabellerError, match="a parser reads spaCy's own tokens; leave split out"):
        with_component(by_place[1], split="whitespace")


def test_a_pipeline_is_saved_and_loaded(names, tmp_path):
    nlp = with_component(names)
    nlp.to_disk(tmp_path / "nlp")
    repeated = spacy.load(tmp_path / "nlp")
    assert repeated.pipe_names == ["raykd"]
    assert ents(repeated(TEXTS[0])) == ents(nlp(TEXTS[0]))
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
    docs = list(with_component(folder).pipe(["a dull,film!", "", "a fine film"]))
    assert docs[1].cats == {}
    for doc in (docs[0], docs[2]):
        labelled = label(doc.text)
        assert sum(doc.cats.values()) == pytest.approx(1)
        assert max(doc.cats, key=doc.cats.get) == labelled.label
        assert doc.cats[labelled.label] == pytest.approx(labelled.probability, rel=1e-4)


def test_raykd_is_imported_without_spacy():
    assert "spacy" not in (getattr(module, "__name__", "") for module in vars(raykd).values())
    assert sys.modules["raykd"] is raykd
