"""The built-in corpus: named entities (PER, LOC, ORG) in English, German, Spanish and Dutch, made from rules.

It needs no download, and it is not trivial: names of dev and test stand in no other part, people lend their
names to firms and places, `Washington` or `Santander` is told by context only, and nouns look like names.
All of its text was written for this project. The same configuration gives the same sentences on every
machine.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from raykd.corpora.builtin.de import GERMAN
from raykd.corpora.builtin.en import ENGLISH
from raykd.corpora.builtin.es import SPANISH
from raykd.corpora.builtin.lexicon import speakers
from raykd.corpora.builtin.nl import DUTCH
from raykd.corpora.sentence import PARTS, Sentence
from raykd.corpora.source import SourceConfig

if TYPE_CHECKING:
    from raykd.corpora.builtin.grammar import Speaker
    from raykd.corpora.source import Parts

LANGUAGES = (ENGLISH, GERMAN, SPANISH, DUTCH)
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


def read(config: BuiltinSource) -> Parts:
    """Make the sentences of all parts, language by language; no sentence stands in two parts or twice in one.

    A language's sentences do not depend on the other languages, nor test on the sizes of the other parts,
    nor dev on train's: scores stay comparable when the corpus grows.
    """
    parts: Parts = {part: [] for part in PARTS}
    seen: set[tuple[str, str]] = set()
    for part in ("test", "dev", "train", "unlabelled"):
        voices = speakers(LANGUAGES, part, config.seed)
        for language in config.languages:
            random = Random(f"{config.seed} {part} {language}")
            for _ in range(getattr(config, part)):
                parts[part].append(
                    _new_sentence(voices[language], language, random, seen, part != "unlabelled")
                )
    return parts


def _new_sentence(
    speaker: Speaker, language: str, random: Random, seen: set[tuple[str, str]], labelled: bool
) -> Sentence:
    while True:
        words = speaker.sentence(random)
        key = (language, " ".join(word for word, _ in words).lower())
        if key not in seen:
            seen.add(key)
            tokens, tags = map(list, zip(*words, strict=True))
            return Sentence(tokens, tags if labelled else None, language)
