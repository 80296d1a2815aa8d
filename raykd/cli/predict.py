"""`raykd predict`: label a file with an exported model, or parse it.

A parser fills HEAD and DEPREL of CoNLL-U; other columns get two more. It reads parts of speech in the column of CoNLL-U
that its export names, in "pos" of JSON Lines, or what another export predicts.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import typer

from raykd.cli.console import stderr
from raykd.cli.options import refuse_existing
from raykd.corpora.column_files import starts_document
from raykd.corpora.conllu import COLUMNS, HEAD_COLUMN, MISSING, NO_WORD, WIDTH
from raykd.counted import counted
from raykd.errors import CorpusError, StoreError
from raykd.serving.labeller import (
    CARD,
    READ_AHEAD,
    SEPARATOR,
    Labelled,
    Labeller,
    LabellerError,
    check_pair,
    joined,
    load,
    model_file,
)
from raykd.storage.store import Storage

RUN = re.compile(r"(run|teacher)-[0-9a-f]{16}")
"""The name of a run's folder."""
PAIR = 'expected {"text": "…", "text_pair": "…"}'
GIVE_POS = "give --pos DIR, an export of a student of task pos"
Numbered = Iterator[tuple[int, str]]
"""(line from 1, its text without the line end)."""
Write = Callable[[Labelled], str]
"""A text with what the model says of it → the line that is written."""
Rows = tuple[list[tuple[int, str, bool]], list[str]]
"""Each line of a sentence with its number and whether it is a word's, and the words."""


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
            help="text: one text a line, or two with a tab between them for a model of pairs. tsv: one text a line, in "
            "the --column, of a pair the second in the next one. conll: a word a line, an empty line after a sentence. "
            'jsonl: lines of {"text": …} or {"tokens": […]}, with "pos" for a parser, with "text_pair" for a model of '
            "pairs. auto: by the end of the name, else by how the file begins; text for -.",
        ),
    ] = "auto",
    column: Annotated[
        int | None,
        typer.Option(min=0, help="Of the words (CoNLL) or of the text (TSV), from 0. Default: 0; 1 after numbers."),
    ] = None,
    pos: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", show_default=False,
            help="Of a parser: an export of a student of task pos, which gives the parts of speech. Default: those of "
            "the file.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write. Default: the standard output.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    int8: Annotated[bool, typer.Option("--int8", help="Use the file of 8 bits.")] = False,
    marked: Annotated[
        bool,
        typer.Option(
            "--marked", help="Of texts, write what people read, no JSON: [Ada Lovelace PER] lives in [London LOC]."
        ),
    ] = False,
    batch: Annotated[int, typer.Option(min=1, help="Texts or sentences that are read at once.")] = 32,
    threads: Annotated[int, typer.Option(min=1, help="Of the processor.")] = 1,
) -> None:  # fmt: skip
    """Label FILE with the exported model in DIR: CoNLL gets labels (CoNLL-U heads), other lines become JSON Lines."""
    refuse_no_export(folder, f"raykd predict {{}} {shlex.quote(file)}")
    refuse_existing(out, overwrite)
    if out is not None and out.exists() and Path(file).exists() and out.samefile(file):
        raise StoreError(str(out), "is the file to label", "give another name with --out")
    try:
        labeller = load(folder, file=model_file(int8=int8), threads=threads, pos=pos)
    except LabellerError as error:
        raise StoreError(str(folder), str(error), "see docs/EXPORT.md") from None
    form = _format(file, labeller) if format_ == "auto" else format_
    label = FORMATS[form]
    if marked:
        if form not in OF_TEXTS:
            raise CorpusError(file, None, f"--marked is for texts, and the file is {form}", "leave it out")
        label = partial(OF_TEXTS[form], write=partial(_marked, labeller))
    with ExitStack() as opened:
        lines = _lines(file, opened)
        target = opened.enter_context(out.open("w", encoding="utf-8")) if out else sys.stdout
        status = opened.enter_context(stderr.status("labelling …"))
        count = 0
        for written in label(labeller, lines, file, column, batch):
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
    if path.suffix in ends or not path.is_file() or labeller.pairs:
        return ends.get(path.suffix, "text")
    from raykd.corpora.look import look_at  # the readers of corpora take a while to import

    guess = look_at(Storage(str(path.parent)), path.name)
    form = guess.source.replace("conllu", "conll") if guess.readable else "text"
    # Lines of one word each may be texts: columns are known by their labels.
    form = "text" if form == "conll" and not guess.labelled else form
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


def _of_text(
    labeller: Labeller,
    lines: Numbered,
    file: str,
    column: int | None,
    batch: int,
    *,
    write: Write | None = None,
) -> Iterator[str]:
    _refuse_without_pos(labeller, file)
    for said in labeller(_checked(labeller, lines, file), batch=batch):
        yield (write or _json_line)(said)


def _of_tsv(
    labeller: Labeller,
    lines: Numbered,
    file: str,
    column: int | None,
    batch: int,
    *,
    write: Write | None = None,
) -> Iterator[str]:
    texts = _cells(lines, file, column or 0, 2 if labeller.pairs else 1)
    yield from _of_text(labeller, texts, file, None, batch, write=write)


def _marked(labeller: Labeller, said: Labelled) -> str:
    """A text with its spans in brackets, each word with its label, or the label of the whole text in front."""
    spans, parts, at = labeller.has_spans, list[str](), 0
    for number, own in enumerate(said.spans if spans else said.words):
        label = own.label if said.heads is None else f"{own.label}:{said.heads[number]}"
        parts += [said.text[at : own.start], f"[{own.text} {label}]" if spans else f"{own.text}/{label}"]
        at = own.end
    text = ("".join(parts) + said.text[at:]).replace(SEPARATOR, "\t")
    return f"{text}\n" if said.label is None else f"{said.label}: {text}\n"


def _cells(lines: Numbered, file: str, column: int, count: int) -> Numbered:
    """The text of each line, or the two texts from `column` on."""
    for number, line in lines:
        cells = line.split("\t")
        if line.strip() and len(cells) < column + count:
            where = f"the text is expected in column {column}"
            if count > 1:
                where = f"the texts are expected in columns {column} and {column + 1}"
            problem = f"the line has {counted(len(cells), 'column')}, and {where}"
            raise CorpusError(file, number, problem, "set --column to the column of the text, from 0")
        if line.strip():
            yield number, SEPARATOR.join(cells[column : column + count])


def _checked(labeller: Labeller, texts: Numbered, file: str) -> Iterator[str]:
    """The texts. Raises CorpusError where one is no pair, and the model labels pairs."""
    for number, text in texts:
        if labeller.pairs:
            _refuse_single(text, file, number)
        yield text


def _refuse_single(given: str | list[str], file: str, number: int) -> None:
    try:
        check_pair(given)
    except ValueError as error:
        raise CorpusError(file, number, str(error), "see docs/EXPORT.md") from None


def _of_json(labeller: Labeller, lines: Numbered, file: str, column: int | None, batch: int) -> Iterator[str]:
    """Each object with what the model says laid over it, in their order."""
    read = (_parsed(text, file, number, labeller) for number, text in lines if text.strip())
    while own := list(islice(read, READ_AHEAD * batch)):
        of_text = labeller((_text_of(plain) for plain in own if "text" in plain), batch=batch)
        of_words = iter(_of_words(labeller, [plain for plain in own if "text" not in plain], batch))
        for plain in own:
            if "text" in plain:
                yield _json_line(next(of_text), plain)
            else:
                yield json.dumps({**plain, **next(of_words)}, ensure_ascii=False) + "\n"


def _text_of(plain: dict[str, Any]) -> str:
    return joined(plain["text"], plain["text_pair"]) if "text_pair" in plain else plain["text"]


def _of_words(labeller: Labeller, given: list[dict[str, Any]], batch: int) -> list[dict[str, Any]]:
    """What the model says of the words of each object."""
    words = [plain["tokens"] for plain in given]
    if labeller.utterances:
        found = labeller.intents_and_slots(words, batch=batch)
        return [{"label": intent, "labels": slots} for intent, slots in found]
    if labeller.trees is None:
        return [{"labels": labels} for labels in labeller.label(words, batch=batch)]
    pos = None if labeller.tagger else [plain.get("pos") for plain in given]
    trees = labeller.parse(words, pos, batch=batch)
    return [
        {"heads": [head for head, _ in tree], "relations": [relation for _, relation in tree]}
        for tree in trees
    ]


def _parsed(text: str, file: str, number: int, labeller: Labeller) -> dict[str, Any]:
    expected = 'expected {"text": "…"} or {"tokens": ["…", …]}, with one word at least'
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise CorpusError(file, number, f"the line is not JSON ({error})", expected) from None
    if not isinstance(plain, dict) or not (
        isinstance(plain["text"], str) if "text" in plain else _strings(plain.get("tokens"))
    ):
        raise CorpusError(file, number, f"got {text[:60]!r}", expected)
    if labeller.pairs:
        if not isinstance(plain.get("text_pair", ""), str):
            raise CorpusError(file, number, f"got {text[:60]!r}", PAIR)
        _refuse_single(_text_of(plain) if "text" in plain else plain["tokens"], file, number)
    if labeller.trees is not None and labeller.needs_pos:
        if "text" in plain:
            _refuse_without_pos(labeller, file, number)
        if not _strings(plain.get("pos")):
            problem = 'the model reads parts of speech, and the line has none in "pos"'
            raise CorpusError(file, number, problem, GIVE_POS)
        try:
            labeller.trees.check_pos(plain["tokens"], plain["pos"], tagged=False)
        except ValueError as error:
            raise CorpusError(file, number, str(error), GIVE_POS) from None
    return plain


def _strings(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(isinstance(each, str) for each in given)


def _refuse_without_pos(labeller: Labeller, file: str, line: int | None = None) -> None:
    """Raise CorpusError where the model reads parts of speech, which text does not have."""
    if labeller.needs_pos:
        problem = "text has no parts of speech, which the model reads"
        raise CorpusError(file, line, problem, f"{GIVE_POS}, or a file of CoNLL-U")


def _json_line(said: Labelled, plain: dict[str, Any] | None = None) -> str:
    own = {key: value for key, value in asdict(said).items() if value is not None}
    if plain and "text_pair" in plain:
        own["text"] = plain["text"]
    return json.dumps({**(plain or {}), **own}, ensure_ascii=False) + "\n"


def _of_conll(
    labeller: Labeller, lines: Numbered, file: str, column: int | None, batch: int
) -> Iterator[str]:
    """Each sentence with a last column of labels; comments stay where they are."""
    if labeller.pairs:
        problem = "columns of words have no pairs of texts, which the model labels"
        raise CorpusError(file, None, problem, "give --format text, tsv or jsonl")
    read = _sentences(lines, file, column)
    if labeller.trees is not None:
        yield from _of_trees(labeller, read, file, batch)
        return
    while own := list(islice(read, READ_AHEAD * batch)):
        texts = [words for _, words in own if words]
        intents: Iterator[str] = iter(())
        if labeller.utterances:
            found_of_each = labeller.intents_and_slots(texts, batch=batch)
            intents = (f"# intent: {intent}\n" for intent, _ in found_of_each)
            labels = iter([slots for _, slots in found_of_each])
        else:
            labels = iter(labeller.label(texts, batch=batch))
        for rows, words in own:
            found = iter(_for_each(next(labels), words) if words else ())
            yield (
                (next(intents, "") if words else "")
                + "".join(f"{row}\t{next(found)}\n" if is_word else f"{row}\n" for _, row, is_word in rows)
                + "\n"
            )


def _of_trees(labeller: Labeller, read: Iterator[Rows], file: str, batch: int) -> Iterator[str]:
    """Each sentence with its tree, in HEAD and DEPREL of CoNLL-U, else in two more columns."""
    while own := list(islice(read, READ_AHEAD * batch)):
        pos = [_pos_of(labeller, rows, file) for rows, words in own if words]
        trees = iter(labeller.parse([words for _, words in own if words], pos, batch=batch))
        for rows, words in own:
            arcs = iter(next(trees) if words else ())
            yield (
                "".join(f"{_with_arc(row, next(arcs)) if is_word else row}\n" for _, row, is_word in rows)
                + "\n"
            )


def _pos_of(labeller: Labeller, rows: list[tuple[int, str, bool]], file: str) -> list[str] | None:
    """The parts of speech of a sentence's words, where the model must be given them: a column of CoNLL-U."""
    if labeller.trees is None or not labeller.needs_pos:
        return None
    name: Any = labeller.card["trees"]["pos"]
    found = []
    for number, row, is_word in rows:
        cells, problem = row.split("\t"), ""
        if not is_word:
            continue
        if len(cells) != WIDTH:
            problem = f"the model reads parts of speech, {name.upper()} of CoNLL-U's {WIDTH} columns, and the line has "
            raise CorpusError(file, number, f"{problem}{counted(len(cells), 'column')}", GIVE_POS)
        if (pos := cells[COLUMNS[name]]) not in labeller.trees.pos:
            known = ", ".join(labeller.trees.own_pos)
            problem = f"unknown {name.upper()} {pos!r} ({known})"
            if pos in MISSING:
                problem = f"{cells[1]!r} has no {name.upper()}, which the model reads"
            raise CorpusError(file, number, problem, f"annotate it, or {GIVE_POS}")
        found.append(pos)
    return found


def _with_arc(row: str, arc: tuple[int, str]) -> str:
    head, relation = arc
    cells = row.split("\t")
    if len(cells) != WIDTH:
        return f"{row}\t{head}\t{relation}"
    cells[HEAD_COLUMN], cells[COLUMNS["deprel"]] = str(head), relation
    return "\t".join(cells)


def _for_each(labels: list[str], words: list[str]) -> list[str]:
    """One label for each word: of a task that labels whole sentences the same for all."""
    return labels if len(labels) == len(words) else labels * len(words)


def _sentences(lines: Numbered, file: str, column: int | None) -> Iterator[Rows]:
    """The lines and the words of each sentence."""
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
            rows.append((number, text, is_word))
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


OF_TEXTS = MappingProxyType({"text": _of_text, "tsv": _of_tsv})
"""Those of which each text becomes a line."""
FORMATS: MappingProxyType[str, Callable[[Labeller, Numbered, str, int | None, int], Iterator[str]]] = (
    MappingProxyType({**OF_TEXTS, "jsonl": _of_json, "conll": _of_conll})
)
