"""The built-in corpus: named entities (PER, LOC, ORG) in English, German, Spanish and Dutch, made from rules.

No download is needed, and the corpus is not trivial. Names of dev and test occur in no other part, companies and places
have the names of people, only the context tells the type of `Washington` or `Santander`, and nouns look like names. All
text was written for this project: name lists and sentence rules are in `data/`, one file per language. The same
configuration gives the same sentences on all machines.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from random import Random
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic import Field
from ruamel.yaml import YAML
from typing_extensions import override

from raykd.corpora.builtin.grammar import Language
from raykd.corpora.builtin.lexicon import grammars
from raykd.corpora.sentence import Sentence
from raykd.corpora.source import SourceConfig

if TYPE_CHECKING:
    from raykd.corpora.builtin.grammar import Grammar, Words
    from raykd.corpora.source import Stream

Code = Literal["en", "de", "es", "nl"]
# Beyond this the rules begin to repeat themselves.
Size = Annotated[int, Field(ge=1, le=20_000)]


class BuiltinSource(SourceConfig):
    """The built-in corpus; its tags are BIOES. Sizes are sentences per language."""

    source: Literal["builtin"]
    languages: Annotated[tuple[Code, ...], Field(min_length=1)] = ("en", "de", "es", "nl")
    scheme: Literal["bioes"] = "bioes"
    train: Size = 400
    dev: Size = 100
    test: Size = 150
    unlabelled: Annotated[int, Field(ge=0, le=20_000)] = 600

    @property
    @override
    def rules_checksum(self) -> str:
        return sha256("".join(_texts().values()).encode()).hexdigest()


@lru_cache(maxsize=1)
def languages() -> tuple[Language, ...]:
    """Return all languages of the corpus, from their data files."""
    loader = YAML(typ="safe", pure=True)
    return tuple(Language.parse(code, **loader.load(text)) for code, text in _texts().items())


def _texts() -> dict[str, str]:
    """Return language → data file."""
    folder = files(__name__) / "data"
    return {code: (folder / f"{code}.yaml").read_text(encoding="utf-8") for code in get_args(Code)}


def read(config: BuiltinSource) -> Stream:
    """Make the sentences of all parts, language by language; no sentence occurs twice.

    The sentences of a language do not depend on the other languages, nor test on the sizes of the other parts, nor dev
    on that of train: scores stay comparable when the corpus grows.
    """
    used_sentences: set[tuple[str, str]] = set()
    for part in ("test", "dev", "train", "unlabelled"):
        by_language = grammars(languages(), part, config.seed)
        for language in config.languages:
            random = Random(f"{config.seed} {part} {language}")
            for _ in range(getattr(config, part)):
                words = _new_sentence(by_language[language], language, random, used_sentences)
                tokens, tags = map(list, zip(*words, strict=True))
                yield part, Sentence(tokens, None if part == "unlabelled" else tags, language)


def _new_sentence(
    grammar: Grammar, language: str, random: Random, used_sentences: set[tuple[str, str]]
) -> Words:
    while True:
        words = grammar.sentence(random)
        key = (language, " ".join(word for word, _ in words).lower())
        if key not in used_sentences:
            used_sentences.add(key)
            return words
