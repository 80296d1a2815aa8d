"""`raykd predict`: label a file with an exported model."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import typer

from raykd.cli.console import stderr
from raykd.cli.options import refuse_existing
from raykd.corpora.column_files import starts_document
from raykd.corpora.conllu import NO_WORD
from raykd.counted import counted
from raykd.errors import CorpusError, StoreError
from raykd.serving.labeller import CARD, READ_AHEAD, Labelled, Labeller, LabellerError, load, model_file
from raykd.storage import Storage

RUN = re.compile(r"(run|teacher)-[0-9a-f]{16}")
"""The name of a run's folder."""
Numbered = Iterator[tuple[int, str]]
"""(line from 1, its text without the line end)."""


def predict(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="What raykd export wrote.", show_default=False)
    ],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What to label; - reads the standard input.", show_default=False)
    ],
    format_: Annotated[
        Literal["auto", "text", "tsv", "conll", "jsonl"],
        typer.Option(
            "--format",
            help="text: one text a line. tsv: one text a line, in the --column. conll: a word a line, an empty line "
            'after a sentence. jsonl: lines of {"text": …} or {"tokens": […]}. auto: by the end of the name, else by '
            "how the file begins; text for -.",
        ),
    ] = "auto",
    column: Annotated[
        int | None,
        typer.Option(min=0, help="Of the words (CoNLL) or of the text (TSV), from 0. Default: 0; 1 after numbers."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write. Default: the standard output.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    int8: Annotated[bool, typer.Option("--int8", help="Use the file of 8 bits.")] = False,
    batch: Annotated[int, typer.Option(min=1, help="Texts or sentences that are read at once.")] = 32,
    threads: Annotated[int, typer.Option(min=1, help="Of the processor.")] = 1,
) -> None:  # fmt: skip
    """Label FILE with the exported model in DIR: CoNLL gets a column of labels, other lines become JSON Lines."""
    refuse_no_export(folder, f"raykd predict {{}} {shlex.quote(file)}")
    refuse_existing(out, overwrite)
    if out is not None and out.exists() and Path(file).exists() and out.samefile(file):
        raise StoreError(str(out), "is the file to label", "give another name with --out")
    try:
        labeller = load(folder, file=model_file(int8=int8), threads=threads)
    except LabellerError as error:
        raise StoreError(str(folder), str(error), "see docs/EXPORT.md") from None
    form = _format(file, labeller) if format_ == "auto" else format_
    with ExitStack() as opened:
        lines = _lines(file, opened)
        target = opened.enter_context(out.open("w", encoding="utf-8")) if out else sys.stdout
        status = opened.enter_context(stderr.status("labelling …"))
        count = 0
        for written in FORMATS[form](labeller, lines, file, column, batch):
            target.write(written)
            count += 1
            if count % 1000 == 0:
                status.update(f"labelling … {count:,}")
    stderr.print(f"predict: {counted(count, 'sentence' if form == 'conll' else 'text')}", highlight=False)


def refuse_no_export(folder: Path, write: str) -> None:
    """Raise StoreError for what lies near an exported model: the folder of a run, or one that holds an export for each
    language. `write` is the command, with {} for the export."""
    if (folder / CARD).is_file():
        return
    if RUN.fullmatch(folder.resolve().name) and (folder / "model.json").is_file():
        hint = f"write raykd export {shlex.quote(str(folder))} student, then {write.format('student')}"
        raise StoreError(str(folder), "is the folder of a run, not what raykd export wrote", hint)
    if names := sorted(path.parent.name for path in folder.glob(f"*/{CARD}")):
        hint = f"write {write.format(shlex.quote(str(folder / names[0])))}"
        raise StoreError(str(folder), f"holds one model for each language ({', '.join(names)})", hint)


def _format(file: str, labeller: Labeller) -> str:
    """By the end of the name; where that says nothing, by what `raykd init` would take the file for."""
    ends = {".jsonl": "jsonl", ".conll": "conll", ".conllu": "conll", ".iob2": "conll"}
    ends[".tsv"] = "tsv" if labeller.unit == "sentence" else "conll"
    path = Path(file)
    if path.suffix in ends or not path.is_file():
        return ends.get(path.suffix, "text")
    from raykd.corpora.detect.look import look_at  # the readers of corpora take a while to import

    seen = look_at(Storage(str(path.parent)), path.name)
    form = getattr(seen, "format", "text").replace("conllu", "conll")
    # Lines of one word each may be texts: columns are known by their labels.
    form = "text" if form == "conll" and not getattr(seen, "labelled", False) else form
    if form not in FORMATS:
        raise CorpusError(file, None, f"the file is {form}", "write it as JSON Lines, or give --format")
    return form


def _lines(file: str, opened: ExitStack) -> Numbered:
    if file == "-":
        return _decoded(sys.stdin.buffer, "standard input")
    if not Path(file).is_file():
        raise CorpusError(file, None, "there is no such file", "give a file, or - for the standard input")
    return _decoded(opened.enter_context(Path(file).open("rb")), file)


def _decoded(source: Iterable[bytes], name: str) -> Numbered:
    for number, line in enumerate(source, start=1):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise CorpusError(name, number, "the line is not UTF-8", "convert the file to UTF-8") from None


def _of_text(labeller: Labeller, lines: Numbered, file: str, column: int | None, batch: int) -> Iterator[str]:
    for said in labeller((text for _, text in lines), batch=batch):
        yield _json_line(said)


def _of_tsv(labeller: Labeller, lines: Numbered, file: str, column: int | None, batch: int) -> Iterator[str]:
    for said in labeller(_cells(lines, file, column or 0), batch=batch):
        yield _json_line(said)


def _cells(lines: Numbered, file: str, column: int) -> Iterator[str]:
    for number, line in lines:
        cells = line.split("\t")
        if line.strip() and len(cells) <= column:
            problem = (
                f"the line has {counted(len(cells), 'column')}, and the text is expected in column {column}"
            )
            raise CorpusError(file, number, problem, "set --column to the column of the text, from 0")
        if line.strip():
            yield cells[column]


def _of_json(labeller: Labeller, lines: Numbered, file: str, column: int | None, batch: int) -> Iterator[str]:
    """Each object with what the model says laid over it, in their order."""
    read = (_parsed(text, file, number) for number, text in lines if text.strip())
    while own := list(islice(read, READ_AHEAD * batch)):
        of_text = labeller((plain["text"] for plain in own if "text" in plain), batch=batch)
        of_words = iter(
            labeller.label([plain["tokens"] for plain in own if "text" not in plain], batch=batch)
        )
        for plain in own:
            if "text" in plain:
                yield _json_line(next(of_text), plain)
            else:
                yield json.dumps({**plain, "labels": next(of_words)}, ensure_ascii=False) + "\n"


def _parsed(text: str, file: str, number: int) -> dict[str, Any]:
    expected = 'expected {"text": "…"} or {"tokens": ["…", …]}, with one word at least'
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise CorpusError(file, number, f"the line is not JSON ({error})", expected) from None
    if isinstance(plain, dict):
        tokens = plain.get("tokens")
        words = isinstance(tokens, list) and bool(tokens) and all(isinstance(word, str) for word in tokens)
        if isinstance(plain["text"], str) if "text" in plain else words:
            return plain
    raise CorpusError(file, number, f"got {text[:60]!r}", expected)


def _json_line(said: Labelled, plain: dict[str, Any] | None = None) -> str:
    own = {key: value for key, value in asdict(said).items() if value is not None}
    return json.dumps({**(plain or {}), **own}, ensure_ascii=False) + "\n"


def _of_conll(
    labeller: Labeller, lines: Numbered, file: str, column: int | None, batch: int
) -> Iterator[str]:
    """Each sentence with a last column of labels; comments stay where they are."""
    read = _sentences(lines, file, column)
    while own := list(islice(read, READ_AHEAD * batch)):
        labels = iter(labeller.label([words for _, words in own if words], batch=batch))
        for rows, words in own:
            found = iter(_for_each(next(labels), words) if words else ())
            yield (
                "".join(f"{row}\t{next(found)}\n" if is_word else f"{row}\n" for row, is_word in rows) + "\n"
            )


def _for_each(labels: list[str], words: list[str]) -> list[str]:
    """One label for each word: of a task that labels whole sentences the same for all."""
    return labels if len(labels) == len(words) else labels * len(words)


def _sentences(
    lines: Numbered, file: str, column: int | None
) -> Iterator[tuple[list[tuple[str, bool]], list[str]]]:
    """(lines and whether each is a word's, the words) of each sentence."""
    for block in _blocks(lines):
        separator = "\t" if any("\t" in text for _, text in block) else None
        cells = [(number, text, text.split(separator)) for number, text in block]
        # A word "#" has all columns, a comment has others.
        width = next((len(own) for _, text, own in cells if not text.startswith("#")), None)
        lines_of_words = [
            not starts_document(text) and (not text.startswith("#") or len(own) == width)
            for _, text, own in cells
        ]
        if column is None and any(lines_of_words):
            column = _column(
                [own for (_, _, own), of_word in zip(cells, lines_of_words, strict=True) if of_word]
            )
        rows, words = [], []
        for (number, text, own), of_word in zip(cells, lines_of_words, strict=True):
            is_word = of_word and not (column and NO_WORD.fullmatch(own[0]))
            rows.append((text, is_word))
            if is_word and len(own) <= (column or 0):
                problem = (
                    f"the line has {counted(len(own), 'column')}, and words are expected in column {column}"
                )
                raise CorpusError(file, number, problem, "set --column to the column of the words, from 0")
            words += [own[column or 0]] if is_word else []
        yield rows, words


def _column(rows: list[list[str]]) -> int:
    """The column of the words: the second where the first counts them, from 0 or from 1."""
    numbers = [own[0] for own in rows if not NO_WORD.fullmatch(own[0])]
    counted = [*map(str, range(len(numbers) + 1))]
    return int(numbers in (counted[1:], counted[:-1]) and all(len(own) > 1 for own in rows))


def _blocks(lines: Numbered) -> Iterator[list[tuple[int, str]]]:
    """The lines between empty ones."""
    block: list[tuple[int, str]] = []
    for number, text in lines:
        if text.strip():
            block.append((number, text))
        elif block:
            yield block
            block = []
    if block:
        yield block


FORMATS: MappingProxyType[str, Callable[[Labeller, Numbered, str, int | None, int], Iterator[str]]] = (
    MappingProxyType({"text": _of_text, "tsv": _of_tsv, "jsonl": _of_json, "conll": _of_conll})
)
