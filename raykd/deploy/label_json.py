"""Labelling of JSON Lines with texts or words: the model's answer is added to the fields of the objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any

from raykd.corpora.json_items import parse_json
from raykd.deploy.label_columns import GIVE_POS
from raykd.deploy.label_texts import Numbered, refuse_single, refuse_without_pos
from raykd.errors import CorpusError
from raykd.serving.labeller import READ_AHEAD, Labelled, Labeller, join_pair

PAIR = 'expected {"text": "…", "text_pair": "…"}'
PREFIX = "predicted_"
"""Prefix of a field of the answer whose name the file already uses."""


def label_json(
    labeller: Labeller, lines: Numbered, file: str, columns: Mapping[str, int | str], batch: int
) -> Iterator[str]:
    """Yield the objects with the fields of the model's answer added, in order.

    A field of the file is never overwritten: if its first object has a field of the answer, that field is called
    `predicted_…` in all lines.

    Args:
        labeller: The exported model.
        lines: Numbered lines of the file; blank ones are left out.
        file: Name of the file, for errors.
        columns: Names of the fields `text`, `second` and `token`, where they differ from the usual ones.
        batch: Texts or sentences labelled at once.

    Raises:
        CorpusError: A line is no object, lacks an input of the model, or has a field of the answer that the first line
            lacks.
    """
    names = _Fields(columns)
    read = ((n, _parse_object(text, file, n, labeller, names)) for n, text in lines if text.strip())
    renamed: dict[str, str] | None = None
    while block := list(islice(read, READ_AHEAD * batch)):
        text_answers = labeller(
            (names.text_of(plain) for _, plain in block if names.is_text(plain)), batch=batch
        )
        words = [plain for _, plain in block if not names.is_text(plain)]
        word_answers = iter(_label_words(labeller, words, names, batch))
        for number, plain in block:
            written = _answer_fields(next(text_answers)) if names.is_text(plain) else next(word_answers)
            clashes = written.keys() & plain.keys()
            renamed = {name: _free_name(name, plain) for name in clashes} if renamed is None else renamed
            added = {renamed.get(name, name): value for name, value in written.items()}
            if new := added.keys() & plain.keys():
                name = min(new)
                problem = f"the line has a field {name!r}, which `raykd predict` writes, and the first line has none"
                raise CorpusError(file, number, problem, "rename the field")
            yield json.dumps({**plain, **added}, ensure_ascii=False) + "\n"


class _Fields:
    """Names of the fields with texts and words."""

    def __init__(self, columns: Mapping[str, int | str]):
        self.text = str(columns.get("text", "text"))
        self.second = str(columns.get("second", "text_pair"))
        self.token = str(columns.get("token", "tokens"))
        self._of_words = "token" in columns

    def is_text(self, plain: Mapping[str, Any]) -> bool:
        """Return True if an object has a text, and no words to be read instead."""
        return self.text in plain and not (self._of_words and _are_strings(plain.get(self.token)))

    def text_of(self, plain: Mapping[str, Any]) -> str:
        return join_pair(plain[self.text], plain[self.second]) if self.second in plain else plain[self.text]


def _answer_fields(answer: Labelled) -> dict[str, Any]:
    """Return the fields of the answer without the text, which the file has."""
    return {name: value for name, value in asdict(answer).items() if value is not None and name != "text"}


def _free_name(name: str, plain: Mapping[str, Any]) -> str:
    """Return the name with as many prefixes as are needed for a new field."""
    while name in plain:
        name = PREFIX + name
    return name


def _label_words(
    labeller: Labeller, objects: list[dict[str, Any]], names: _Fields, batch: int
) -> list[dict[str, Any]]:
    """Return the model's answers for the words of the objects."""
    words = [plain[names.token] for plain in objects]
    if labeller.utterances:
        answers = labeller.intents_and_slots(words, batch=batch)
        return [{"label": intent, "labels": slots} for intent, slots in answers]
    if labeller.trees is None:
        return [{"labels": labels} for labels in labeller.label(words, batch=batch)]
    pos = None if labeller.tagger else [plain.get("pos") for plain in objects]
    trees = labeller.parse(words, pos, batch=batch)
    return [
        {"heads": [head for head, _ in tree], "relations": [relation for _, relation in tree]}
        for tree in trees
    ]


def _parse_object(text: str, file: str, number: int, labeller: Labeller, names: _Fields) -> dict[str, Any]:
    expected = f'expected {{"{names.text}": "…"}} or {{"{names.token}": ["…", …]}}, with one word at least'
    try:
        plain = parse_json(text)
        json.dumps(plain, ensure_ascii=False, allow_nan=False).encode()  # 1e999 is read as infinite
    except UnicodeEncodeError:
        problem = "half of a surrogate pair (\\ud800 to \\udfff) is no character"
        raise CorpusError(file, number, problem, "write the whole character") from None
    except ValueError as error:
        raise CorpusError(file, number, f"the line is {error}", expected) from None
    if not isinstance(plain, dict) or not (
        isinstance(plain[names.text], str) if names.is_text(plain) else _are_strings(plain.get(names.token))
    ):
        raise CorpusError(file, number, f"got {text[:60]!r}", expected)
    if labeller.pairs:
        if not isinstance(plain.get(names.second, ""), str):
            raise CorpusError(file, number, f"got {text[:60]!r}", PAIR)
        refuse_single(names.text_of(plain) if names.is_text(plain) else plain[names.token], file, number)
    if labeller.trees is not None and labeller.needs_pos:
        if names.is_text(plain):
            refuse_without_pos(labeller, file, number)
        if not _are_strings(plain.get("pos")):
            problem = 'the model reads parts of speech, and the line has none in "pos"'
            raise CorpusError(file, number, problem, GIVE_POS)
        try:
            labeller.trees.check_pos(plain[names.token], plain["pos"], tagged=False)
        except ValueError as error:
            raise CorpusError(file, number, str(error), GIVE_POS) from None
    return plain


def _are_strings(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) and item for item in value)
