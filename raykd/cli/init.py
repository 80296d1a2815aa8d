"""`raykd init`: write a first sweep file for the corpus in a folder."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from raykd.cli.console import stderr, stdout, warn
from raykd.cli.options import Overwrite, refuse_existing
from raykd.corpora import PARTS, Corpus, read_corpus
from raykd.corpora.answers.detection import AnswerFiles, find_answer_files
from raykd.corpora.describe import describe_corpus, example_sentences
from raykd.corpora.detect import DetectedCorpus, detect, find_texts
from raykd.errors import CorpusError
from raykd.identity import PlainObject
from raykd.sweep.annotator_draft import draft_annotated, teachers_section
from raykd.sweep.draft import draft_sweep_file, fitting_tasks
from raykd.sweep.draft_lines import flow_yaml
from raykd.tasks import TASKS

MOST_LABELS, MOST_UNUSED = 8, 4


def init(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder or URI of a corpus.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Sweep file to write.")] = Path("sweep.yaml"),
    task: Annotated[
        str | None,
        typer.Option(help="Task, if the labels fit several: for example parsing for a treebank, or aspect."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Detect format, columns, languages and parts of the corpus in DIR, and write a first sweep file for it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    refuse_existing(out, overwrite)
    answers = find_answer_files(folder)
    try:
        detected = detect(folder)
    except CorpusError:
        if answers is None:
            raise
        _init_annotated(folder, answers, out)
        return
    languages = ", ".join(detected.settings["languages"])
    stdout.print(f"init: reading {languages} from {folder}")
    if task is not None and detected.tree_settings and TASKS.get(task, TASKS["pos"]).form.reads_heads:
        detected = detected.with_trees()
    detected, corpus = _read(detected)
    figures = describe_corpus(corpus)
    task = _fitting(task, fitting_tasks(detected, figures), folder)
    stdout.print(corpus_table(detected, figures))
    _print_findings(detected, figures, example_sentences(corpus))
    if answers is not None:
        teachers = flow_yaml(teachers_section(answers))
        stdout.print(
            f"note: {', '.join(answers.names)}: answers of an annotator; to learn from them: teachers: {teachers}"
        )
    out.write_text(draft_sweep_file(detected, figures, shlex.quote(str(out)), task), encoding="utf-8")
    file = shlex.quote(str(out))
    stdout.print(
        f"init: {out} is written, task {task}. Look at it, then: raykd check {file}, "
        f"raykd plan {file} --small, raykd sweep {file} --small"
    )


def _init_annotated(folder: str, answers: AnswerFiles, out: Path) -> None:
    """Write the sweep file for texts and answers without gold labels."""
    names = {os.path.relpath(name, folder) for name in answers.names}
    texts = find_texts(folder, without=names)
    if not texts:
        hint = "put the texts beside them, one in each line"
        raise CorpusError(folder, None, f"there are answers ({', '.join(sorted(names))}) and no texts", hint)
    file = shlex.quote(str(out))
    out.write_text(draft_annotated(folder, texts, answers, file), encoding="utf-8")
    stdout.print(
        f"{', '.join(sorted(names))}: answers of an annotator ({answers.form}), with the labels "
        f"{', '.join(answers.labels[:MOST_LABELS])}\n{texts[0]}: the texts; there are no gold labels, so that "
        f"scores are agreement with the annotator\ninit: {out} is written, task ner. Look at it, then: "
        f"raykd check {file}, raykd plan {file}, raykd sweep {file} --small"
    )


def _fitting(requested: str | None, tasks: tuple[str, ...], folder: str) -> str:
    """The task of the sweep file; CorpusError if the labels do not fit the requested task."""
    if requested is None or requested in tasks:
        return requested or tasks[0]
    hint = f"give --task {' or '.join(tasks)}, or leave it out"
    raise CorpusError(folder, None, f"its labels do not fit the task {requested!r}", hint)


def _read(detected: DetectedCorpus) -> tuple[DetectedCorpus, Corpus]:
    """Read the corpus. If sentences have faults, leave them out and add that to the detected settings."""
    try:
        return detected, read_corpus(detected.config)
    except CorpusError as error:
        try:
            without = detected.skipping_faults(str(error).partition("\n")[0])
            return without, read_corpus(without.config)
        except CorpusError:
            raise error from None


def _print_findings(
    detected: DetectedCorpus, figures: PlainObject, example_sentences: dict[str, str]
) -> None:
    """Print the guesses with reasons, the doubts, and the files not used."""
    lines = [f"{subject}: {text}" for subject, text in detected.guesses]
    lines += figures["tags_in_words"]
    lines += [f"example {language}: {text}" for language, text in list(example_sentences.items())[:4]]
    lines += [f"note: {note}" for note in detected.notes]
    reasons: dict[str, list[str]] = {}
    for name, reason in detected.unused.items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        more = f" and {len(names) - MOST_UNUSED} more" if len(names) > MOST_UNUSED else ""
        lines.append(f"not used: {', '.join(names[:MOST_UNUSED])}{more}: {reason}")
    for line in lines:
        stdout.print(line)
    for warning in figures["warnings"]:
        warn(warning, stderr)


def corpus_table(detected: DetectedCorpus, figures: PlainObject) -> Table:
    """Return a table with one line per language and part: its files, and its sentences as training will see them."""
    table = Table(title=f"corpus in {detected.root}", title_justify="left")
    for column in ("language", "part", "files", "sentences", "tokens", "labels"):
        table.add_column(column, justify="right" if column in ("sentences", "tokens") else "left")
    rows = {(row["language"], row["part"]): row for row in figures["parts"]}
    for language in figures["languages"]:
        role, first = figures["roles"][language], True
        for part in PARTS:
            row = rows.get((language, part))
            if row is None:
                continue
            files = detected.files.get((language, part), ())
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
    by_count = sorted(counts.items(), key=lambda item: -item[1])
    text = "  ".join(f"{label} {count:,}" for label, count in by_count[:MOST_LABELS])
    return text + (f"  … {len(counts)} in all" if len(counts) > MOST_LABELS else "")
