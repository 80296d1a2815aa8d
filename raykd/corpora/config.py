"""The table of corpus sources: the name in a sweep file, its configuration, the function that reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from raykd.corpora import conll
from raykd.corpora.conll import ConllSource
from raykd.corpora.source import Parts, SourceConfig

SOURCES: Mapping[str, type[SourceConfig]] = MappingProxyType({"conll": ConllSource})
READERS: Mapping[str, Callable[[Any], Parts]] = MappingProxyType({"conll": conll.read})

CorpusConfig = ConllSource
