"""`raykd predict`, `evaluate` and `export` with parsers: files of trees in and out, and what is wrong in them."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import raykd
from raykd.corpora.report import CorpusReport
from raykd.deploy.export import export_run
from raykd.errors import CorpusError, StoreError
from raykd.figures.results import RunResult
from raykd.recipes.card_config import CardConfig
from raykd.report.card import model_card
from raykd.serving.labeller import load
from raykd.storage.layout import RESULT
from raykd.storage.store import Storage
from tests.serving.trained import conllu, of_tags, of_trees, tree
from tests.sweep.in_process import call, code_of

GOLD = [tree(number) for number in range(100, 125)]
WORDS = [[word for word, *_ in sentence] for sentence in GOLD]
POS = [[pos for _, pos, *_ in sentence] for sentence in GOLD]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`student`, its store and its treebank, and `tagger`."""
    folder = tmp_path_factory.mktemp("parsing-files")
    of_trees(folder)
    (folder / "tags").mkdir()
    of_tags(folder / "tags")
    (folder / "test.conllu").write_text((folder / "treebank/test").read_text())
    return folder


def said(capsys):
    return " ".join((out := capsys.readouterr()).out.split() + out.err.split())


def with_other_lines(text):
    """With a comment, a multi-word token and an empty node in the first sentence."""
    first, rest = text.split("\n\n", 1)
    lines = ["# text = x", "1-2\tthedog" + "\t_" * 8, *first.split("\n"), "2.1\tleft" + "\t_" * 8]
    return "\n".join(lines) + "\n\n" + rest


def test_heads_and_relations_of_conllu_are_filled(folder, tmp_path):
    source, out = tmp_path / "in.conllu", tmp_path / "out.conllu"
    source.write_text(with_other_lines(conllu(GOLD)))
    student, tagger = str(folder / "student"), str(folder / "tags/student")
    for more, expected in (
        ((), load(student).parse(WORDS, POS)),
        (("--pos", tagger), load(student, pos=tagger).parse(WORDS)),
    ):
        call("predict", student, str(source), "--out", str(out), "--overwrite", *more)
        before, after = (
            [line.split("\t") for line in file.read_text().split("\n")] for file in (source, out)
        )
        words = [row for row in after if row[0].isdecimal()]
        assert [(int(row[6]), row[7]) for row in words] == [arc for arcs in expected for arc in arcs]
        other_columns = [
            [row[:6] + row[8:] for row in rows if row[0].isdecimal()] for rows in (before, after)
        ]
        assert other_columns[0] == other_columns[1]
        other_lines = [
            [row for row in rows if not row[0].isdecimal() and row != [""]] for rows in (before, after)
        ]
        assert other_lines[0] == other_lines[1]
        assert len(other_lines[0]) == 3


def test_other_columns_get_two_more_where_another_model_gives_parts_of_speech(folder, tmp_path, capsys):
    source = tmp_path / "in.conll"
    source.write_text("\n\n".join("\n".join(words) for words in WORDS) + "\n")
    student, tagger = str(folder / "student"), str(folder / "tags/student")
    assert code_of("predict", student, str(source)) == CorpusError.exit_code
    assert (
        "in.conll:1: the model reads parts of speech, UPOS of CoNLL-U's 10 columns, and the line has 1 column; give"
        in said(capsys)
    )
    call("predict", student, str(source), "--pos", tagger, "--out", str(tmp_path / "out"))
    blocks = (tmp_path / "out").read_text().strip().split("\n\n")
    sentences = [[line.split("\t") for line in block.split("\n")] for block in blocks]
    assert [[row[0] for row in sentence] for sentence in sentences] == WORDS
    expected = load(student, pos=tagger).parse(WORDS)
    assert [[(int(head), relation) for _, head, relation in sentence] for sentence in sentences] == expected


def test_lines_of_json(folder, tmp_path, capsys):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": 1, "tokens": WORDS[0], "pos": POS[0]}, {"id": 2, "text": " ".join(WORDS[1])}]
    source.write_text("\n".join(map(json.dumps, rows)) + "\n")
    student, tagger = str(folder / "student"), str(folder / "tags/student")
    assert code_of("predict", student, str(source)) == CorpusError.exit_code
    assert "in.jsonl:2: text has no parts of speech, which the model reads; give --pos DIR" in said(capsys)
    call("predict", student, str(source), "--pos", tagger, "--out", str(out))
    line, text = (json.loads(line) for line in out.read_text().splitlines())
    expected = load(student, pos=tagger).parse(WORDS[:2])
    assert (line["id"], list(zip(line["heads"], line["relations"], strict=True))) == (1, expected[0])
    assert text["heads"] == [head for head, _ in expected[1]]
    source.write_text(json.dumps(rows[0]))
    call("predict", student, str(source), "--out", str(out), "--overwrite")
    line = json.loads(out.read_text())
    assert (
        list(zip(line["heads"], line["relations"], strict=True)) == load(student).parse(WORDS[:1], POS[:1])[0]
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.conllu", "1\tdog\t_\t_\t_\t_\t_\t_\t_\t_\n", "a.conllu:1: 'dog' has no UPOS, which the model reads"),
        ("a.conllu", "1\tdog\t_\tNN\t_\t_\t_\t_\t_\t_\n", "a.conllu:1: unknown UPOS 'NN' (ADJ, ADV, DET"),
        ("a.jsonl", '{"tokens": ["dog"]}\n', 'the line has none in "pos"; give --pos DIR'),
        ("a.jsonl", '{"tokens": ["dog"], "pos": ["NN"]}\n', "a.jsonl:1: unknown part of speech 'NN'"),
        ("a.txt", "the dog\n", "a.txt: text has no parts of speech, which the model reads; give --pos DIR"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file(folder, tmp_path, capsys, name, content, message):
    (tmp_path / name).write_text(content)
    assert code_of("predict", str(folder / "student"), str(tmp_path / name)) == CorpusError.exit_code
    assert message in said(capsys)


def test_evaluation_has_the_scores_of_the_run_on_its_test_part(folder, capsys):
    call("evaluate", str(folder / "student"), f"en={folder / 'test.conllu'}", "--json")
    (export_report,) = json.loads(capsys.readouterr().out)["exports"]
    (run,) = (folder / "store/runs").iterdir()
    score = Storage(str(run)).read_json(RESULT, RunResult.from_plain).scores.get("test")
    assert 0.5 < export_report["mean"] < 1, "one that is right everywhere would prove nothing"
    assert export_report["mean"] == score.mean == export_report["by_language"]["en"]["score"]
    assert (export_report["uas"], export_report["repairs"]) == (
        score.beside["uas"].mean,
        score.beside["repairs"].mean,
    )
    assert export_report["together"]["micro"]["f1"] == pytest.approx(score.mean)
    assert export_report["pos"] == "of the files"
    words = export_report["together"]["micro"]["support"]
    assert sum(confusion["count"] for confusion in export_report["confusions"]) == round(
        (1 - score.mean) * words
    )
    assert export_report["unknown_labels"] == {}


def test_evaluation_with_predicted_parts_of_speech_says_so(folder, capsys):
    student, tagger = folder / "student", folder / "tags/student"
    call(
        "evaluate", str(student), str(folder / "test.conllu"), "--pos", str(tagger), "--against", str(student)
    )
    output = said(capsys)
    assert f"parts of speech: predicted by {tagger}" in output
    assert "test.conllu: conllu, trees: universal relations, parts of speech: UPOS" in output
    assert "repaired heads" in output
    assert " gold " in output
    assert raykd.load(tagger).label(WORDS) != POS, "a tagger that is always right would prove nothing"
    (folder / "more.conllu").write_text(conllu(GOLD))
    parses = load(student, pos=tagger).parse(WORDS), load(student).parse(WORDS, POS)
    for pos, parsed in zip((["--pos", str(tagger)], []), parses, strict=True):
        call("evaluate", str(student), str(folder / "more.conllu"), *pos, "--json")
        right = [
            (head, relation) == arc
            for export_report, arcs in zip(GOLD, parsed, strict=True)
            for (*_, head, relation), arc in zip(export_report, arcs, strict=True)
        ]
        (export_report,) = json.loads(capsys.readouterr().out)["exports"]
        assert export_report["mean"] == sum(right) / len(right)


def test_files_without_parts_of_speech_are_evaluated_with_predicted_ones(folder, tmp_path, capsys):
    student, tagger, bare = str(folder / "student"), str(folder / "tags/student"), tmp_path / "bare.conllu"
    rows = [line.split("\t") for line in conllu(GOLD).split("\n")]
    bare.write_text("\n".join("\t".join([*row[:3], "_", *row[4:]] if row[0] else row) for row in rows))
    (tmp_path / "gold.conllu").write_text(conllu(GOLD))
    reports = []
    for file in (bare, tmp_path / "gold.conllu"):
        call("evaluate", student, str(file), "--pos", tagger, "--json")
        reports.append(json.loads(capsys.readouterr().out)["exports"][0]["together"])
    assert reports[0] == reports[1]
    assert reports[0]["micro"]["f1"] > 0.3
    assert code_of("evaluate", student, str(bare)) == CorpusError.exit_code


def test_relations_that_the_model_does_not_know_are_named(folder, tmp_path, capsys):
    text = (folder / "test.conllu").read_text().replace("\tobj\t", "\tiobj:x\t")
    (tmp_path / "a.conllu").write_text(text)
    call("evaluate", str(folder / "student"), str(tmp_path / "a.conllu"))
    assert "does not have these labels of the files, so they count as missed: iobj 15" in said(capsys)


def test_what_does_not_fit_is_refused(folder, tmp_path, capsys):
    student, tagger, file = str(folder / "student"), str(folder / "tags/student"), str(folder / "test.conllu")
    assert code_of("evaluate", student, file, "--against", tagger) == StoreError.exit_code
    assert "give --against models of the same task" in said(capsys)
    assert code_of("evaluate", tagger, file, "--pos", tagger) == StoreError.exit_code
    assert "--pos has no effect" in said(capsys)
    assert code_of("evaluate", student, file, "--pos", student) == CorpusError.exit_code
    assert "it has a model of task 'parsing', not of 'pos'" in said(capsys)
    (tmp_path / "a.conll").write_text("the\tDET\ndog\tNOUN\n\n")
    assert code_of("evaluate", student, str(tmp_path / "a.conll")) == CorpusError.exit_code
    assert "2 columns between tabs where CoNLL-U has 10" in said(capsys)


def test_the_card_says_what_the_labels_mean(folder, tmp_path):
    (run,) = (folder / "store/runs").iterdir()
    exported = export_run(
        Storage(str(run)), Storage(str(tmp_path / "out")), store=Storage(str(folder / "store"))
    )
    card = model_card(exported, stated=CardConfig())
    for expected in (
        "that finds the head of each word and its relation (parsing) in en",
        "- Heads as labels: relative_pos\n- Parts of speech that it read: gold, column UPOS\n",
        'print(label.parse([["She", "sleeps"]], pos=[["PRON", "VERB"]]))',
        "test LAS", "test UAS", "(LAS ",
    ):  # fmt: skip
        assert expected in card


def test_the_card_of_a_corpus_without_a_language_names_none(folder, tmp_path):
    (run,) = (folder / "store/runs").iterdir()
    exported = export_run(
        Storage(str(run)), Storage(str(tmp_path / "out")), store=Storage(str(folder / "store"))
    )
    assert exported.corpus is not None
    result, corpus = (
        json.loads(json.dumps(part.to_plain()).replace('"en"', '"und"'))
        for part in (exported.result, exported.corpus)
    )
    unnamed = replace(exported, result=RunResult.from_plain(result), corpus=CorpusReport.from_plain(corpus))
    assert unnamed.languages == ["und"]
    card = model_card(unnamed, stated=CardConfig())
    assert "(parsing) in text, made by raykd." in card
    assert "\nlanguage:" not in card
    assert "und" not in re.findall("[a-z]+", card)
