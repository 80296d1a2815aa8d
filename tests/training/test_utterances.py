"""Intents and slots through whole runs: trained, stored, distilled from, scored, loaded, shipped. Without Ray."""

from __future__ import annotations

import json
import random
import re

import pytest

import raykd
from raykd.deploy.export import export_run
from raykd.errors import CorpusError
from raykd.figures.results import RunResult
from raykd.recipes.recipe import Recipe
from raykd.recipes.recipe_faults import recipe_faults
from raykd.storage.layout import RESULT
from raykd.storage.store import Storage
from raykd.training.data import cached_corpus
from tests.sweep.in_process import call, code_of
from tests.training.small import TREE, executed, prepared, recipe, student_of

CITIES = ["rome", "new york", "oslo", "san jose", "paris"]
FRAMES = [
    ("fly from {} to {} now", "flight", ("from", "to")), ("what is the fare to {}", "fare", ("to",)),
    ("{} please", "city", ("name",)), ("is there a train to {} from {}", "train", ("to", "from")),
]  # fmt: skip


def write_utterances(root):
    """Files in the format of ATIS, whose slots and intents follow from the words."""
    draw = random.Random(0)
    for part, count in (("train", 90), ("dev", 20), ("test", 20), ("text", 20)):
        lines = []
        for _ in range(count):
            frame, intent, types = draw.choice(FRAMES)
            words, slots, remaining_types = [], [], list(types)
            for word in frame.split():
                if word != "{}":
                    words, slots = [*words, word], [*slots, "O"]
                    continue
                city, kind = draw.choice(CITIES).split(), remaining_types.pop(0)
                words += city
                slots += [f"{letter}-{kind}" for letter in "BI"[: len(city)]]
            lines.append(f"BOS {' '.join(words)} EOS\tO {' '.join(slots)} {intent}\n")
        (root / f"{part}.iob").write_text("".join(lines))
    return root


def utterances(root, **changes):
    parts = {part: f"{part}.iob" for part in ("train", "dev", "test")}
    run_recipe = {
        "task": "intent_slots",
        "teachers": {
            "hidden_dim": 24, "embedding_dim": 24, "epochs": 15,
            "training": {"learning_rate": 2e-2, "batch_tokens": 100, "dropout": 0.0},
        },
        "schedule": {"epochs": 8, "anneal_horizon": 8},
        "training": {"batch_tokens": 100, "learning_rate": 2e-2, "dropout": 0.0},
    } | changes  # fmt: skip
    plain = recipe(**run_recipe).model_dump() | {
        "corpus": {
            "source": "atis", "root": str(root), "languages": ("en",), **parts, "unlabelled": "text.iob",
            "duplicates": "keep", "overlaps": "keep",
        }
    }  # fmt: skip
    return Recipe.model_validate(plain)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_utterances(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def ready(files, tmp_path_factory):
    """A store with a trained teacher and signals."""
    objectives = [{"kind": "top_k", "k": 3}, {"kind": "posterior"}, {"kind": "emission"}]
    recipes = [utterances(files, objective=objective) for objective in objectives]
    return prepared(str(tmp_path_factory.mktemp("store")), *recipes)


def result_of(folder):
    return folder.read_json(RESULT, RunResult.from_plain)


def test_the_teacher_learns_both(ready):
    folder = ready.storage.child(*ready.teachers[0].run.folder)
    scores = result_of(folder).scores.get("dev")
    assert scores.mean > 0.8
    assert scores.beside["intent_accuracy"].mean >= scores.mean
    assert scores.beside["slot_f1"].mean > 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "decoder"),
    [
        ({"kind": "structural"}, "crf"), ({"kind": "structural"}, "maxent"),
        ({"kind": "structural", "temperature": 4.0, "temperature_mode": "global"}, "crf"),
        ({"kind": "posterior"}, "crf"), ({"kind": "posterior"}, "maxent"), ({"kind": "emission"}, "crf"),
        ({"kind": "logits"}, "maxent"), ({"kind": "top_k", "k": 3}, "crf"), ({"kind": "top_wk", "k": 3}, "crf"),
        ({"kind": "top_1"}, "maxent"), ({"kind": "gold"}, "crf"), ({"kind": "gold"}, "maxent"),
    ],
)  # fmt: skip
def test_a_student_is_distilled_from_it(ready, files, objective, decoder):
    sizes = {"embedding_dim": 20, "hidden_dim": 20, "vocabulary": {"kind": "word"}}
    run_recipe = utterances(files, objective=objective, student={"decoder": decoder, **sizes})
    result = executed(ready, student_of(ready, run_recipe))
    losses = [epoch["losses"][objective["kind"]] for epoch in result.epochs]
    assert all(0 < loss < 1e6 for loss in losses)  # a label that may not be would add 1e8
    if objective["kind"] == "logits":
        return  # scores of -20 are far from where it starts
    dev = result.scores.get("dev")
    # One intent in three or four would be right by chance.
    assert dev.beside["intent_accuracy"].mean > 0.6
    assert dev.beside["slot_f1"].mean > 0.6
    assert dev.mean > 0.3


def test_a_student_that_is_loaded_says_what_was_scored(ready, files):
    run = student_of(ready, utterances(files))
    result = executed(ready, run)
    folder = ready.storage.child(*run.folder)
    loaded = raykd.load(folder.uri)
    corpus = cached_corpus(ready.storage.uri, run.corpus_id)
    rows = corpus.parts["test"].to_pylist()
    gold = [corpus.tag_set.decode(row["tags"]) for row in rows]
    words = [row["tokens"][1:] for row in rows]
    predicted = loaded.intents_and_slots(words)
    right = [
        ["intent:" + intent, *slots] == gold_labels
        for (intent, slots), gold_labels in zip(predicted, gold, strict=True)
    ]
    assert sum(right) / len(right) == pytest.approx(result.scores.mean("test"))
    assert loaded.label(words) == [slots for _, slots in predicted]
    with pytest.raises(ValueError, match="has no words"):
        loaded.intents_and_slots([[]])
    with pytest.raises(TypeError, match="a sentence is a list of words"):
        loaded.intents_and_slots(["rome"])
    with pytest.raises(TypeError, match="predicts no trees"):
        loaded.parse(words)


@pytest.mark.parametrize("decoder", ["crf", "maxent"])
def test_what_ships_says_what_the_model_says(ready, files, tmp_path, capsys, decoder):
    run = student_of(ready, utterances(files, student={"decoder": decoder}))
    executed(ready, run)
    folder = ready.storage.child(*run.folder)
    exported = export_run(folder, Storage(str(tmp_path)), store=ready.storage)
    assert exported.agreement is not None
    assert exported.agreement.differing["model.onnx"] == 0
    assert exported.agreement.score_label == "exact match"
    model, labeller = raykd.load(folder.uri), raykd.load(str(tmp_path))
    rows = cached_corpus(ready.storage.uri, run.corpus_id).parts["test"]["tokens"].to_pylist()
    words = [row[1:] for row in rows]
    assert labeller.intents_and_slots(words) == model.intents_and_slots(words)
    assert labeller.label(words) == model.label(words)
    assert [len(export) for export in labeller.probabilities(words)] == [len(export) for export in words]
    output = list(labeller([" ".join(export) for export in words]))
    assert [record.label for record in output] == [intent for intent, _ in model.intents_and_slots(words)]
    assert all(0 < record.probability <= 1 for record in output)
    for record, slots in zip(output, labeller.label(words), strict=True):
        assert [word.label for word in record.words] == slots
        assert all(
            record.text[span.start : span.end] == span.text and 0 < span.probability <= 1
            for span in record.spans
        )
    assert any(record.spans for record in output)
    assert labeller("").label is None
    (tmp_path / "in.conll").write_text("\n\n".join("\n".join(export) for export in words) + "\n")
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"tokens": export}) + "\n" for export in words))
    for name in ("in.conll", "in.jsonl"):
        call("predict", str(tmp_path), str(tmp_path / name), "--out", str(tmp_path / f"{name}.out"))
    blocks = [block.split("\n") for block in (tmp_path / "in.conll.out").read_text().strip().split("\n\n")]
    predicted = labeller.intents_and_slots(words)
    assert [block[0] for block in blocks] == [f"# intent: {intent}" for intent, _ in predicted]
    assert [[row.split("\t")[-1] for row in block[1:]] for block in blocks] == [
        slots for _, slots in predicted
    ]
    lines = [json.loads(line) for line in (tmp_path / "in.jsonl.out").read_text().splitlines()]
    assert [(record["label"], record["labels"]) for record in lines] == predicted
    capsys.readouterr()
    call("evaluate", str(tmp_path), f"en={files / 'test.iob'}", "--json")
    (export,) = json.loads(capsys.readouterr().out)["exports"]
    score = folder.read_json(RESULT, RunResult.from_plain).scores.get("test")
    assert export["mean"] == score.mean > 0
    assert export["intent_accuracy"] == score.beside["intent_accuracy"].mean
    assert export["slot_f1"] == score.beside["slot_f1"].mean
    intents = {name: row for name, row in export["together"]["labels"].items() if name.startswith("intent:")}
    assert sum(row["support"] for row in intents.values()) == len(words)
    right = sum(round(row["recall"] * row["support"]) for row in intents.values())
    assert right / len(words) == pytest.approx(export["intent_accuracy"])
    call("evaluate", str(tmp_path), f"en={files / 'test.iob'}")
    output = " ".join(capsys.readouterr().out.split())
    assert f"{len(words)} sentences, {sum(map(len, words))} words" in output
    assert "language exact match intent accuracy slot F1" in output
    assert "<utterance>" not in output
    (tmp_path / "tags").write_text("rome\tB-to\n\ngo\tO\n")
    assert code_of("evaluate", str(tmp_path), str(tmp_path / "tags")) == CorpusError.exit_code
    assert "the file's tags are spans, and the model (task intent_slots) gives intents and slots" in (
        capsys.readouterr().err
    )


def test_a_task_and_a_source_that_do_not_fit_are_refused(files):
    for task, source, path, problem in (
        (
            "ner",
            None,
            ("task",),
            "has intents and slots, which task 'ner' does not predict; set task: intent_slots",
        ),
        (
            "intent_slots",
            TREE["corpus"],
            ("corpus", "source"),
            "has no intents.*set corpus.source to atis or xsid",
        ),
    ):
        run_recipe = utterances(files)
        changed = {"task": task, **({"corpus": source} if source else {})}
        faults = recipe_faults(Recipe.model_validate(run_recipe.model_dump() | changed))
        assert [fault_path for fault_path, _ in faults] == [path]
        assert re.search(problem, faults[0][1])


def test_labels_of_another_task_have_no_intents(tmp_path):
    ready = prepared(str(tmp_path / "store"), recipe())
    run = student_of(ready)
    executed(ready, run)
    folder = ready.storage.child(*run.folder)
    export_run(folder, Storage(str(tmp_path / "out")))
    for model in (raykd.load(folder.uri), raykd.load(str(tmp_path / "out"))):
        with pytest.raises(TypeError, match="predicts no intents; call label"):
            model.intents_and_slots([["Rome"]])
