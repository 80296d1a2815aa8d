"""`raykd export`: which model is meant, where it goes, what is printed and what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from ruamel.yaml import YAML

from raykd.corpora.report import CorpusReport, PosReport
from raykd.corpora.spaced_words import SpacedWords
from raykd.deploy.export import FILES
from raykd.errors import StoreError
from raykd.figures.trial import Teacher, Trial
from raykd.storage.store import Storage
from raykd.sweep.outcome import complete_trial
from raykd.sweep.records import Record, SweepRecords
from raykd.training.execute import find_result
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs, with_seed_offset
from tests.scores import scores
from tests.sweep.in_process import code_of
from tests.sweep.samples import COST
from tests.training.small import executed, recipe


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A store, its path with signs of URIs, with a sweep of one student for each of two languages, with two seeds."""
    student_recipe = recipe(student={"scope": "language"}, objective={"kind": "gold"}, schedule={"epochs": 1})
    ready = prepare(student_recipe, Storage(str(tmp_path_factory.mktemp("export") / "a#1 50%?")))
    runs = [with_seed_offset(run, offset) for offset in (0, 1) for run in student_runs(student_recipe, ready)]
    for run in runs:
        executed(ready, run)
        assert find_result(ready.storage, run) is not None
    records = SweepRecords(ready.storage, "small")
    records.open(sweep_id="sweep-small", text="{}", resume=False)
    results = [find_result(ready.storage, run) for run in runs]
    records.save(
        Record(
            complete_trial(Trial(7, "COMPLETE", run_ids=tuple(run.id for run in runs)), results[:1], COST), {}
        )
    )
    records.save(Record(Trial(8, "FAILED"), {}))
    teacher = Teacher("bilstm_crf", scores=scores(0.75, 0.5), cost={"latency_ms": 3.0})
    records.save_teachers([teacher], dev_labels=100)
    return ready.storage, runs


@pytest.fixture
def export(capsys, tmp_path):
    """Run the command; return its output, with a line for each word, and its end."""

    def run(*words):
        code = code_of("export", *map(str, words))
        output = capsys.readouterr()
        return " ".join((output.out + output.err).split()), code

    return run


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_first_seed_of_a_trial_is_exported_for_each_language(swept, export, tmp_path):
    storage, runs = swept
    output, code = export("small#7", tmp_path / "out", "--store", storage.uri)
    assert code == 0
    assert "trial 7 has 2 seeds: seed 0 is exported (--seed chooses another)" in output
    assert files_in(tmp_path / "out") == sorted(
        f"{language}/{name}" for language in ("en", "de") for name in FILES
    )
    for run, language in zip(runs[:2], ("en", "de"), strict=True):
        assert f"{run.id} in {tmp_path}/out/{language}" in output
        assert f'"{run.id}"' in (tmp_path / "out" / language / "export.json").read_text()
    assert "compared on 8 sentences of test" in output
    assert "export: 2 models in" in output


def test_the_best_of_the_front_and_the_one_to_ship_have_names(swept, export, tmp_path):
    storage, _ = swept
    output, code = export("small#best", tmp_path / "out", "--store", storage.uri)
    assert code == 0, output
    assert "trial 7 has 2 seeds" in output
    output, code = export("small#ship", tmp_path / "ship", "--store", storage.uri)
    assert code == StoreError.exit_code
    assert "Do not ship" in output
    assert "small#best" in output


@pytest.mark.parametrize("number", ["07", "007"])
def test_a_trial_may_be_named_as_it_is_printed(swept, export, tmp_path, number):
    storage, _ = swept
    output, code = export(f"small#{number}", tmp_path / "out", "--store", storage.uri)
    assert code == 0, output
    assert "trial 7 has 2 seeds" in output


def test_the_one_to_ship_may_be_a_student_on_labels_alone(swept, export, tmp_path):
    storage, _ = swept
    records = SweepRecords(storage, "beaten")
    records.open(sweep_id="sweep-beaten", text="{}", resume=False)
    (trained, *_) = SweepRecords(storage, "small").trials()
    cost = {"latency_ms": 1.0, "parameters": 1000}
    distilled = replace(trained, number=1, objective="structural", scores=scores(0.2), cost=cost)
    for trial in (distilled, replace(trained, number=5, role="baseline", scores=scores(0.9))):
        records.save(Record(trial, {}))
    records.save_teachers([Teacher("bilstm_crf", scores=scores(0.8))], dev_labels=100)
    output, code = export("beaten#ship", tmp_path / "out", "--store", storage.uri)
    assert code == 0, output
    assert "trial 5 has 2 seeds" in output


def test_how_text_is_split_is_compared_with_the_corpus_and_may_be_said(swept, export, tmp_path, capsys):
    storage, runs = swept
    source, split = storage.child(*runs[0].folder).uri, tmp_path / "split"
    output, code = export(source, split, "--store", storage.uri, "--split", "whitespace")
    assert (code, "texts are split" in output) == (0, False)
    output, code = export(source, tmp_path / "plain", "--store", storage.uri)
    cards = [json.loads((folder / "export.json").read_text()) for folder in (split, tmp_path / "plain")]
    assert [card["split"] for card in cards] == ["whitespace", "signs"]
    splitting = cards[1]["splitting"]
    assert (
        splitting["same"]["signs"] < 0.99 * splitting["sentences"] == 0.99 * splitting["same"]["whitespace"]
    )
    assert "texts are split at white space and signs, which gives the words of" in output
    assert "or for texts that are written as the corpus --split whitespace (100.0 %)" in output
    (tmp_path / "in.txt").write_text("@ada lives\n")
    for options, words in (([], ["@ada", "lives"]), (["--split", "signs"], ["@", "ada", "lives"])):
        assert code_of("predict", str(split), str(tmp_path / "in.txt"), *options) == 0
        (line,) = capsys.readouterr().out.splitlines()
        assert [word["text"] for word in json.loads(line)["words"]] == words


def card_of(folder):
    """Metadata and text of a model card."""
    _, metadata, text = (folder / "README.md").read_text().split("---\n", 2)
    return YAML(typ="safe", pure=True).load(metadata), text


def test_all_is_the_front_with_a_folder_for_each_trial(swept, export, tmp_path):
    storage, _ = swept
    output, code = export("small", tmp_path / "out", "--all", "--store", storage.uri, "--license", "mit")
    assert code == 0, output
    (folder,) = (tmp_path / "out").iterdir()
    assert folder.name.startswith("07-gold")
    assert re.fullmatch(r"[\w.-]+", folder.name)
    assert files_in(folder) == sorted(f"{language}/{name}" for language in ("en", "de") for name in FILES)


def test_a_card_has_figures_data_and_the_licences_that_were_given(swept, export, tmp_path):
    storage, runs = swept
    words = ("small#7", tmp_path, "--store", storage.uri, "--data-license", "cc0-1.0")
    assert export(*words)[1] == 0
    metadata, text = card_of(tmp_path / "en")
    assert (metadata["language"], metadata["license"]) == (["en"], "unknown")
    assert metadata["pipeline_tag"] == "token-classification"
    (result,) = metadata["model-index"][0]["results"]
    test = find_result(storage, runs[0]).scores.mean("test")
    assert result["metrics"][0]["value"] == pytest.approx(100 * test, abs=0.01)
    for line in (
        "trial 7 of the sweep small", "Model: not stated", "Data: cc0-1.0", f"`{runs[0].corpus_id}`", "raykd.load",
        "teacher bilstm_crf dev F1", f"`{runs[0].id}`", "| language | train |",
    ):  # fmt: skip
        assert line in text
    assert export(runs[0].id, tmp_path / "run", "--store", storage.uri)[1] == 0
    metadata, text = card_of(tmp_path / "run")
    assert metadata["model-index"][0]["name"] == runs[0].id
    assert "Data: not stated" in text
    assert "None" not in text


def test_a_card_says_which_words_raw_text_does_not_show(swept, export, tmp_path, monkeypatch):
    storage, runs = swept
    spaced = {"en": SpacedWords(1, 4, ("New York",))}
    monkeypatch.setattr(CorpusReport, "spaced_word_messages", lambda report: [spaced["en"].message("en")])
    assert export(runs[0].id, tmp_path, "--store", storage.uri)[1] == 0
    _, text = card_of(tmp_path)
    assert "- 25.0 % of the words of en have a space inside (for example 'New York')" in text


def test_a_card_says_where_parts_of_speech_are_from(swept, export, tmp_path, monkeypatch):
    storage, runs = swept
    pos = PosReport("predicted by upos_en", {}, {"dev": {"en": 4}}, {"dev": {"en": 50}}, {"dev": {"en": 49}})
    monkeypatch.setattr(CorpusReport, "pos_messages", lambda report: [pos.message()])
    assert export(runs[0].id, tmp_path, "--store", storage.uri)[1] == 0
    description = "predicted for 4 sentences of dev; model and treebank agree on 98.0 % of the words of dev"
    assert f"- parts of speech: predicted by upos_en; {description}\n" in card_of(tmp_path)[1]


def test_another_seed_is_chosen(swept, export, tmp_path):
    storage, runs = swept
    output, code = export("small#7", tmp_path, "--store", storage.uri, "--seed", 1)
    assert code == 0
    assert "is exported" not in output
    assert f'"{runs[2].id}"' in (tmp_path / "en/export.json").read_text()


def test_a_run_is_named_by_its_id_or_its_folder(swept, export, tmp_path):
    storage, runs = swept
    for place, words in enumerate(
        (
            [runs[0].id, tmp_path / "0", "--store", storage.uri],
            [f"{storage.uri}/runs/{runs[0].id}", tmp_path / "1"],
        )
    ):
        output, code = export(*words)
        assert code == 0
        assert "model-int8.onnx" in output
        assert "export: 1 model in" in output
        assert "compared on" in output, "the folder's store is found"
        assert files_in(tmp_path / str(place)) == sorted(FILES)


def test_files_of_an_export_are_replaced_on_request_alone(swept, export, tmp_path):
    storage, runs = swept
    words = (runs[0].id, tmp_path, "--store", storage.uri)
    (tmp_path / "notes.md").write_text("own")
    (tmp_path / "others/deep").mkdir(parents=True)
    (tmp_path / "others/deep/README.md").write_text("not in the way")
    assert export(*words)[1] == 0
    output, code = export(*words)
    assert code == 4
    assert "holds model.safetensors already; give another folder, or --overwrite" in output
    assert export(*words, "--overwrite")[1] == 0
    assert (tmp_path / "notes.md").read_text() == "own"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["small#8"], 4, "trial 8 is FAILED; complete trials are 7"),
        (["small"], 4, "several trials, and you named none; its front has small#7; or give --all"),
        (["small#7", "--all"], 2, "it means the whole front, but trial 7 is named too; omit one"),
        (["other", "--all"], 4, "sweep 'other': is not in the store"),
        (["small#9"], 4, "has no trial '9'; complete trials are 7"),
        (["small#09"], 4, "has no trial '09'; complete trials are 7"),
        (["other#7"], 4, "sweep 'other': is not in the store"),
        (["small#7", "--seed", "2"], 2, "trial 7 has 2 seeds; choose from 0 to 1"),
        (["run-0123456789abcdef", "--seed", "0"], 2, "only a trial has several seeds; give SWEEP#TRIAL"),
        (["run-0123456789abcdef"], 4, "is not the folder of a finished run"),
        (["small#7", "--checkpoint"], 10, "the model is not a Transformers model"),
    ],
)
def test_what_cannot_be_exported_is_refused(swept, export, tmp_path, words, code, message):
    storage, _ = swept
    source, *options = words
    output, actual_code = export(source, tmp_path / "out", "--store", storage.uri, *options)
    assert (actual_code, message in output) == (code, True), output
    assert not (tmp_path / "out").exists()
