"""Files of answers: JSON or JSON Lines of any tool, and spaCy's `DocBin`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from glob import glob
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from raykd.corpora.annotated_records import split_records
from raykd.corpora.answers.answer_records import record_text, sample_count
from raykd.corpora.answers.labellings import AnswerError
from raykd.corpora.files import read_lines
from raykd.corpora.json_items import Item, read_items
from raykd.corpora.span_alignment import SpanError
from raykd.errors import CorpusError, MissingError
from raykd.storage.digests import file_sha256
from raykd.storage.store import Storage

DOC_BIN = ".spacy"


class RawAnswer(NamedTuple):
    """An answer as it was written.

    Attributes:
        text: The text that it is about.
        answer: The answer with its text, as JSON.
        origin: File and line.
        samples: Number of samples in the answer.
    """

    text: str
    answer: str
    origin: str
    samples: int = 1


def answer_files(pattern: str) -> list[str]:
    """Return the files of a pattern, sorted.

    Args:
        pattern: Path of a file, or a pattern with `*`; `{lang}` stands for anything.

    Raises:
        MissingError: There is no such file.
    """
    names = sorted(glob(pattern.replace("{lang}", "*")))
    if not names:
        raise MissingError(pattern, "no file of answers has this name", "correct teachers.path")
    return names


def files_checksum(files: list[str]) -> str:
    """Return the identity of files: a hash of their bytes, whatever their names.

    Args:
        files: Paths of the files.
    """
    digests = []
    for name in files:
        with open(name, "rb", buffering=0) as file:
            digests.append(file_sha256(file))
    return sha256("".join(sorted(digests)).encode()).hexdigest()


def read_answer_file(name: str) -> Iterator[RawAnswer]:
    """Yield the answers of a file.

    Args:
        name: Path of the file.

    Raises:
        CorpusError: A line is no JSON, or a record has no text.
    """
    path = Path(name)
    if path.suffix == DOC_BIN:
        yield from _doc_bin(path)
        return
    lines = read_lines(Storage(str(path.parent)), path.name, "utf-8", may_be_set=False)
    for item in read_items(lines, name, ""):
        if not isinstance(item, Item):
            raise item.faults[0]
        for record in split_records(item.value):
            if record is not None:
                yield _raw(record, f"{name}:{item.line}", name, item.line)


def _raw(record: Any, origin: str, file: str, line: int) -> RawAnswer:
    try:
        text = record_text(record)
    except (AnswerError, SpanError) as error:
        hint = 'write {"text": "…"} or {"tokens": ["…"]} beside the answer'
        raise CorpusError(file, line, str(error.args[0]), hint) from None
    return RawAnswer(text, json.dumps(record, ensure_ascii=False), origin, sample_count(record))


def _doc_bin(path: Path) -> Iterator[RawAnswer]:
    try:
        import spacy
        from spacy.tokens import DocBin
    except ImportError:
        problem = "a DocBin is read by the package 'spacy', which is not installed"
        raise CorpusError(str(path), None, problem, "run pip install spacy, or write JSON Lines") from None
    docs = DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)
    for number, doc in enumerate(docs, start=1):
        spans = [{"start": span.start_char, "end": span.end_char, "label": span.label_} for span in doc.ents]
        record = {"text": doc.text, "spans": spans}
        yield RawAnswer(doc.text, json.dumps(record, ensure_ascii=False), f"{path}: document {number}")
