"""Name lists and sentence rules of a language, as in the data files, and the tagged sentences made from them.

A *name list* is text, names between commas. A `*` after a name marks it as ambiguous: all parts of the corpus use it,
and only its context decides its type. A *rule* is text, one alternative on each line, words between spaces, `{slot}`
for another rule or name list; `3x` at the start makes an alternative three times as likely. A slot that begins with
`per`, `loc` or `org` makes one entity of that type out of all its words; a capitalised slot capitalises its first word.
All sentences begin with the rule `sentence`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

TYPES = {"per": "PER", "loc": "LOC", "org": "ORG"}
START = "sentence"
WEIGHT = re.compile(r"(\d+)x (.*)")
SHARED = "*"
# The share of ambiguous names among all that are drawn, and of sentences in lower case or in capitals throughout.
SHARED_SHARE = 0.2
ODD_CASE = 0.05

Words = list[tuple[str, str]]
"""Words with their BIOES tags."""


@dataclass(frozen=True)
class Language:
    """Name lists of a language (ambiguous names in `shared`) and rules, with alternatives repeated by weight."""

    code: str
    names: Mapping[str, tuple[str, ...]]
    shared: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, tuple[str, ...]]

    @classmethod
    def parse(cls, code: str, names: Mapping[str, str], rules: Mapping[str, str]) -> Language:
        """Parse name lists and rules in the text form of the data files.

        Args:
            code: Code of the language.
            names: Name list → text.
            rules: Rule → text.

        Raises:
            ValueError: A rule uses a slot that is neither a rule nor a name list.
        """
        lists = {slot: [" ".join(name.split()) for name in text.split(",")] for slot, text in names.items()}
        language = cls(
            code,
            {
                slot: tuple(name for name in names if not name.endswith(SHARED))
                for slot, names in lists.items()
            },
            {
                slot: tuple(name.removesuffix(SHARED) for name in names if name.endswith(SHARED))
                for slot, names in lists.items()
            },
            {slot: _alternatives(text) for slot, text in rules.items()},
        )
        for slot, alternatives in language.rules.items():
            for used in re.findall(r"\{(\w+)\}", " ".join(alternatives)):
                if used.lower() not in rules and used.lower() not in names:
                    raise ValueError(
                        f"{code}: rule {slot!r} uses {used!r}, which is neither a rule nor a name list"
                    )
        return language


def _alternatives(text: str) -> tuple[str, ...]:
    weighted = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        match = WEIGHT.fullmatch(line)
        weighted += [match[2]] * int(match[1]) if match else [line]
    return tuple(weighted)


@dataclass(frozen=True)
class Grammar:
    """The names and rules of a language for one part of the corpus."""

    names: Mapping[str, tuple[str, ...]]
    shared: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, tuple[str, ...]]

    def sentence(self, random: Random) -> Words:
        """Return a random sentence with a capital first letter; a few are in lower case or in capitals throughout."""
        words = _capitalised(self._expand(START, random))
        case = random.random()
        if case < ODD_CASE:
            change = str.lower if case < ODD_CASE / 2 else str.upper
            words = [(change(word), tag) for word, tag in words]
        return words

    def _expand(self, slot: str, random: Random) -> Words:
        key = slot.lower()
        words: Words = []
        for word in self._choose(key, random).split():
            words += self._expand(word[1:-1], random) if word.startswith("{") else [(word, "O")]
        kind = TYPES.get(key.split("_")[0])
        words = _entity(words, kind) if kind else words
        return words if slot == key else _capitalised(words)

    def _choose(self, slot: str, random: Random) -> str:
        if slot in self.rules:
            return random.choice(self.rules[slot])
        # Few names are ambiguous, but every part uses all of them: without this share they would be most.
        shared = bool(self.shared[slot]) and random.random() < SHARED_SHARE
        return random.choice((self.shared if shared else self.names)[slot])


def _entity(words: Words, kind: str) -> Words:
    """Return one entity over all words; entities inside are ignored."""
    letters = ["B", *"I" * (len(words) - 2), "E"] if len(words) > 1 else ["S"]
    return [(word, f"{letter}-{kind}") for (word, _), letter in zip(words, letters, strict=True)]


def _capitalised(words: Words) -> Words:
    """Capitalise the first letter, also after an opening quotation mark."""
    for i, (word, tag) in enumerate(words):
        if word[:1].isalpha():
            return [*words[:i], (word[:1].upper() + word[1:], tag), *words[i + 1 :]]
        if word[:1].isdigit():
            break
    return words
