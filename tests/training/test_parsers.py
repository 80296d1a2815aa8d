"""Parsers and parsing students through whole runs: trained, stored, distilled from, scored, loaded. Without Ray."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch

import raykd
from raykd.errors import CorpusError, StoreError
from raykd.forms.tree.codes import TreeLabels
from raykd.precompute.open_teacher import load_teacher
from raykd.recipes.recipe_faults import recipe_faults
from raykd.storage.store import Storage
from raykd.structures.labelled_arcs import LabelledArcs
from raykd.sweep.doctor import examine_store, repair_store
from raykd.training.data import cached_corpus, run_labels
from raykd.training.prepare import prepare
from tests.training.loops import stage_data
from tests.training.small import executed, prepared, recipe, student_of
from tests.treebank import corpus, write_treebank

SIZES = {
    "embedding_dim": 8, "hidden_dim": 8, "layers": 1, "character_dim": 4, "character_hidden": 4, "arc_dim": 8,
    "relation_dim": 6, "epochs": 3, "training": {"batch_tokens": 60, "learning_rate": 2e-2, "dropout": 0.0},
}  # fmt: skip
TEACHERS = {"biaffine_parser": SIZES, "second_order_parser": {**SIZES, "pair_dim": 4}}
STUDENT = {"decoder": "maxent", "vocabulary": {"kind": "word"}, "embedding_dim": 16, "hidden_dim": 16}


def parsing(root, kind="biaffine_parser", **changes):
    text = {"unlabelled": "{lang}/text.conllu"}
    run_recipe = {
        "task": "parsing", "corpus": {"kind": "", **corpus(root, **text)}, "teachers": {"kind": kind, **TEACHERS[kind]},
        "student": STUDENT,
    }  # fmt: skip
    del run_recipe["corpus"]["kind"]
    tree = recipe(**{name: value for name, value in (run_recipe | changes).items() if name != "corpus"})
    plain = tree.model_dump() | {"corpus": (run_recipe | changes)["corpus"]}
    return type(tree).model_validate(plain)


@pytest.fixture(scope="module", params=TEACHERS)
def bank(request, tmp_path_factory):
    """The kind of teacher, the files, and a store in which it is trained and its signals are."""
    root = write_treebank(tmp_path_factory.mktemp("bank"))
    store = str(tmp_path_factory.mktemp("store"))
    return request.param, root, prepared(store, parsing(root, request.param))


def test_trees_of_an_annotator_are_a_parser_that_is_sure(tmp_path):
    """Its answers are the gold trees, so that its score is 100, and a student's agreement is its score."""
    root = write_treebank(tmp_path / "bank")
    answers = []
    for file in sorted((root / "en").iterdir()):
        for block in file.read_text().strip().split("\n\n"):
            rows = [line.split("\t") for line in block.splitlines()]
            words, heads, relations = ([row[column] for row in rows] for column in (1, 6, 7))
            answers.append(
                {"tokens": words, "heads": [*map(int, heads)], "labels": [f"x{r}" for r in relations]}
            )
    (tmp_path / "trees.jsonl").write_text("\n".join(map(json.dumps, answers)))
    names = {f"x{relation}": relation for answer in answers for relation in (x[1:] for x in answer["labels"])}
    teacher = {
        "kind": "annotations",
        "path": str(tmp_path / "trees.jsonl"),
        "answers": "trees",
        "labels": names,
    }
    ready = prepared(str(tmp_path / "store"), run_recipe := parsing(root, teachers=teacher))
    assert ready.surveys[0].total("answered") == len(answers)
    run = student_of(ready, run_recipe)
    assert set(run.sources[0].signals) == {"arcs", "relations"}
    loaded = load_teacher(ready.storage, ready.teachers[0].run.id)
    ((_, _, output),) = loaded.outputs([answers[0]["tokens"]], 1000)
    arcs = LabelledArcs.from_chain(output.distribution)
    assert arcs.arcs_BTH[0].argmax(1).tolist() == answers[0]["heads"]
    assert torch.allclose(arcs.arcs_BTH.exp().sum(2), torch.ones(1, len(answers[0]["heads"])))
    result = executed(ready, ready.teachers[0].run)
    assert result.scores.mean("dev") == result.scores.mean("test") == 1
    student = executed(ready, run).scores
    assert student.mean("dev", beside="agreement") == student.mean("dev") > 0


def test_what_is_read_is_what_the_parser_says_of_every_pair_in_the_students_labels(bank):
    kind, root, ready = bank
    run = student_of(ready, parsing(root, kind))
    assert set(run.sources[0].signals) == {"arcs", "relations"}
    labels = run_labels(ready.storage.uri, run)
    assert isinstance(labels, TreeLabels)
    assert run.labels_id.startswith("labels-")
    data, rows = stage_data(ready.storage, run), np.array([3, 0, 30, 17])
    batch = data.gather(rows, torch.device("cpu"))
    parts = cached_corpus(ready.storage.uri, run.corpus_id).parts
    sentences = parts["train"].to_pylist() + parts["unlabelled"].to_pylist()
    teacher = load_teacher(ready.storage, ready.teachers[0].run.id)
    heads_BTY = torch.from_numpy(data.part.labels.label_heads(rows))
    for place, row in enumerate(rows.tolist()):
        words = sentences[row]["tokens"]
        ((_, _, output),) = teacher.outputs([words], 1000)
        arcs = LabelledArcs.from_chain(output.distribution)
        for t in range(len(words)):
            expected = torch.zeros(len(labels))
            for y, head in enumerate(heads_BTY[place, t].tolist()):
                if head >= 0:
                    relation = labels.relations_Y[y]
                    expected[y] = (
                        arcs.arcs_BTH[0, t, head] + arcs.relations_BTHR[0, t, head, relation]
                    ).exp()
            marginals = batch.teacher.on_labels.marginals()[place, t]
            torch.testing.assert_close(marginals, expected, atol=3e-3, rtol=0)


@pytest.mark.parametrize(
    "objective",
    [
        {"kind": "structural"},
        {"kind": "structural", "temperature": 2.0, "temperature_mode": "global"},
        {"kind": "posterior"},
        {"kind": "token"},
        {"kind": "top_k", "k": 3},
        {"kind": "top_wk", "k": 3},
        {"kind": "top_1"},
        {"kind": "gold"},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_a_student_is_distilled_from_it(bank, objective):
    kind, root, ready = bank
    result = executed(ready, student_of(ready, parsing(root, kind, objective=objective)))
    test = result.scores.get("test")
    assert 0 < test.mean <= test.beside["uas"].mean <= 1
    assert 0 <= test.beside["repairs"].mean <= 1
    first = result.epochs[0]["losses"]
    assert first[objective["kind"]] > 0
    read = objective["kind"] != "gold"
    # Sentences have five words or so, and three epochs teach what train's labels say.
    assert ("unexpressed_words" in first) == read
    assert first.get("unexpressed_words", 0) < 5


def test_a_student_that_is_loaded_parses_as_it_was_scored(bank):
    kind, root, ready = bank
    run = student_of(ready, parsing(root, kind, objective={"kind": "structural"}))
    result = executed(ready, run)
    loaded = raykd.load(ready.storage.child(*run.folder).uri)
    corpus = cached_corpus(ready.storage.uri, run.corpus_id)
    rows = corpus.parts["test"].to_pylist()
    words, pos = [row["tokens"] for row in rows], [[corpus.pos[p] for p in row["pos"]] for row in rows]
    gold = [
        (head, corpus.tag_set.tags[tag])
        for row in rows
        for head, tag in zip(row["heads"], row["tags"], strict=True)
    ]
    predicted = [word for tree in loaded.parse(words, pos) for word in tree]
    right = sum(
        predicted_word == gold_word for predicted_word, gold_word in zip(predicted, gold, strict=True)
    )
    assert right / len(gold) == pytest.approx(result.scores.mean("test"))
    assert right
    assert all(label in loaded.labels for label in loaded.label(words)[0])
    with pytest.raises(ValueError, match="give pos, one for every word"):
        loaded.parse(words)
    assert "SYM" not in corpus.pos, (
        "a universal part of speech that this treebank lacks is taken all the same"
    )
    assert len(loaded.parse([["rain"]], [["SYM"]])[0]) == 1
    with pytest.raises(ValueError, match="unknown part of speech 'N'"):
        loaded.parse([["rain"]], [["N"]])
    with pytest.raises(ValueError, match="expected 1 part of speech"):
        loaded.parse([["rain"]], [[]])


def test_a_parser_is_loaded(bank):
    _, _, ready = bank
    loaded = raykd.load(ready.storage.child(*ready.teachers[0].run.folder).uri)
    (tree,) = loaded.parse([["the", "rain", "falls"]])
    assert len(tree) == 3
    assert sum(head == 0 for head, _ in tree) == 1
    with pytest.raises(TypeError, match="call parse"):
        loaded.label([["rain"]])


@pytest.mark.parametrize("encoding", ["relative_pos", "relative_position"])
def test_labels_are_those_of_the_encoding(tmp_path, encoding):
    root = write_treebank(tmp_path)
    ready = prepare(parsing(root), Storage(str(tmp_path / "store")))
    runs = {
        code: student_of(ready, parsing(root, student={**STUDENT, "encoding": code}))
        for code in ("relative_pos", encoding)
    }
    labels = run_labels(ready.storage.uri, runs[encoding])
    assert labels.encoding == encoding
    assert all(("@@" in tag) == (encoding == "relative_position") for tag in labels.tags if "ROOT" not in tag)
    assert (runs["relative_pos"].id == runs[encoding].id) == (encoding == "relative_pos")


def test_words_without_parts_of_speech_are_refused_where_labels_name_them(tmp_path):
    root = write_treebank(tmp_path)
    text = root / "en" / "text.conllu"
    text.write_text(re.sub(r"\t(DET|NOUN|VERB|ADJ|PUNCT)\t", "\t_\t", text.read_text()))
    ready = prepare(parsing(root), Storage(str(tmp_path / "store")))
    with pytest.raises(
        CorpusError, match=r"24 sentences of unlabelled without parts of speech.*relative_position"
    ):
        student_of(ready, parsing(root))
    student_of(ready, parsing(root, student={**STUDENT, "encoding": "relative_position"}))


def test_damaged_labels_are_refused_by_name_and_found_by_the_doctor(tmp_path):
    root = write_treebank(tmp_path)
    ready = prepare(parsing(root), Storage(str(tmp_path / "store")))
    run = student_of(ready, parsing(root))
    path = tmp_path / "store" / "labels" / f"{run.labels_id}.json"
    path.write_text(path.read_text().replace("@NOUN@", "@VERB@", 1))
    with pytest.raises(StoreError, match=rf"labels/{run.labels_id}\.json"):
        run_labels(ready.storage.uri, run)
    (damage,) = examine_store(ready.storage).damages
    assert (damage.name, damage.consequence) == (f"labels/{run.labels_id}.json", "the labels are made again")
    repair_store(ready.storage, examine_store(ready.storage))
    assert student_of(ready, parsing(root)).labels_id == run.labels_id
    assert len(run_labels(ready.storage.uri, run))


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"student": {**STUDENT, "decoder": "crf"}}, ("student", "decoder"), "set student.decoder: maxent"),
        ({"teachers": {"kind": "bilstm_crf"}}, ("teachers", "kind"), "gives no trees.*use 'biaffine_parser'"),
        ({"task": "pos"}, ("task",), "'biaffine_parser' parses.*set task: parsing"),
        ({"objective": {"kind": "emission"}}, ("objective", "kind"), "'emissions' is needed.*use posterior"),
        (
            {"corpus": {"unlabelled_form": "sentences"}},
            ("student", "encoding"),
            "text as sentences lacks; set corpus.predicted_pos",
        ),
        (
            {"corpus": {"predicted_pos": {"model": "x", "replace": True}}, "task": "parsing_without_punct"},
            ("task",),
            "parsing_without_punctuation_words",
        ),
    ],
)
def test_what_does_not_parse_is_refused_with_a_hint(tmp_path, changes, path, message):
    corpus_settings = corpus(tmp_path, unlabelled="{lang}/text.conllu") | changes.get("corpus", {})
    changes = {**changes, "corpus": corpus_settings}
    faults = dict(recipe_faults(parsing(tmp_path, **changes)))
    assert re.search(message, faults[path]), faults


def test_a_corpus_without_trees_is_refused(tmp_path):
    root = write_treebank(tmp_path)
    run_recipe = parsing(root, corpus={**corpus(root), "tag": "upos"})
    assert "set corpus.tag: tree" in dict(recipe_faults(run_recipe))["corpus", "tag"]
