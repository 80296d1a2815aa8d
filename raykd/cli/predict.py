"""`raykd predict`: label or parse a file with an exported model.

A parser fills HEAD and DEPREL of CoNLL-U; other column files get two more columns. It reads parts of speech in the
CoNLL-U column named by its export, in "pos" of JSON Lines, or as predicted by another export.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Literal, TextIO

import typer

from raykd.cli.console import stderr
from raykd.cli.options import Away, ExportDir, Int8, Overwrite, RunCode, Split, Threads, refuse_existing
from raykd.deploy.label_files import STANDARD_INPUT, Request, read_file_lines, recognise_form
from raykd.deploy.label_texts import json_line, marked_line
from raykd.errors import CorpusError, StoreError
from raykd.forms.tag_schemes import SpanScheme
from raykd.pluralise import pluralise
from raykd.serving.labeller import LabellerError, load, model_file
from raykd.storage.layout import CARD

RUN = re.compile(r"(run|teacher)-[0-9a-f]{16}")
"""Name of a run's folder."""


def predict(
    folder: ExportDir,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File to label; - reads the standard input.", show_default=False)
    ],
    format_: Annotated[
        Literal["auto", "text", "tsv", "conll", "jsonl"],
        typer.Option(
            "--format",
            help="Format of FILE. text: one text per line (a pair: two texts with a tab between "
            "them). tsv: one text per "
            "line in the --column (a pair: also the next column). conll: one word per line, an empty line after each "
            'sentence. jsonl: {"text": …} or {"tokens": […]} per line, with "pos" for a parser and "text_pair" for '
            "pairs. auto: decide by the file's name, then by its beginning; text for -.",
        ),
    ] = "auto",
    column: Annotated[
        int | None,
        typer.Option(min=0, help="Column of the words (CoNLL) or texts (TSV, CSV), counted from 0. Default: detected."),
    ] = None,
    pos: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", show_default=False,
            help="For a parser: an exported student of task pos that predicts the parts of speech. "
            "Default: those in the "
            "file.",
        ),
    ] = None,
    scheme: Annotated[
        SpanScheme | None,
        typer.Option(help="Scheme of the labels in CoNLL files. Default: that of the file's labels, otherwise bioes."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: the standard output.")] = None,
    overwrite: Overwrite = False,
    int8: Int8 = False,
    marked: Annotated[
        bool,
        typer.Option(
            "--marked", help="Mark the labels in the text instead of JSON: [Ada Lovelace PER] lives in [London LOC]."
        ),
    ] = False,
    batch: Annotated[int, typer.Option(min=1, help="Texts or sentences in one batch.")] = 32,
    threads: Threads = 1,
    split: Split = None,
    away: Away = "student",
    run_code: RunCode = False,
) -> None:  # fmt: skip
    """Label FILE with the exported model in DIR: CoNLL gets labels (CoNLL-U: heads), other formats get JSON Lines."""
    check_export(folder, f"raykd predict {{}} {shlex.quote(file)}")
    refuse_existing(out, overwrite)
    if out is not None and out.exists() and Path(file).exists() and out.samefile(file):
        raise StoreError(str(out), "is the file to label", "give another name with --out")
    try:
        labeller = load(
            folder,
            file=model_file(int8=int8),
            threads=threads,
            pos=pos,
            split=split,
            away=away,
            run_code=run_code,
        )
    except LabellerError as error:
        raise StoreError(str(folder), str(error), "see docs/EXPORT.md") from None
    form, settings = recognise_form(file, labeller, format_)
    if marked and not form.of_texts:
        raise CorpusError(file, None, f"--marked is for texts, but the file is {form.name}", "omit it")
    for option, value in (("column", column), ("scheme", scheme)):
        if value is not None and option not in form.takes:
            raise CorpusError(file, None, f"--{option} has no effect, as the file is {form.name}", "omit it")
    with ExitStack() as opened:
        request = Request(
            labeller=labeller, lines=read_file_lines(file, keep_marks=form.keep_marks),
            name=STANDARD_INPUT if file == "-" else file, settings=settings, column=column, scheme=scheme, batch=batch,
            write=partial(marked_line, labeller) if marked else json_line,
            report=lambda line: stderr.print(f"{STANDARD_INPUT if file == '-' else Path(file).name}: {line}"),
        )  # fmt: skip
        target = opened.enter_context(_target(out))
        status = opened.enter_context(stderr.status("labelling …"))
        count = 0
        for written in form.label(request):
            target.write(written)
            count += 1
            if count % 1000 == 0:
                status.update(f"labelling … {count:,}")
    stderr.print(f"predict: {pluralise(count, form.unit)}")


@contextmanager
def _target(out: Path | None) -> Iterator[TextIO]:
    """The UTF-8 stream for the labelled file: standard output, or `out`, which appears whole at the end."""
    if out is None:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
        return
    out = out.resolve()
    whole = not out.exists() or out.is_file()
    part = out.with_name(f".{out.name}.part") if whole else out  # a pipe or device is written as it is
    try:
        with part.open("w", encoding="utf-8") as file:
            yield file
        if whole:
            part.replace(out)
    except OSError as error:
        raise StoreError(str(out), f"cannot be written ({error.strerror})", "give another --out") from None
    finally:
        if whole:
            part.unlink(missing_ok=True)


def check_export(folder: Path, write: str) -> None:
    """Raise StoreError with a hint if a folder is near an exported model: a run, or one export per language.

    Args:
        folder: Folder given by the user.
        write: The user's command, with {} for the export.
    """
    if (folder / CARD).is_file():
        return
    if RUN.fullmatch(folder.resolve().name) and (folder / "model.json").is_file():
        hint = f"run raykd export {shlex.quote(str(folder))} student, then {write.format('student')}"
        raise StoreError(str(folder), "is the folder of a run, not an export", hint)
    if names := sorted(path.parent.name for path in folder.glob(f"*/{CARD}")):
        hint = f"run {write.format(shlex.quote(str(folder / names[0])))}"
        raise StoreError(str(folder), f"holds one model for each language ({', '.join(names)})", hint)
