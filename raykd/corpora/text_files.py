"""The files of a text source, one after the other, read by the parser of their format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType

from raykd.corpora import plain_text, word_columns
from raykd.corpora.files import file_address, list_files, read_lines
from raykd.corpora.sentence import Faulty, ReadingNote, Sentence
from raykd.corpora.source import Stream, TextConfig, for_language
from raykd.errors import CorpusError
from raykd.progress import with_progress
from raykd.storage.store import Storage

Parse = Callable[..., Iterator[Sentence | Faulty | ReadingNote]]
FORMS: Mapping[str, Parse] = MappingProxyType(
    {
        "sentences": plain_text.parse_sentences,
        "documents": plain_text.parse_documents,
        "columns": word_columns.parse,
    }
)
"""Parsers for the forms of unlabelled text that differ from the other files."""


def read_text_files(config: TextConfig, parse: Parse, *, limit: int | None = None) -> Stream:
    """Read all files of a text source.

    Args:
        config: Settings of the corpus.
        parse: Parser of the format, called with config, lines, file, language and part; unlabelled text may have
            another.
        limit: Maximum number of sentences from one file; None: all.
    """
    storage = Storage(config.root)
    for part, language, name in with_progress(list_files(config)):
        encoding = for_language(config.encoding, language) or "utf-8"
        lines = read_lines(storage, name, encoding, keep_marks=config.keeps_marks)
        file = file_address(storage, name)
        form = for_language(config.unlabelled_form, language) if part == "unlabelled" else "same"
        sentences = FORMS.get(form or "same", parse)(config, lines, file=file, language=language, part=part)
        empty = True
        try:
            for sentence in islice(sentences, limit):
                empty = False
                yield part, sentence
            if empty:
                raise CorpusError(file, None, "the file has no sentence", "fill it, or remove its part")
        except CorpusError as error:
            # Not raised: faults of the other files are reported too.
            yield part, Faulty(language, (error,), whole_file=True)
