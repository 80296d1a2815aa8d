"""Reading of text: many formats, one internal tag scheme, vocabularies, encoding and batching."""

from raykd.corpora.config import SOURCES, CorpusConfig
from raykd.corpora.corpus import (
    Corpus,
    corpus_id,
    make_corpus,
    open_corpus,
    read_corpus,
    write_corpus,
)
from raykd.corpora.report import CorpusReport
from raykd.corpora.sentence import Sentence, Unit
from raykd.forms import TagSet
from raykd.storage.layout import PARTS

__all__ = [
    "PARTS",
    "SOURCES",
    "Corpus",
    "CorpusConfig",
    "CorpusReport",
    "Sentence",
    "TagSet",
    "Unit",
    "corpus_id",
    "make_corpus",
    "open_corpus",
    "read_corpus",
    "write_corpus",
]
