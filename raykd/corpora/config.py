"""The table of corpus sources: the name in a sweep file, its configuration, the function that reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from raykd.corpora import builtin, conll, conllu, huggingface, jsonl, mtop, parquet, text, tsv, utterances
from raykd.corpora.builtin import BuiltinSource
from raykd.corpora.conll import ConllSource
from raykd.corpora.conllu import ConlluSource
from raykd.corpora.huggingface import HuggingFaceSource
from raykd.corpora.jsonl import JsonlSource
from raykd.corpora.mtop import MtopSource
from raykd.corpora.parquet import ParquetSource
from raykd.corpora.source import SourceConfig, Stream
from raykd.corpora.text import TextSource
from raykd.corpora.tsv import TsvSource
from raykd.corpora.utterances import UtteranceSource

SOURCES: Mapping[str, type[SourceConfig]] = MappingProxyType(
    {
        "builtin": BuiltinSource,
        "conll": ConllSource,
        "conllu": ConlluSource,
        "tsv": TsvSource,
        "parquet": ParquetSource,
        "jsonl": JsonlSource,
        "huggingface": HuggingFaceSource,
        "text": TextSource,
        **dict.fromkeys(utterances.PARSERS, UtteranceSource),
        "mtop": MtopSource,
    }
)

READERS: Mapping[str, Callable[..., Stream]] = MappingProxyType(
    {
        "builtin": builtin.read,
        "conll": conll.read,
        "conllu": conllu.read,
        "tsv": tsv.read,
        "parquet": parquet.read,
        "jsonl": jsonl.read,
        "huggingface": huggingface.read,
        "text": text.read,
        **dict.fromkeys(utterances.PARSERS, utterances.read),
        "mtop": mtop.read,
    }
)
"""Those of files take `most`, the number of sentences that are read of each."""

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
