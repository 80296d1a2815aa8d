"""A text that is put to an annotator, and the record of what it returns for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from raykd.corpora.answers.answer_records import TREES, Form
from raykd.corpora.answers.labellings import AnswerError
from raykd.corpora.answers.visible import text_key


class AskedText(NamedTuple):
    """A text that is put to an annotator.

    Attributes:
        words: Words of the corpus [T].
        text: Raw text of the source; words with spaces between them, where the source has none.
        language: Language of the corpus.
    """

    words: tuple[str, ...]
    text: str
    language: str

    @property
    def key(self) -> bytes:
        """Key under which its answer is stored."""
        return text_key(self.words)


def answer_json(value: Any, asked: AskedText, form: Form) -> str:
    """Return what an annotator returned for a text as a record of an answer file, in JSON.

    Args:
        value: The answer in its form, or a mapping that has it under the name of the form.
        asked: The text.
        form: Form of the annotator's answers.

    Raises:
        AnswerError: It is no answer: nothing, an exception, or what JSON cannot express.
    """
    if value is None:
        raise AnswerError("nothing was returned for it")
    if isinstance(value, BaseException):
        raise AnswerError(f"{type(value).__name__}: {value}")
    around = {"text": asked.text, "tokens": asked.words}
    try:
        return json.dumps({**_named(value, form), **around}, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise AnswerError(f"what was returned is no JSON ({error})") from None


def _named(value: Any, form: Form) -> dict[str, Any]:
    """The answer under the key of its form; a mapping with that key already may have more."""
    if isinstance(value, Mapping) and form in value:
        return dict(value)
    if form == TREES and isinstance(value, Mapping):
        return dict(value)
    if form == "labels" and isinstance(value, str):  # the class of a sentence
        return {"label": value}
    if form == "probabilities" and isinstance(value, Mapping):
        return {form: [value]}
    return {form: value}


def _plain(value: Any) -> Any:
    """A number or an array of NumPy or PyTorch, or a tuple-like, as plain data."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not plain data")
