"""`raykd init`: a first sweep file for the corpus in a folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from raykd.cli.console import stderr, stdout, warn
from raykd.cli.options import Overwrite, refuse_existing
from raykd.corpora import PARTS, Corpus, read_corpus
from raykd.corpora.describe import describe_corpus, example_sentences
from raykd.corpora.detect import DetectedCorpus, detect
from raykd.errors import CorpusError
from raykd.identity import PlainObject
from raykd.sweep.draft import draft_sweep_file, fitting_tasks
from raykd.tasks import TASKS

MOST_LABELS, MOST_UNUSED = 8, 4


def init(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="The folder of a corpus, or its URI.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The sweep file that is written.")] = Path("sweep.yaml"),
    task: Annotated[
        str | None,
        typer.Option(
            help="What is predicted, where the labels fit several tasks: parsing, of a treebank; aspect."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Look at the corpus in DIR and write a first sweep file for it: format, columns, languages, parts are found."""
    out.parent.mkdir(parents=True, exist_ok=True)
    refuse_existing(out, overwrite)
    found = detect(folder)
    languages = ", ".join(found.settings["languages"])
    stdout.print(f"init: reading {languages} from {folder}")
    if task is not None and found.tree_settings and TASKS.get(task, TASKS["pos"]).form.reads_heads:
        found = found.with_trees()
    found, corpus = _read(found)
    figures = describe_corpus(corpus)
    task = _fitting(task, fitting_tasks(found, figures), folder)
    stdout.print(corpus_table(found, figures))
    _say(found, figures, example_sentences(corpus))
    out.write_text(draft_sweep_file(found, figures, shlex.quote(str(out)), task), encoding="utf-8")
    file = shlex.quote(str(out))
    stdout.print(
        f"init: {out} is written, task {task}. Look at it, then: raykd check {file}, "
        f"raykd plan {file} --small, raykd sweep {file} --small"
    )


def _fitting(asked: str | None, tasks: tuple[str, ...], folder: str) -> str:
    """The task of the sweep file. Raises CorpusError where the corpus has no labels of the one that was asked for."""
    if asked is None or asked in tasks:
        return asked or tasks[0]
    hint = f"give --task {' or '.join(tasks)}, or leave it out"
    raise CorpusError(folder, None, f"its labels are not of task {asked!r}", hint)


def _read(found: DetectedCorpus) -> tuple[DetectedCorpus, Corpus]:
    """The corpus, and what was detected: where it has faults, their sentences are left out, and that is noted."""
    try:
        return found, read_corpus(found.config)
    except CorpusError as error:
        try:
            without = found.skipping_faults(str(error).partition("\n")[0])
            return without, read_corpus(without.config)
        except CorpusError:
            raise error from None


def _say(found: DetectedCorpus, figures: PlainObject, shown: dict[str, str]) -> None:
    """What was guessed and why, what is doubtful, what is not used."""
    lines = [f"{subject}: {text}" for subject, text in found.guesses]
    lines += figures["tags_in_words"]
    lines += [f"example {language}: {text}" for language, text in list(shown.items())[:4]]
    lines += [f"note: {note}" for note in found.notes]
    reasons: dict[str, list[str]] = {}
    for name, why in found.unused.items():
        reasons.setdefault(why, []).append(name)
    for why, names in reasons.items():
        more = f" and {len(names) - MOST_UNUSED} more" if len(names) > MOST_UNUSED else ""
        lines.append(f"not used: {', '.join(names[:MOST_UNUSED])}{more}: {why}")
    for line in lines:
        stdout.print(line)
    for warning in figures["warnings"]:
        warn(warning, stderr)


def corpus_table(found: DetectedCorpus, figures: PlainObject) -> Table:
    """One line per language and part: its files, and what training will see of them."""
    table = Table(title=f"corpus in {found.root}", title_justify="left")
    for column in ("language", "part", "files", "sentences", "tokens", "labels"):
        table.add_column(column, justify="right" if column in ("sentences", "tokens") else "left")
    rows = {(row["language"], row["part"]): row for row in figures["parts"]}
    for language in figures["languages"]:
        role, first = figures["roles"][language], True
        for part in PARTS:
            row = rows.get((language, part))
            if row is None:
                continue
            files = found.files.get((language, part), ())
            name = (language if role == "labelled" else f"{language} ({role})") if first else ""
            table.add_row(
                name, part, _files(files), f"{row['sentences']:,}", f"{row['tokens']:,}", _labels(row["labels"])
            )  # fmt: skip
            first = False
        table.add_section()
    return table


def _files(files: tuple[str, ...]) -> str:
    if not files:
        return "drawn from train"
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def _labels(counts: dict[str, int]) -> str:
    if not counts:
        return "none"
    most = sorted(counts.items(), key=lambda each: -each[1])
    shown = "  ".join(f"{label} {count:,}" for label, count in most[:MOST_LABELS])
    return shown + (f"  … {len(counts)} in all" if len(counts) > MOST_LABELS else "")
