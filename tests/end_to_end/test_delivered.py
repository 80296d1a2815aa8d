"""The measured model and the delivered model are the same."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from seqeval.metrics import f1_score
from sklearn.metrics import accuracy_score

import raykd
from raykd.corpora.conll import conll_text
from raykd.deploy.export import TIE, export_run
from raykd.figures.results import RunResult
from raykd.forms.tag_schemes import from_bioes, to_bioes
from raykd.recipes.recipe import Recipe
from raykd.storage.layout import RESULT
from raykd.storage.store import Storage
from raykd.training.data import cached_corpus
from raykd.training.prepare import prepare
from tests.long import mostly_slow
from tests.serving.test_pairs import pairs
from tests.serving.trained import LEARNS, conllu, tree, treebank
from tests.sweep.in_process import call
from tests.teachers.checkpoints import make_checkpoint
from tests.training.small import TREE, executed, student_of, train_teachers
from tests.training.test_utterances import utterances, write_utterances

Labels = list[list[str]]


@dataclass(frozen=True)
class Delivered:
    """One trained model: the folder of its run and of its export, its labelled test files and how they are scored."""

    run: Storage
    export: Path
    files: Mapping[str, Path]
    gold: Mapping[str, list[Any]]
    """By language, the gold answer for each sentence."""
    inputs: Mapping[str, list[dict[str, Any]]]
    """By language, what `raykd predict` is given of each sentence."""
    answer: Callable[[dict[str, Any]], Any]
    """From a line that `raykd predict` writes to the answer."""
    score: Callable[[list[Any], list[Any]], float]
    """The outside program: from gold and predicted answers to the score."""
    settings: tuple[str, ...] = ()
    """Options of `raykd evaluate` for the files."""


def spans_score(gold: Labels, predicted: Labels) -> float:
    return float(f1_score(gold, predicted))


def share(gold: list[Any], predicted: list[Any]) -> float:
    return float(
        accuracy_score([json.dumps(labels) for labels in gold], [json.dumps(labels) for labels in predicted])
    )


def words_score(gold: Labels, predicted: Labels) -> float:
    return float(accuracy_score([*chain(*gold)], [*chain(*predicted)]))


def labels_of(line: dict[str, Any]) -> list[str]:
    return line["labels"]


def trained(folder: Path, run_recipe: Recipe, *, role: str = "student") -> tuple[Any, Any, Path]:
    ready = prepare(run_recipe, Storage(str(folder / "store")))
    if role == "teacher":
        train_teachers(ready)
        run = ready.teachers[0].run
    else:
        run = student_of(ready, run_recipe)
        executed(ready, run)
    export_run(ready.storage.child(*run.folder), Storage(str(folder / "export")), store=ready.storage)
    return ready, run, folder / "export"


def of_words(folder: Path, *, score=spans_score, role: str = "student", **changes: Any) -> Delivered:
    gold = {"objective": {"kind": "gold"}, "schedule": {"epochs": 6}, "training": LEARNS}
    student_config = {key: {**TREE[key], **value} if key == "student" and "kind" not in value else value
            for key, value in changes.items()}  # fmt: skip
    corpus = {**TREE["corpus"], "train": 60, "test": 40} if "corpus" not in changes else changes["corpus"]
    ready, run, export = trained(
        folder, Recipe.model_validate({**TREE, **gold, **student_config, "corpus": corpus}), role=role
    )
    corpus = cached_corpus(ready.storage.uri, run.corpus_id)
    tables = {
        language: corpus.parts["test"].filter(
            [row_language == language for row_language in corpus.parts["test"]["language"].to_pylist()]
        )
        for language in corpus.languages
    }
    files = {language: folder / f"{language}.conll" for language in tables}
    for language, table in tables.items():
        files[language].write_text(conll_text(table, corpus.tag_set))
    return Delivered(
        ready.storage.child(*run.folder), export, files,
        {name: [corpus.tag_set.decode(tags) for tags in table["tags"].to_pylist()] for name, table in tables.items()},
        {name: [{"tokens": tokens} for tokens in table["tokens"].to_pylist()] for name, table in tables.items()},
        labels_of, score,
    )  # fmt: skip


def named(count: int, seed: int) -> str:
    """Return sentences in columns, with words of the small checkpoint.

    Most of `an` and `bo` are names of persons, most of `jij` are places.
    """
    draw, blocks = random.Random(seed), []
    for _ in range(count):
        rows, inside = [], False
        for word in draw.choices(("an", "bo", "abc", "jij", "fed"), k=draw.randint(2, 9)):
            tag = {"an": "B-PER", "jij": "B-LOC"}.get(word, "O")
            tag = "I-PER" if word == "bo" and inside else tag
            tag = draw.choice(("O", "B-LOC")) if draw.random() < 0.2 else tag
            inside = tag.endswith("PER")
            rows.append(f"{word}\t{tag}\n")
        blocks.append("".join(rows))
    return "\n".join(blocks)


def of_checkpoint(folder: Path, **changes: Any) -> Delivered:
    for number, (part, count) in enumerate((("train", 120), ("dev", 20), ("test", 40))):
        for language in ("en", "de"):
            (folder / f"{language}.{part}").write_text(named(count, 2 * number + (language == "de")))
    corpus = {
        "source": "conll", "root": str(folder), "languages": ("en", "de"), "overlaps": "keep", "duplicates": "keep",
        **{part: f"{{lang}}.{part}" for part in ("train", "dev", "test")},
    }  # fmt: skip
    teachers = {
        "kind": "hf_token_classifier", "path": make_checkpoint(folder / "checkpoint", longest=64), "scope": "all"
    }  # fmt: skip
    return of_words(folder, role="teacher", corpus=corpus, teachers=teachers | changes)


def of_utterances(folder: Path, decoder: str) -> Delivered:
    files = write_utterances(folder)
    sizes = {"embedding_dim": 12, "hidden_dim": 12, "vocabulary": {"kind": "word"}}
    config = utterances(
        files, objective={"kind": "gold"}, student={"decoder": decoder, **sizes}, schedule={"epochs": 4}
    )
    ready, run, export = trained(folder, config)
    corpus = cached_corpus(ready.storage.uri, run.corpus_id)
    rows = corpus.parts["test"].to_pylist()
    gold = [corpus.tag_set.decode(row["tags"]) for row in rows]
    return Delivered(
        ready.storage.child(*run.folder), export, {"en": files / "test.iob"},
        {"en": [[intent.removeprefix("intent:"), *slots] for intent, *slots in gold]},
        {"en": [{"tokens": row["tokens"][1:]} for row in rows]},
        lambda line: [line["label"], *line["labels"]], share,
    )  # fmt: skip


def of_rows(folder: Path, task: str, rows: list[tuple[str, ...]], columns: Mapping[str, int]) -> Delivered:
    parts = {"train": rows[:60], "dev": rows[60:80], "test": rows[80:]}
    for name, part_rows in parts.items():
        (folder / name).write_text("".join("\t".join(row) + "\n" for row in part_rows))
    corpus = {
        "source": "tsv", "root": str(folder), "languages": ("en",), "columns": columns, "overlaps": "keep",
        "duplicates": "keep", **{name: name for name in parts},
    }  # fmt: skip
    gold = {"objective": {"kind": "gold"}, "schedule": {"epochs": 4}, "training": LEARNS}
    student = {**TREE["student"], "decoder": "maxent"}
    teachers = {"kind": "none"}
    config = {**TREE, **gold, "task": task, "corpus": corpus, "student": student, "teachers": teachers}
    ready, run, export = trained(folder, Recipe.model_validate(config))
    texts = [dict(zip(("text", "text_pair"), row[:-1], strict=False)) for row in parts["test"]]
    settings = [f"--set=corpus.columns.{name}={place}" for name, place in columns.items()]
    return Delivered(
        ready.storage.child(*run.folder), export, {"en": folder / "test"},
        {"en": [row[-1] for row in parts["test"]]}, {"en": texts}, lambda line: line["label"], share,
        ("--set=corpus.source=tsv", *settings),
    )  # fmt: skip


def of_texts(folder: Path) -> Delivered:
    words = {"good": ("fine", "nice", "great"), "bad": ("dull", "poor", "weak")}
    # Every fifth label is wrong, so that no score is 1.
    rows = [
        (f"a {kind[number % 3]} film number {number % 9}", name if number % 5 else "good")
        for number in range(60)
        for name, kind in words.items()
    ]
    return of_rows(folder, "classification", rows, {"text": 0, "label": 1})


def of_pairs(folder: Path) -> Delivered:
    return of_rows(folder, "pairs", pairs(120), {"text": 0, "second": 1, "label": 2})


def of_trees(folder: Path, encoding: str) -> Delivered:
    student = {
        "kind": "bilstm",
        "embedding_dim": 8,
        "hidden_dim": 6,
        "decoder": "maxent",
        "encoding": encoding,
    }
    gold = {"objective": {"kind": "gold"}, "schedule": {"epochs": 3}, "training": LEARNS}
    config = {
        **TREE, **gold, "task": "parsing", "corpus": treebank(folder / "treebank"), "student": student,
        "teachers": {"kind": "biaffine_parser"},
    }  # fmt: skip
    ready, run, export = trained(folder, Recipe.model_validate(config))
    sentences = [tree(number) for number in range(75, 100)]
    (folder / "test.conllu").write_text(conllu(sentences))
    return Delivered(
        ready.storage.child(*run.folder), export, {"en": folder / "test.conllu"},
        {"en": [[[head, relation] for *_, head, relation in sentence] for sentence in sentences]},
        {"en": [
            {"tokens": [word for word, *_ in sentence], "pos": [pos for _, pos, *_ in sentence]}
            for sentence in sentences
        ]},
        lambda line: [list(arc) for arc in zip(line["heads"], line["relations"], strict=True)],
        lambda gold, predicted: share([*chain(*gold)], [*chain(*predicted)]),
    )  # fmt: skip


KINDS: Mapping[str, Callable[[Path], Delivered]] = {
    "spans, MaxEnt": partial(of_words, student={"decoder": "maxent"}),
    "spans, MaxEnt, each word by itself": partial(
        of_words, student={"decoder": "maxent"}, decoding="independent"
    ),
    "spans, CRF": of_words,
    "spans, CRF, by its own transitions": partial(of_words, decoding="independent"),
    "spans, Transformer": partial(
        of_words,
        student={"kind": "transformer", "embedding_dim": 8, "heads": 2, "decoder": "maxent"},
    ),
    "aspects": partial(of_words, task="aspect", student={"decoder": "maxent"}),
    "spans, a fine-tuned checkpoint": partial(
        of_checkpoint, fine_tune=True, precision="bf16", epochs=8, training={"batch_tokens": 100, "learning_rate": 5e-3}
    ),
    "spans, a checkpoint as it is": of_checkpoint,
    "parts of speech": lambda folder: of_words(
        folder, score=words_score, task="pos", student={"decoder": "maxent"},
        corpus={**treebank(folder / "treebank"), "tag": "upos"},
    ),
    "utterances, MaxEnt": partial(of_utterances, decoder="maxent"),
    "utterances, CRF": partial(of_utterances, decoder="crf"),
    "texts": of_texts,
    "pairs": of_pairs,
    "trees, by parts of speech": partial(of_trees, encoding="relative_pos"),
    "trees, by place": partial(of_trees, encoding="relative_position"),
}  # fmt: skip


@pytest.fixture(scope="module", params=mostly_slow(KINDS, quick=["spans, CRF", "texts", "trees, by place"]))
def model(request, tmp_path_factory) -> Delivered:
    return KINDS[request.param](tmp_path_factory.mktemp("delivered"))


def predicted(model: Delivered, language: str, folder: Path, *options: str) -> list[Any]:
    """The answers of `raykd predict`."""
    source, out = folder / f"{language}.jsonl", folder / f"{language}.out.jsonl"
    source.write_text("".join(json.dumps(sentence) + "\n" for sentence in model.inputs[language]))
    call("predict", str(model.export), str(source), "--out", str(out), "--overwrite", *options)
    return [model.answer(json.loads(line)) for line in out.read_text().splitlines()]


FORMS = [(form, batch) for form in ((), ("--int8",)) for batch in ("1", "32")]


@pytest.mark.parametrize(("form", "batch"), FORMS)
def test_evaluate_gives_what_an_outside_program_counts_in_what_predict_writes(
    model, form, batch, tmp_path, capsys
):
    options = [*form, "--batch", batch]
    expected = {
        language: model.score(gold, predicted(model, language, tmp_path, *options))
        for language, gold in model.gold.items()
    }
    capsys.readouterr()
    files = [f"{language}={file}" for language, file in model.files.items()]
    call("evaluate", str(model.export), *files, "--json", *options, *model.settings)
    (report,) = json.loads(capsys.readouterr().out)["exports"]
    assert {
        language: figures["score"] for language, figures in report["by_language"].items()
    } == pytest.approx(expected, abs=1e-12)


def test_the_test_figure_of_the_run_is_that_of_what_is_delivered(model, tmp_path):
    """If float32 gives another answer than the model of the run, the two best labellings are tied."""
    scores = model.run.read_json(RESULT, RunResult.from_plain).scores.by_language("test")
    assert scores.keys() == model.gold.keys()
    tied = json.loads((model.export / "export.json").read_text())["agreement"]["tied"]
    for language, gold in model.gold.items():
        answers = predicted(model, language, tmp_path)
        delivered = model.score(gold, answers)
        assert delivered == pytest.approx(scores[language], abs=1e-12 if not tied else tied / len(gold))
        told_apart = {json.dumps(sorted(set(map(str, answer)))) for answer in answers}
        assert len(told_apart) > 1, "a model that says the same of everything would prove nothing"
    assert TIE == 1e-5


def test_what_is_written_into_columns_is_what_is_written_as_json(model, tmp_path):
    if model.answer is not labels_of:
        pytest.skip("only labels of words are written into columns as they are")
    for language, file in model.files.items():
        out = tmp_path / "out.conll"
        scheme = ("--scheme", "bioes") if raykd.load(str(model.export)).has_spans else ()
        call("predict", str(model.export), str(file), *scheme, "--out", str(out), "--overwrite")
        blocks = [block.split("\n") for block in out.read_text().strip().split("\n\n")]
        written = [[line.split("\t")[-1] for line in block if not line.startswith("#")] for block in blocks]
        assert written == predicted(model, language, tmp_path)


def test_only_legal_labellings_are_delivered_unless_each_word_is_labelled_by_itself(model, tmp_path):
    decoding = json.loads((model.export / "export.json").read_text())["decoding"]
    labels = json.loads((model.export / "labels.json").read_text())
    assert ("legal" in labels) == (decoding == "legal")
    if decoding == "legal" and model.answer is labels_of:
        for language in model.gold:
            for tags in predicted(model, language, tmp_path, "--int8"):
                assert to_bioes(from_bioes(tags, "bioes"), "bioes") == (tags, 0)
    tagger = raykd.load(model.run.uri)
    assert (tagger.model.legal is not None) == (decoding == "legal")
