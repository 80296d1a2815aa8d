"""`raykd evaluate`: the figures of the run's own test part, two exports side by side, and what is wrong in files."""

from __future__ import annotations

import itertools
import json

import pyarrow.compute as pc
import pytest

from raykd.corpora.conll import conll_text
from raykd.corpora.labelled_files import LabelledFile, read_labelled
from raykd.deploy.export import export_run
from raykd.figures.results import RunResult
from raykd.storage.layout import RESULT
from raykd.storage.store import Storage
from raykd.training.data import cached_corpus
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs
from tests.sweep.in_process import call, code_of
from tests.training.small import executed, recipe, train_teachers


def exported(folder, **changes):
    """A trained student of a recipe with its teachers, exported, and its test part as files."""
    learns = {"batch_tokens": 60, "learning_rate": 2e-2, "dropout": 0.0}
    student_recipe = recipe(objective={"kind": "gold"}, schedule={"epochs": 8}, training=learns, **changes)
    ready = prepare(student_recipe, Storage(str(folder / "store")))
    train_teachers(ready)
    runs = student_runs(student_recipe, ready)
    for run in runs:
        executed(ready, run)
        name = "+".join(result_of(ready, run).scores.by_language("dev")) if len(runs) > 1 else ""
        export_run(
            ready.storage.child(*run.folder), Storage(str(folder / "student" / name)), store=ready.storage
        )
    test = cached_corpus(ready.storage.uri, ready.corpus_id) if hasattr(ready, "corpus_id") else ready.corpus
    for language in ("en", "de"):
        rows = test.parts["test"].filter(pc.field("language") == language)
        (folder / f"{language}.conll").write_text(conll_text(rows, test.tag_set))
    return ready, runs


def result_of(ready, run):
    return ready.storage.child(*run.folder).read_json(RESULT, RunResult.from_plain)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    return folder, *exported(folder)


def files(folder):
    return [f"{language}={folder / language}.conll" for language in ("en", "de")]


def said(capsys):
    return " ".join((out := capsys.readouterr()).out.split() + out.err.split())


def test_the_figures_are_those_of_the_run_on_its_test_part(small, capsys):
    folder, ready, (run,) = small
    call("evaluate", str(folder / "student"), *files(folder), "--json")
    report = json.loads(capsys.readouterr().out)
    (export_report,) = report["exports"]
    score = result_of(ready, run).scores.get("test")
    assert score.mean > 0, "a student that finds nothing would prove nothing"
    assert export_report["mean"] == score.mean
    assert {
        language: figures["score"] for language, figures in export_report["by_language"].items()
    } == score.by_language
    assert {
        language: figures["micro"]["f1"] for language, figures in export_report["by_language"].items()
    } == score.by_language
    assert export_report["runs"] == [run.id]
    missed = sum(
        confusion["count"] for confusion in export_report["confusions"] if confusion["kind"] != "spurious"
    )
    assert missed == sum(
        row["support"] - round(row["recall"] * row["support"])
        for row in export_report["together"]["labels"].values()
    )


def test_errors_are_shown_with_their_file_and_line(small, tmp_path, capsys):
    folder, _, _ = small
    source = tmp_path / "wrong.conll"
    source.write_text("# a comment\nLondon\tB-NONE\nis\tO\n\nhere\tB-NONE\nagain\tI-NONE\n")
    call("evaluate", str(folder / "student"), str(source), "--out", str(tmp_path / "found.json"))
    output = said(capsys)
    assert f"{source}:5: gold here again (NONE), predicted" in output
    assert "does not have these labels of the files, so they count as missed: NONE 2" in output
    report = json.loads((tmp_path / "found.json").read_text())
    assert report["exports"][0]["unknown_labels"] == {"NONE": 2}
    assert report["exports"][0]["by_language"].keys() == {"und"}


def test_another_export_stands_beside_it(small, tmp_path, capsys):
    folder, ready, _ = small
    teacher = next(prepared.run for prepared in ready.teachers)
    export_run(ready.storage.child(*teacher.folder), Storage(str(tmp_path / "teacher")), store=ready.storage)
    call(
        "evaluate",
        str(folder / "student"),
        files(folder)[0],
        "--against",
        str(tmp_path / "teacher"),
        "--json",
    )
    student, beside = json.loads(capsys.readouterr().out)["exports"]
    assert beside["runs"] == [teacher.id]
    assert beside["mean"] == result_of(ready, teacher).scores.by_language("test")["en"]
    call("evaluate", str(folder / "student"), files(folder)[0], "--against", str(tmp_path / "teacher"))
    assert "F1 of teacher" in said(capsys)
    assert student["mean"] != beside["mean"]


def test_a_student_for_each_language_labels_its_own(tmp_path, capsys):
    ready, runs = exported(tmp_path, student={"scope": "language"})
    call("evaluate", str(tmp_path / "student"), *files(tmp_path), "--json")
    (export_report,) = json.loads(capsys.readouterr().out)["exports"]
    scores_by_language = {}
    for run in runs:
        scores_by_language |= result_of(ready, run).scores.by_language("test")
    assert {
        language: figures["score"] for language, figures in export_report["by_language"].items()
    } == scores_by_language
    assert code_of("evaluate", str(tmp_path / "student"), f"fr={tmp_path}/en.conll") == 4
    assert "has no model of 'fr', only of de, en; name the language of each file: de=FILE" in said(capsys)


@pytest.mark.parametrize(
    ("content", "words", "code", "message"),
    [
        (
            "London B-LOC\n",
            ["--set", "corpus.colums.token=1"],
            2,
            "unknown key 'colums'; did you mean 'columns'?",
        ),
        (
            "0 London B-LOC\n1 is O\n",
            ["--set", "corpus.columns.token=0"],
            3,
            "column 0 (token) has running numbers, not words; set corpus.columns.token",
        ),
        (
            "London B-LOC\n",
            ["--set", "corpus.dev_cap=3", "--set", "student.hidden_dim=3"],
            2,
            "corpus.dev_cap=3: the setting has no effect on how labelled files are read; set one of corpus.source,",
        ),
        (
            "London NOUN\nis VERB\n",
            [],
            3,
            "the file's tags are one tag per word, and the model (task ner) gives spans",
        ),
        ("London\n", [], 3, "one column cannot be both word and tag"),
        (None, [], 3, "there is no such file; give a labelled file, or LANG=FILE"),
    ],
)
def test_what_is_wrong_in_files(small, tmp_path, capsys, content, words, code, message):
    source = tmp_path / "a.conll"
    if content is not None:
        source.write_text(content)
    assert code_of("evaluate", str(small[0] / "student"), str(source), *words) == code
    assert message in said(capsys)


@pytest.mark.parametrize("end", ["conll", "txt"])
def test_columns_are_recognised_by_the_labels_of_the_model(small, tmp_path, capsys, end):
    """Index, word, its chunk and its name: as a corpus that was read with `columns: {token: 1, tag: 2}`."""
    folder, ready, (run,) = small
    chunks = itertools.cycle(["B-NP", "I-NP", "B-VP", "O"])
    for language in ("en", "de"):
        blocks = (folder / f"{language}.conll").read_text().strip().split("\n\n")
        written = [
            "".join(
                f"{place} {word} {tag} {next(chunks)}\n"
                for place, (word, tag) in enumerate(line.split("\t") for line in block.splitlines())
            )
            for block in blocks
        ]
        (tmp_path / f"{language}.{end}").write_text("\n".join(written))
    arguments = [f"{language}={tmp_path / language}.{end}" for language in ("en", "de")]
    call("evaluate", str(folder / "student"), *arguments, "--json")
    (export_report,) = json.loads(capsys.readouterr().out)["exports"]
    assert export_report["mean"] == result_of(ready, run).scores.get("test").mean
    call("evaluate", str(folder / "student"), *arguments)
    assert f"read: {tmp_path / 'en'}.{end}: conll, columns: token 1, tag 2" in said(capsys)
    call("evaluate", str(folder / "student"), *arguments, "--set", "corpus.columns.tag=3", "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["exports"][0]["unknown_labels"].keys() == {"NP", "VP"}


def test_a_folder_that_is_no_export(tmp_path, capsys):
    assert code_of("evaluate", str(tmp_path), "x.conll") == 4
    assert "give a folder that raykd export wrote" in said(capsys)


def test_languages_and_files_may_be_called_as_people_call_them(small, tmp_path, capsys):
    source = tmp_path / "a[1]? #%41 *.conll"
    source.write_text((small[0] / "en.conll").read_text())
    call("evaluate", str(small[0] / "student"), "--json", f"中文={source}")
    (report,) = json.loads(capsys.readouterr().out)["exports"]
    assert list(report["by_language"]) == ["中文"]


def test_sentences_that_cannot_be_read_are_left_out_where_asked(small, tmp_path, capsys):
    folder, _, _ = small
    whole = (folder / "en.conll").read_text()
    source = tmp_path / "en.conll"
    source.write_text(whole + "\nword\n\nAnna FOO\n\n")
    calls = [str(folder / "student"), "--json"]
    call("evaluate", *calls, f"en={folder / 'en'}.conll")
    clean = json.loads(capsys.readouterr().out)
    call(
        "evaluate", *calls, f"en={source}", "--set", "corpus.on_error=skip", "--set", "corpus.most_skipped=1"
    )
    report = json.loads(capsys.readouterr().out)
    assert report["skipped"] == 2
    assert report["sentences"] == clean["sentences"]
    assert report["exports"][0]["mean"] == clean["exports"][0]["mean"]


def test_files_of_several_languages_have_a_scheme_each(tmp_path):
    """As in training: one that is not found from the tags alone is that of its language."""
    lines = {
        "en": "Ada B-PER\nLovelace I-PER\nran O\nto O\nUlm B-LOC\nand O\nback O\n",
        "de": "Ada PER\nLovelace PER\nlief O\nnach O\nUlm LOC\nund O\nher O\n",
    }
    for language, text in lines.items():
        (tmp_path / f"{language}.conll").write_text("\n".join([text] * 20))
    files = [LabelledFile(str(tmp_path / f"{language}.conll"), (language,)) for language in lines]
    both = read_labelled(files, unit="word")
    assert {tuple(labels) for labels in both.labels} == {("B-PER", "E-PER", "O", "O", "S-LOC", "O", "O")}
    assert len(both.labels) == 40
