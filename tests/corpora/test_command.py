"""`raykd corpus`: what it shows of a corpus and the files that it makes."""

from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from raykd.cli.corpus import app, summary_table
from raykd.corpora import Sentence, make_corpus
from raykd.corpora.builtin import BuiltinSource
from raykd.corpora.conll import ConllSource
from raykd.corpora.describe import describe
from raykd.corpora.source import SourceConfig
from raykd.errors import StoreError
from tests.corpora.parts import read


def run(*arguments):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def folder(tmp_path):
    done = run("make", tmp_path / "made", "--languages", "en,nl", "--train", 20, "--dev", 5, "--test", 5)
    assert "corpus: 8 files in" in done.output
    return tmp_path / "made"


def test_the_files_that_it_makes_are_the_built_in_corpus(folder):
    settings = {"languages": ("en", "nl"), "train": 20, "dev": 5, "test": 5}
    expected = read(BuiltinSource(source="builtin", **settings))
    names = {part: f"{{lang}}/{part}.conll" for part in expected}
    found = read(ConllSource(source="conll", root=str(folder), languages=("en", "nl"), **names))
    for part, sentences in expected.items():
        assert [(s.language, s.tokens) for s in found[part]] == [(s.language, s.tokens) for s in sentences]


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
    done = run("make", tmp_path, "--train", 0)
    assert done.exit_code == 2
    assert "train: Input should be greater than or equal to 1" in done.output


def test_classes_are_shown_with_their_counts():
    parts = {
        part: [
            Sentence([part, str(i)], ["yes" if i % 3 else "no"], "en", unit="sentence") for i in range(count)
        ]
        for part, count in (("train", 9), ("dev", 3), ("test", 6))
    }
    figures = describe(make_corpus(parts, SourceConfig(languages=("en",))))
    console = Console(width=200, file=StringIO())
    console.print(summary_table(figures))
    shown = console.file.getvalue()
    assert "one class per sentence" in shown
    for counts in ("no 3  yes 6", "no 1  yes 2", "no 2  yes 4"):
        assert shown.count(counts) == 1
