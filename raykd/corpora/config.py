"""The table of corpus sources: the name in a sweep file, its configuration, the functions that read and guess it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from raykd.corpora import builtin, conll, conllu, huggingface, jsonl, mtop, parquet, text, tsv, utterances
from raykd.corpora.builtin import BuiltinSource
from raykd.corpora.conll import ConllSource
from raykd.corpora.conllu import ConlluSource
from raykd.corpora.guess import Guess, Head, no_guess, settle
from raykd.corpora.huggingface import HuggingFaceSource
from raykd.corpora.jsonl import JsonlSource
from raykd.corpora.mtop import MtopSource
from raykd.corpora.parquet import ParquetSource
from raykd.corpora.source import SourceConfig, Stream
from raykd.corpora.text import TextSource
from raykd.corpora.text_files import Parse, read_text_files
from raykd.corpora.tsv import TsvSource
from raykd.corpora.utterances import UtteranceSource


class Format(NamedTuple):
    """A source of corpora."""

    config: type[SourceConfig]
    read: Callable[..., Stream]
    """Its sentences; of files as many of each as `most` says."""
    guess: Callable[[Head], Guess | None] = no_guess
    settle: Callable[..., tuple[dict[str, Any], list[str]]] = settle
    """The settings of a corpus by the guesses of its files, and doubts about them."""


def _lines(parse: Parse) -> Callable[..., Stream]:
    return partial(read_text_files, parse=parse)


_UTTERANCES = Format(UtteranceSource, utterances.read, utterances.guess)

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "builtin": Format(BuiltinSource, builtin.read),
        "conll": Format(ConllSource, _lines(conll.parse), conll.guess, conll.settle),
        "conllu": Format(ConlluSource, _lines(conllu.parse), conllu.guess),
        "tsv": Format(TsvSource, _lines(tsv.parse), tsv.guess),
        "parquet": Format(ParquetSource, parquet.read, parquet.guess),
        "jsonl": Format(JsonlSource, jsonl.read, jsonl.guess),
        "huggingface": Format(HuggingFaceSource, huggingface.read),
        "text": Format(TextSource, _lines(text.parse), text.guess),
        **dict.fromkeys(utterances.PARSERS, _UTTERANCES),
        "mtop": Format(MtopSource, mtop.read, mtop.guess),
    }
)
SOURCES = MappingProxyType({name: format.config for name, format in FORMATS.items()})
READERS = MappingProxyType({name: format.read for name, format in FORMATS.items()})

CorpusConfig = Annotated[
    BuiltinSource
    | ConllSource
    | ConlluSource
    | TsvSource
    | ParquetSource
    | JsonlSource
    | HuggingFaceSource
    | TextSource
    | UtteranceSource
    | MtopSource,
    Field(discriminator="source"),
]
