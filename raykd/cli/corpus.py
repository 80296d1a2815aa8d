"""`raykd corpus`: make and look at corpora."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pyarrow.compute as pc
import typer
from pydantic import ValidationError
from rich.table import Table

from raykd.cli.console import stderr, stdout
from raykd.cli.options import Overrides, Small, SweepPath, Variants, document
from raykd.corpora import PARTS, read_corpus
from raykd.corpora.builtin import BuiltinSource
from raykd.corpora.conll import conll_text
from raykd.corpora.describe import describe
from raykd.errors import StoreError
from raykd.spec import covering
from raykd.storage import Storage
from raykd.sweep.spec import check_sweep, plain_sweep

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Make and look at corpora.")


@app.command()
def show(file: SweepPath, set_: Overrides = None, variant: Variants = None, small: Small = False) -> None:
    """Read the corpus of the sweep FILE and show its sentences, labels, repairs and overlaps."""
    loaded = document(file, set_, variant, small)
    check_sweep(loaded)
    corpus = read_corpus(plain_sweep(covering(loaded.tree)[0].tree).corpus)
    figures = describe(corpus)
    stdout.print(_table(figures))
    for warning in figures["warnings"]:
        stderr.print(f"[yellow]warning[/yellow] {warning}", highlight=False, soft_wrap=True)
    stdout.print(f"corpus: {file} can be read. Next: raykd plan {file}", highlight=False, soft_wrap=True)


@app.command()
def make(
    folder: Annotated[
        Path, typer.Argument(help="Where {lang}/{part}.conll are written.", show_default=False)
    ],
    languages: Annotated[str, typer.Option(help="Codes with commas between.")] = "en,de,es,nl",
    train: int = 400,
    dev: int = 100,
    test: int = 150,
    unlabelled: int = 600,
    seed: int = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Write the built-in corpus as CoNLL files: a form to copy for one's own."""
    asked: dict[str, Any] = {
        "source": "builtin", "languages": tuple(code.strip() for code in languages.split(",")), "train": train,
        "dev": dev, "test": test, "unlabelled": unlabelled, "seed": seed,
    }  # fmt: skip
    corpus, storage = read_corpus(_config(asked)), Storage(str(folder))
    files = [f"{language}/{part}.conll" for language in corpus.languages for part in PARTS]
    there = [name for name in files if storage.exists(name)]
    if there and not overwrite:
        raise StoreError(str(folder / there[0]), "is there already", "give another folder, or --overwrite")
    for language in corpus.languages:
        for part in PARTS:
            table = corpus.parts[part].filter(pc.field("language") == language)
            storage.write(f"{language}/{part}.conll", conll_text(table, corpus.tag_set).encode())
    stdout.print(
        f"corpus: {len(files)} files in {folder}. Next: in a sweep file, corpus: {{source: conll, root: {folder}, "
        f"languages: [{', '.join(corpus.languages)}], train: '{{lang}}/train.conll', dev: '{{lang}}/dev.conll', "
        "test: '{lang}/test.conll', unlabelled: '{lang}/unlabelled.conll'}",
        highlight=False, soft_wrap=True, markup=False,
    )  # fmt: skip


def _config(asked: dict[str, Any]) -> BuiltinSource:
    try:
        return BuiltinSource(**asked)
    except ValidationError as error:
        first = error.errors()[0]
        raise typer.BadParameter(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _table(figures: dict[str, Any]) -> Table:
    table = Table(title=f"{figures['corpus_id']}, {figures['scheme']}", title_justify="left")
    for column in ("part", "language", "sentences", "tokens", "mean length", "longest", "labels"):
        table.add_column(column, justify="left" if column in ("part", "language", "labels") else "right")
    for row in figures["parts"]:
        labels = "  ".join(f"{label} {count}" for label, count in row["labels"].items())
        role = figures["roles"][row["language"]]
        language = row["language"] if role == "labelled" else f"{row['language']} ({role})"
        table.add_row(
            row["part"], language, f"{row['sentences']:,}", f"{row['tokens']:,}",
            f"{row['mean_length']:.1f}", str(row["longest"]), labels,
        )  # fmt: skip
    return table
