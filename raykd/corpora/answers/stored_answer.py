"""An answer about one text, as it came and as it is stored: a row of the answer store."""

from __future__ import annotations

from typing import NamedTuple


class StoredAnswer(NamedTuple):
    """The answer about one text.

    Attributes:
        key: Key of the text (`text_key`).
        answer: The raw answer with its text, as JSON.
        problem: Reason why the annotator gave no answer; empty where it did.
        origin: Place of the answer, for messages: file and line, or the number of a batch.
        start: Visible characters of the answer's text before this one, where the answer is about a document.
        document: Key of that document, whose answer stands for this one; empty for an answer of its own.
        samples: Number of samples in the answer.
    """

    key: bytes
    answer: str
    problem: str = ""
    origin: str = ""
    start: int = 0
    document: bytes = b""
    samples: int = 1
