"""`raykd corpus`: make corpora and look at them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow.compute as pc
import typer
from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from raykd.cli.console import stderr, stdout, warn
from raykd.cli.options import Overrides, Small, SweepPath, Variants, file_arguments, load_document
from raykd.corpora import PARTS, CorpusConfig, read_corpus
from raykd.corpora.builtin import BuiltinSource
from raykd.corpora.conll import conll_text
from raykd.corpora.describe import describe_corpus, example_sentences
from raykd.deploy.pos_models import open_pos_model
from raykd.errors import CorpusError, StoreError
from raykd.identity import PlainObject
from raykd.pluralise import pluralise
from raykd.recipes.recipe import Recipe, TaskName
from raykd.report.readable_numbers import share
from raykd.spec import Frozen, check, covering_trees
from raykd.storage.store import Storage
from raykd.tasks import TASKS

DEFAULTS = {name: field.default for name, field in BuiltinSource.model_fields.items()}

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Make corpora and look at them.")


class CorpusFile(Frozen):
    """The sections of a sweep file with which a corpus can be read."""

    task: TaskName = Recipe.model_fields["task"].default
    corpus: CorpusConfig


@app.command()
def show(file: SweepPath, set_: Overrides = None, variant: Variants = None, small: Small = False) -> None:
    """Read the corpus of FILE and show its sentences, labels and warnings. FILE may have only `task` and `corpus`."""
    loaded = load_document(file, variant, small, set_)
    sections = {name: value for name, value in loaded.tree.items() if name in CorpusFile.model_fields}
    loaded = replace(loaded, tree=sections, unused={})
    check(loaded, CorpusFile)
    config = CorpusFile.model_validate_json(json.dumps(covering_trees(loaded.tree)[0].tree))
    corpus = read_corpus(config.corpus, open_pos_model)
    figures = describe_corpus(corpus)
    stdout.print(summary_table(figures))
    for line in (*figures["tags_in_words"], *tree_lines(figures)):
        stdout.print(line)
    if "trees" in figures:
        for language, tree in example_sentences(corpus).items():
            stdout.print(Text(f"a tree of {language}:\n{tree}"))
    for warning in figures["warnings"]:
        warn(warning, stderr)
    try:
        task = TASKS[config.task]
        if labels := config.corpus.annotator_labels:
            from raykd.training.teacher_labels import labels_of_config  # torch takes seconds to import

            corpus = labels_of_config(corpus, labels, task)
        task.check(corpus, str(file))
    except CorpusError as error:
        warn(error, stderr)
    stdout.print(
        f"corpus: {file} can be read. Next: raykd check {file_arguments(file, variant, small, set_)}"
    )


@app.command()
def make(
    folder: Annotated[
        Path, typer.Argument(help="Folder to write {lang}/{part}.conll into.", show_default=False)
    ],
    languages: Annotated[str, typer.Option(help="Codes of languages, separated by commas.")] = ",".join(
        DEFAULTS["languages"]
    ),
    train: Annotated[int, typer.Option(help="Sentences of each language in train.")] = DEFAULTS["train"],
    dev: Annotated[int, typer.Option(help="Sentences of each language in dev.")] = DEFAULTS["dev"],
    test: Annotated[int, typer.Option(help="Sentences of each language in test.")] = DEFAULTS["test"],
    unlabelled: Annotated[int, typer.Option(help="Sentences of each language without labels.")] = DEFAULTS[
        "unlabelled"
    ],
    seed: Annotated[int, typer.Option(help="Seed of the generated sentences.")] = DEFAULTS["seed"],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
) -> None:
    """Write the built-in corpus as CoNLL files, an example of the format."""
    settings: dict[str, Any] = {
        "source": "builtin", "languages": tuple(code.strip() for code in languages.split(",")), "train": train,
        "dev": dev, "test": test, "unlabelled": unlabelled, "seed": seed,
    }  # fmt: skip
    try:
        config = BuiltinSource(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        raise typer.BadParameter(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    corpus, storage = read_corpus(config), Storage(str(folder))
    files = [f"{language}/{part}.conll" for language in corpus.languages for part in PARTS]
    existing = [name for name in files if storage.exists(name)]
    if existing and not overwrite:
        raise StoreError(
            str(folder / existing[0]), "exists already", "use another folder, or add --overwrite"
        )
    for language in corpus.languages:
        for part in PARTS:
            table = corpus.parts[part].filter(pc.field("language") == language)
            storage.write(f"{language}/{part}.conll", conll_text(table, corpus.tag_set).encode())
    stdout.print(
        f"corpus: {len(files)} files in {folder}. Next: in a sweep file, corpus: {{source: conll, root: {folder}, "
        f"languages: [{', '.join(corpus.languages)}], train: '{{lang}}/train.conll', dev: '{{lang}}/dev.conll', "
        "test: '{lang}/test.conll', unlabelled: '{lang}/unlabelled.conll'}"
    )


def summary_table(figures: PlainObject) -> Table:
    """Return the figures of `describe` with one line per part and language."""
    scheme = figures["scheme"] if figures["unit"] == "word" else "one class per sentence"
    trees = "trees" in figures
    if trees:
        scheme = f"trees with {len(figures['labels'])} relations"
    table = Table(title=f"{figures['corpus_id']}, {scheme}", title_justify="left")
    projective = ["projective"] if trees else []
    labels = "relations" if trees else "labels"
    for column in ("part", "language", "sentences", "tokens", "mean length", "longest", *projective, labels):
        table.add_column(column, justify="left" if column in ("part", "language", labels) else "right")
    for row in figures["parts"]:
        counts = "  ".join(f"{label} {count}" for label, count in row["labels"].items())
        role = figures["roles"][row["language"]]
        language = row["language"] if role == "labelled" else f"{row['language']} ({role})"
        table.add_row(
            row["part"], language, f"{row['sentences']:,}", f"{row['tokens']:,}",
            f"{row['mean_length']:.1f}", str(row["longest"]),
            *([_projective(row)] if trees else []), counts,
        )  # fmt: skip
    return table


def _projective(row: PlainObject) -> str:
    """The share of projective trees; empty for a part without trees."""
    return share(row["projective"] / row["sentences"], 1) if "projective" in row else ""


def tree_lines(figures: PlainObject) -> list[str]:
    """Return lines on the parts of speech of a treebank and on heads as labels; none for other corpora."""
    if "trees" not in figures:
        return []
    return figures["trees"]["pos"] + [
        f"heads as labels by {name}: {pluralise(counts['labels'], 'label')} in train; "
        f"{share(counts['not_in_train'], 2)} of the words of dev need another one"
        for name, counts in figures["trees"]["encodings"].items()
    ]
