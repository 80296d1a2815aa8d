"""Label files of texts: a text a line, a column of TSV, or JSON Lines of texts and of words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from raykd.corpora.sentence import SEPARATOR
from raykd.counted import counted
from raykd.deploy.label_columns import GIVE_POS, Numbered
from raykd.errors import CorpusError
from raykd.serving.labeller import READ_AHEAD, Labelled, Labeller, check_pair, joined

PAIR = 'expected {"text": "…", "text_pair": "…"}'
Write = Callable[[Labelled], str]
"""A text with what the model says of it → the line that is written."""


def label_texts(labeller: Labeller, lines: Numbered, file: str, batch: int, write: Write) -> Iterator[str]:
    """Each line, a text, with what the model says of it. Raises CorpusError where the model reads what text lacks."""
    _refuse_without_pos(labeller, file)
    for said in labeller(_checked(labeller, lines, file), batch=batch):
        yield write(said)


def marked_line(labeller: Labeller, said: Labelled) -> str:
    """A text with its spans in brackets, each word with its label, or the label of the whole text in front."""
    spans, parts, at = labeller.has_spans, list[str](), 0
    for number, own in enumerate(said.spans if spans else said.words):
        label = own.label if said.heads is None else f"{own.label}:{said.heads[number]}"
        parts += [said.text[at : own.start], f"[{own.text} {label}]" if spans else f"{own.text}/{label}"]
        at = own.end
    text = ("".join(parts) + said.text[at:]).replace(SEPARATOR, "\t")
    return f"{text}\n" if said.label is None else f"{said.label}: {text}\n"


def text_cells(lines: Numbered, file: str, column: int, count: int) -> Numbered:
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


def label_json(labeller: Labeller, lines: Numbered, file: str, batch: int) -> Iterator[str]:
    """Each object with what the model says laid over it, in their order."""
    read = (_parsed(text, file, number, labeller) for number, text in lines if text.strip())
    while own := list(islice(read, READ_AHEAD * batch)):
        of_text = labeller((_text_of(plain) for plain in own if "text" in plain), batch=batch)
        of_words = iter(_of_words(labeller, [plain for plain in own if "text" not in plain], batch))
        for plain in own:
            if "text" in plain:
                yield json_line(next(of_text), plain)
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


def json_line(said: Labelled, plain: dict[str, Any] | None = None) -> str:
    """What the model says as a line of JSON, laid over the object that was read."""
    own = {key: value for key, value in asdict(said).items() if value is not None}
    if plain and "text_pair" in plain:
        own["text"] = plain["text"]
    return json.dumps({**(plain or {}), **own}, ensure_ascii=False) + "\n"
