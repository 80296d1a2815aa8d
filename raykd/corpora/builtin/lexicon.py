"""Division of names and sentence patterns among the parts of the corpus.

A name belongs to one part, in all languages and lists alike: no name of dev or test occurs in train or unlabelled text,
so that a model must judge by the context and the form of a name. Only the ambiguous names, marked in the lists, are in
all parts. Some sentence patterns are kept from train too; unlabelled text has all of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING

from raykd.corpora.builtin.grammar import Grammar, Language

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Unlabelled text uses the names of train, and some that no labelled part has.
SHARES = MappingProxyType({"train": 0.5, "unlabelled": 0.2, "dev": 0.12, "test": 0.18})
KEPT_FROM_TRAIN = 0.25
PATTERNS = ("core", "plain")


def grammars(languages: Sequence[Language], part: str, seed: int) -> dict[str, Grammar]:
    """Return the grammars of languages for one part.

    Args:
        languages: All languages of the corpus, used or not: the part of a name must not depend on the selection.
        part: Name of the part.
        seed: Seed of the corpus.
    """
    owner = _assign_names(languages, seed)
    allowed = ("train", "unlabelled") if part == "unlabelled" else (part,)
    return {
        language.code: Grammar(
            names={
                slot: tuple(name for name in names if owner[name] in allowed)
                for slot, names in language.names.items()
            },
            shared=language.shared,
            rules=_train_rules(language, seed) if part == "train" else language.rules,
        )
        for language in languages
    }


def _assign_names(languages: Sequence[Language], seed: int) -> dict[str, str]:
    """Return name → part, so that all lists are divided by `SHARES` as nearly as possible."""
    lists = {(la.code, slot): names for la in languages for slot, names in la.names.items()}
    missing = {key: _split_count(len(names)) for key, names in lists.items()}
    lists_of_name = defaultdict(list)
    for key, names in lists.items():
        for name in names:
            lists_of_name[name].append(key)
    owner = {}
    for name in _shuffled(lists_of_name, seed):
        owner[name] = max(SHARES, key=lambda part: min(missing[key][part] for key in lists_of_name[name]))
        for key in lists_of_name[name]:
            missing[key][owner[name]] -= 1
    return owner


def _split_count(count: int) -> dict[str, int]:
    """Divide the names of a list among the parts; the rest after rounding goes to train."""
    shares = {part: math.floor(share * count) for part, share in SHARES.items()}
    return shares | {"train": shares["train"] + count - sum(shares.values())}


def _train_rules(language: Language, seed: int) -> Mapping[str, tuple[str, ...]]:
    train_patterns = {}
    for slot in PATTERNS:
        patterns = language.rules[slot]
        hidden = set(_shuffled(patterns, seed)[: round(KEPT_FROM_TRAIN * len(patterns))])
        train_patterns[slot] = tuple(pattern for pattern in patterns if pattern not in hidden)
    return {**language.rules, **train_patterns}


def _shuffled(texts: Iterable[str], seed: int) -> list[str]:
    """Return the distinct texts in an order drawn from the seed, the same on all machines."""
    return sorted(set(texts), key=lambda text: sha256(f"{seed} {text}".encode()).digest())
