"""A tokenizer with some of its pieces: text that needs no others is split as before, other text into those kept.

The definition of a tokenizer (`tokenizer.json`) is rewritten: its pieces get new ids in the order of the old ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

from raykd.corpora.word_pieces import CONTINUING, split_words
from raykd.errors import CorpusError

if TYPE_CHECKING:
    from raykd.forms.ragged import Ragged


def prune(
    definition: str, words: Sequence[str], always: Iterable[int], unknown: int
) -> tuple[str, tuple[int, ...]]:
    """The definition with the pieces of `words` and those that are `always` kept, and the old id of each piece.

    Every word is split as before: it is compared.

    Raises:
        CorpusError: the tokenizer is of a kind that cannot be pruned.
    """
    whole, plain = Tokenizer.from_str(definition), json.loads(definition)
    before = split_words(whole, words, unknown)
    always = set(always)
    used = {*always, *np.unique(before.values).tolist(), *_lowest_scored_piece(plain["model"])}
    # A longest match that fails later, or the score of an unknown piece, may depend on pieces that no result has: of
    # words that are split otherwise all pieces that occur in them are kept too.
    differing: list[str] = []
    for _ in range(2):
        used |= {id for word in differing for id in _substring_pieces(whole, plain["model"], word)}
        kept = _with_merge_parts(plain["model"], used)
        pruned = _restricted_definition(plain, kept)
        after = split_words(Tokenizer.from_str(pruned), words, kept.index(unknown))
        differing = _words_split_differently(words, before, after, kept)
        if not differing:
            return pruned, tuple(kept)
    problem = f"the tokenizer ({plain['model']['type']}) cannot be pruned: {differing[0]!r} would be split otherwise"
    raise CorpusError("vocabulary", None, problem, "set vocabulary: whole")


def _words_split_differently(
    words: Sequence[str], before: Ragged, after: Ragged, kept: Sequence[int]
) -> list[str]:
    old = np.asarray(kept, np.int32)[after.values]
    if np.array_equal(before.offsets, after.offsets) and np.array_equal(before.values, old):
        return []
    rows = zip(words, pairwise(before.offsets), pairwise(after.offsets), strict=True)
    return [word for word, a, b in rows if not np.array_equal(before.values[slice(*a)], old[slice(*b)])]


def _lowest_scored_piece(model: dict[str, Any]) -> Iterable[int]:
    """What an unknown piece costs is counted from the piece with the lowest score."""
    if model["type"] != "Unigram":
        return ()
    return (min(range(len(model["vocab"])), key=lambda id: model["vocab"][id][1]),)


def _substring_pieces(tokenizer: Tokenizer, model: dict[str, Any], word: str) -> Iterable[int]:
    """All pieces that occur in a word."""
    text = tokenizer.normalizer.normalize_str(word) if tokenizer.normalizer else word
    parts = (
        [part for part, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
        if tokenizer.pre_tokenizer
        else [text]
    )
    for part in {*parts, text}:
        for first in range(len(part)):
            for last in range(first + 1, len(part) + 1):
                for piece in (part[first:last], CONTINUING + part[first:last]):
                    if (id := tokenizer.token_to_id(piece)) is not None:
                        yield id


def _with_merge_parts(model: dict[str, Any], used: set[int]) -> list[int]:
    """The ids with what they are merged from."""
    if model["type"] != "BPE":
        return sorted(used)
    ids, names = model["vocab"], {id: piece for piece, id in model["vocab"].items()}
    made: dict[str, list[tuple[str, str]]] = {}
    for left, right in map(_pair, model["merges"]):
        made.setdefault(left + right.removeprefix(model.get("continuing_subword_prefix") or ""), []).append(
            (left, right)
        )
    todo, every = list(used), set(used)
    while todo:
        for part in (part for pair in made.get(names.get(todo.pop(), ""), ()) for part in pair):
            if ids[part] not in every:
                every.add(ids[part])
                todo.append(ids[part])
    return sorted(every)


def _restricted_definition(plain: dict[str, Any], kept: Sequence[int]) -> str:
    model, places = dict(plain["model"]), {old: new for new, old in enumerate(kept)}
    if model["type"] == "Unigram":
        size = len(model["vocab"])
        model["vocab"] = [model["vocab"][old] for old in kept if old < size]
        model["unk_id"] = places.get(model["unk_id"])
    else:
        model["vocab"] = {piece: places[old] for piece, old in model["vocab"].items() if old in places}
    if "merges" in model:
        known = set(model["vocab"])
        model["merges"] = [
            merge for merge in model["merges"] if known >= {*_pair(merge), _merged(_pair(merge), model)}
        ]
    added = [{**own, "id": places[own["id"]]} for own in plain["added_tokens"] if own["id"] in places]
    # What is put around a sentence is known by its ids (`Special`).
    return json.dumps(
        {**plain, "model": model, "added_tokens": added, "post_processor": None}, ensure_ascii=False
    )


def _merged(pair: tuple[str, str], model: dict[str, Any]) -> str:
    return pair[0] + pair[1].removeprefix(model.get("continuing_subword_prefix") or "")


def _pair(merge: str | list[str]) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right
