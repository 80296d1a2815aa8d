"""The form of a file that is to be labelled, its lines, and what labels them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from raykd.deploy.label_columns import Numbered, label_columns
from raykd.deploy.label_texts import Write, json_line, label_json, label_texts, text_cells
from raykd.errors import CorpusError
from raykd.serving.labeller import Labeller
from raykd.storage.store import Storage

OF_TEXTS = ("text", "tsv")
"""Forms of which each text becomes a line."""
FORMS = (*OF_TEXTS, "jsonl", "conll")


def label_file(
    labeller: Labeller,
    lines: Numbered,
    file: str,
    form: str,
    *,
    column: int | None = None,
    batch: int = 32,
    write: Write = json_line,
) -> Iterator[str]:
    """Label the lines of a file; of texts JSON Lines, of columns a last column, in their order.

    Args:
        lines: as `numbered_lines` reads them.
        file: its name, for errors.
        form: one of `FORMS`.
        column: of the words (conll) or of the text (tsv), from 0; None: the one that they are mostly in.
        batch: texts or sentences that are read at once.
        write: how a text is written; JSON Lines and columns are written as they were read.

    Raises:
        CorpusError: a line is not of that form, or lacks what the model reads.
    """
    if form == "conll":
        return label_columns(labeller, lines, file, column, batch)
    if form == "jsonl":
        return label_json(labeller, lines, file, batch)
    if form == "tsv":
        lines = text_cells(lines, file, column or 0, 2 if labeller.pairs else 1)
    return label_texts(labeller, lines, file, batch, write)


def format_of(file: str, labeller: Labeller) -> str:
    """The form of a file by the end of its name; where that says nothing, what `raykd init` would take it for."""
    ends = {".jsonl": "jsonl", ".conll": "conll", ".conllu": "conll", ".iob2": "conll"}
    ends[".tsv"] = "tsv" if labeller.unit == "sentence" else "conll"
    path = Path(file)
    if path.suffix in ends or not path.is_file() or labeller.pairs:
        return ends.get(path.suffix, "text")
    from raykd.corpora.look import look_at  # the readers of corpora take a while to import

    guess = look_at(Storage(str(path.parent)), path.name)
    form = guess.source.replace("conllu", "conll") if guess.readable else "text"
    # Lines of one word each may be texts: columns are known by their labels.
    form = "text" if form == "conll" and not guess.labelled else form
    if form not in FORMS:
        raise CorpusError(file, None, f"the file is {form}", "write it as JSON Lines, or give --format")
    return form


def numbered_lines(file: str, opened: ExitStack) -> Numbered:
    """The lines of a file, which `opened` closes; - is the standard input."""
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
