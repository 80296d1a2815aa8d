"""`raykd corpus`: what it shows of a corpus and the files that it makes."""

from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from raykd.cli.corpus import app, summary_table
from raykd.corpora import Sentence, make_corpus
from raykd.corpora.builtin import BuiltinSource
from raykd.corpora.conll import ConllSource
from raykd.corpora.describe import describe_corpus
from raykd.corpora.source import SourceConfig
from raykd.errors import SpecError, StoreError
from tests.corpora.parts import read


def run(*arguments):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def folder(tmp_path):
    result = run("make", tmp_path / "made", "--languages", "en,nl", "--train", 20, "--dev", 5, "--test", 5)
    assert "corpus: 8 files in" in result.output
    return tmp_path / "made"


def test_the_files_that_it_makes_are_the_built_in_corpus(folder):
    settings = {"languages": ("en", "nl"), "train": 20, "dev": 5, "test": 5}
    expected = read(BuiltinSource(source="builtin", **settings))
    names = {part: f"{{lang}}/{part}.conll" for part in expected}
    found = read(ConllSource(source="conll", root=str(folder), languages=("en", "nl"), **names))
    for part, sentences in expected.items():
        assert [(s.language, s.tokens) for s in found[part]] == [(s.language, s.tokens) for s in sentences]


def test_a_file_with_task_and_corpus_alone_is_shown(folder, tmp_path):
    path = tmp_path / "mine.yaml"
    corpus = "{source: conll, root: ROOT, languages: [en], train: '{lang}/train.conll', dev: '{lang}/dev.conll', test: '{lang}/test.conll'}"  # fmt: skip  # noqa: E501
    path.write_text(f"task: ner\ncorpus: {corpus.replace('ROOT', str(folder))}\n")
    result = run("show", path)
    assert "can be read. Next: raykd check" in result.output
    assert "train" in result.output
    # Other sections, also faulty ones, are not looked at; a task that does not fit is.
    path.write_text(path.read_text().replace("task: ner", "task: pos\nteachers: {kind: nonsense}"))
    result = run("show", path)
    assert result.exit_code == 0
    assert "and task 'pos' needs flat tags" in result.output
    for text, fault in (("task: ner\n", "corpus"), ("corpus: {source: bultin}\n", "did you mean 'builtin'")):
        path.write_text(text)
        with pytest.raises(SpecError, match=fault):
            run("show", path)


def test_what_was_left_out_is_shown(tmp_path):
    (tmp_path / "t").write_text("a N\n\nb\n\nc N\n\n")
    (tmp_path / "d").write_text("d N\n\na N\n")
    corpus = f"{{source: conll, root: {tmp_path}, languages: [xx], train: t, dev: d, test: d, on_error: skip, most_skipped: 1}}"  # noqa: E501
    (tmp_path / "mine.yaml").write_text(f"task: pos\ncorpus: {corpus}\n")
    output = run("show", tmp_path / "mine.yaml").output
    assert (
        f"1 sentence of train xx has faults and was left out, for example {tmp_path}/t:3: 1 column" in output
    )
    assert "it is also in dev or test (xx 1; for example 'a'); set corpus.overlaps: keep" in output


def test_existing_files_are_kept_without_a_flag(folder):
    sizes = ["--languages", "en,nl", "--train", 7, "--dev", 5, "--test", 5]
    before = (folder / "en" / "train.conll").read_text()
    with pytest.raises(
        StoreError, match=r"train\.conll: exists already; use another folder, or add --overwrite"
    ):
        run("make", folder, *sizes)
    assert (folder / "en" / "train.conll").read_text() == before
    run("make", folder, *sizes, "--overwrite")
    assert (folder / "en" / "train.conll").read_text().count("\n\n") == 7


def test_a_size_out_of_range_is_refused(tmp_path):
    result = run("make", tmp_path, "--train", 0)
    assert result.exit_code == 2
    assert "train: Input should be greater than or equal to 1" in result.output


def test_classes_are_shown_with_their_counts():
    parts = {
        part: [
            Sentence([part, str(i)], ["yes" if i % 3 else "no"], "en", unit="sentence") for i in range(count)
        ]
        for part, count in (("train", 9), ("dev", 3), ("test", 6))
    }
    figures = describe_corpus(make_corpus(parts, SourceConfig(languages=("en",))))
    console = Console(width=200, file=StringIO())
    console.print(summary_table(figures))
    output = console.file.getvalue()
    assert "one class per sentence" in output
    for counts in ("no 3  yes 6", "no 1  yes 2", "no 2  yes 4"):
        assert output.count(counts) == 1
