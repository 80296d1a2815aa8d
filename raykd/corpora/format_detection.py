"""Detection of a file's format: the most certain guess of all formats in the table."""

from __future__ import annotations

from dataclasses import replace

from raykd.corpora.config import FORMATS
from raykd.corpora.guess import Guess, Head
from raykd.errors import CorpusError
from raykd.storage.store import Storage


def detect_format(storage: Storage, name: str) -> Guess:
    """Guess the format of a file from the first bytes.

    Args:
        storage: Storage with the file.
        name: Name of the file in the storage.

    Returns:
        The most certain guess. It is not readable where no format reads the file, or the file is damaged.
    """
    try:
        if storage.size(name) == 0:
            return _unreadable(name, "empty")
        head = Head(storage, name)
        guesses = [guess for format in FORMATS.values() if (guess := format.guess(head)) is not None]
        if not guesses:
            return _unreadable(name, head.encoded[1])
        surest = max(guesses, key=lambda guess: guess.confidence)
        encoding, doubt = head.encoded
        doubts = (*surest.doubts, doubt) if encoding and doubt else surest.doubts
        return replace(surest, name=name, encoding=head.encoding, doubts=doubts)
    except CorpusError as error:  # a damaged .gz, a file without rights
        return _unreadable(name, error.problem)


def _unreadable(name: str, reason: str) -> Guess:
    return Guess(source="", reason=reason, confidence=1, readable=False, labelled=False, name=name)
