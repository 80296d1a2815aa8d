"""The table of corpus sources: name in a sweep file → configuration, reader, and functions that recognise files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Annotated, NamedTuple

from pydantic import Field

from raykd.corpora import builtin, conll, conllu, huggingface, jsonl, mtop, parquet, span_files, text, tsv
from raykd.corpora import utterance_files as utterances
from raykd.corpora.guess import Guess, Head, combine_guesses, no_guess
from raykd.corpora.source import SourceConfig, Stream
from raykd.corpora.text_files import Parse, read_text_files
from raykd.identity import PlainObject


class Format(NamedTuple):
    """A source of corpora.

    Attributes:
        config: Configuration of the source.
        read: Reads all sentences, or the first `limit` of each file.
        guess: Guesses how the source would read a file, from the beginning of the file.
        combine_guesses: Combines the guesses of labelled files into settings of a corpus, and doubts about them.
    """

    config: type[SourceConfig]
    read: Callable[..., Stream]
    guess: Callable[[Head], Guess | None] = no_guess
    combine_guesses: Callable[..., tuple[PlainObject, list[str]]] = combine_guesses


def _lines(parse: Parse) -> Callable[..., Stream]:
    return partial(read_text_files, parse=parse)


def _utterances(parse: Parse) -> Callable[..., Stream]:
    return partial(utterances.read_utterances, parse=parse)


_UTTERANCES = Format(utterances.UtteranceSource, _utterances(utterances.parse), utterances.guess)

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "builtin": Format(builtin.BuiltinSource, builtin.read),
        "conll": Format(conll.ConllSource, _lines(conll.parse), conll.guess, conll.combine_guesses),
        "conllu": Format(conllu.ConlluSource, _lines(conllu.parse), conllu.guess),
        "tsv": Format(tsv.TsvSource, _lines(tsv.parse), tsv.guess),
        "parquet": Format(parquet.ParquetSource, parquet.read, parquet.guess),
        # Before JSON Lines, which takes any object.
        "spans": Format(span_files.SpanSource, _lines(span_files.parse), span_files.guess),
        "jsonl": Format(jsonl.JsonlSource, jsonl.read, jsonl.guess),
        "huggingface": Format(huggingface.HuggingFaceSource, huggingface.read),
        "text": Format(text.TextSource, _lines(text.parse), text.guess),
        **dict.fromkeys(utterances.PARSERS, _UTTERANCES),
        "mtop": Format(mtop.MtopSource, _utterances(mtop.parse), mtop.guess),
    }
)
SOURCES = MappingProxyType({name: format.config for name, format in FORMATS.items()})
READERS = MappingProxyType({name: format.read for name, format in FORMATS.items()})

CorpusConfig = Annotated[
    builtin.BuiltinSource
    | conll.ConllSource
    | conllu.ConlluSource
    | tsv.TsvSource
    | parquet.ParquetSource
    | jsonl.JsonlSource
    | huggingface.HuggingFaceSource
    | span_files.SpanSource
    | text.TextSource
    | utterances.UtteranceSource
    | mtop.MtopSource,
    Field(discriminator="source"),
]
