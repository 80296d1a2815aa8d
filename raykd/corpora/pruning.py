"""Tokenizers pruned to a selection of pieces.

Text that needs no other piece is split as before, any other text into the pieces that remain. The definition of the
tokenizer (`tokenizer.json`) is rewritten: pieces get new ids in the order of the old ones.
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
    """Prune a tokenizer to the pieces of a text.

    Each word is then split as before; this is checked.

    Args:
        definition: Definition of the tokenizer.
        words: Distinct words of the text.
        always: Ids of pieces to keep in any case.
        unknown: Id of the unknown piece.

    Returns:
        The new definition, and the old id of each piece.

    Raises:
        CorpusError: The tokenizer is of a kind that cannot be pruned.
    """
    whole, plain = Tokenizer.from_str(definition), json.loads(definition)
    before = split_words(whole, words, unknown)
    always = set(always)
    used = {*always, *np.unique(before.values).tolist(), *_lowest_scored_piece(plain["model"])}
    # The search for a split may visit pieces that are not in its result: a longest match that fails later, or the
    # score of an unknown piece. For words that are now split differently, all pieces that occur in them are kept too.
    differing: list[str] = []
    for _ in range(2):
        used |= {id for word in differing for id in _substring_pieces(whole, plain["model"], word)}
        kept_ids = _with_merge_parts(plain["model"], used)
        pruned = _restricted_definition(plain, kept_ids)
        after = split_words(Tokenizer.from_str(pruned), words, kept_ids.index(unknown))
        differing = _words_split_differently(words, before, after, kept_ids)
        if not differing:
            return pruned, tuple(kept_ids)
    problem = f"the tokenizer ({plain['model']['type']}) cannot be pruned: {differing[0]!r} would be split otherwise"
    raise CorpusError("vocabulary", None, problem, "set vocabulary: whole")


def _words_split_differently(
    words: Sequence[str], before: Ragged, after: Ragged, kept_ids: Sequence[int]
) -> list[str]:
    old = np.asarray(kept_ids, np.int32)[after.values]
    if np.array_equal(before.offsets, after.offsets) and np.array_equal(before.values, old):
        return []
    rows = zip(words, pairwise(before.offsets), pairwise(after.offsets), strict=True)
    return [word for word, a, b in rows if not np.array_equal(before.values[slice(*a)], old[slice(*b)])]


def _lowest_scored_piece(model: dict[str, Any]) -> Iterable[int]:
    """Id of the Unigram piece with the lowest score, from which the cost of an unknown piece is computed."""
    if model["type"] != "Unigram":
        return ()
    return (min(range(len(model["vocab"])), key=lambda id: model["vocab"][id][1]),)


def _substring_pieces(tokenizer: Tokenizer, model: dict[str, Any], word: str) -> Iterable[int]:
    """Ids of all pieces inside a word."""
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
    """Ids together with the parts of BPE pieces, down to single characters."""
    if model["type"] != "BPE":
        return sorted(used)
    ids, names = model["vocab"], {id: piece for piece, id in model["vocab"].items()}
    pairs_by_piece: dict[str, list[tuple[str, str]]] = {}
    for pair in map(_pair, model["merges"]):
        pairs_by_piece.setdefault(_merged(pair, model), []).append(pair)
    todo, all_ids = list(used), set(used)
    while todo:
        for part in (part for pair in pairs_by_piece.get(names.get(todo.pop(), ""), ()) for part in pair):
            if ids[part] not in all_ids:
                all_ids.add(ids[part])
                todo.append(ids[part])
    return sorted(all_ids)


def _restricted_definition(plain: dict[str, Any], kept_ids: Sequence[int]) -> str:
    model, places = dict(plain["model"]), {old: new for new, old in enumerate(kept_ids)}
    if model["type"] == "Unigram":
        size = len(model["vocab"])
        model["vocab"] = [model["vocab"][old] for old in kept_ids if old < size]
        model["unk_id"] = places.get(model["unk_id"])
    else:
        model["vocab"] = {piece: places[old] for piece, old in model["vocab"].items() if old in places}
    if "merges" in model:
        pieces = set(model["vocab"])
        model["merges"] = [
            merge for merge in model["merges"] if pieces >= {*_pair(merge), _merged(_pair(merge), model)}
        ]
    added = [{**token, "id": places[token["id"]]} for token in plain["added_tokens"] if token["id"] in places]
    # Without a post-processor: `Special` has the ids of the pieces around a sentence.
    return json.dumps(
        {**plain, "model": model, "added_tokens": added, "post_processor": None}, ensure_ascii=False
    )


def _merged(pair: tuple[str, str], model: dict[str, Any]) -> str:
    return pair[0] + pair[1].removeprefix(model.get("continuing_subword_prefix") or "")


def _pair(merge: str | list[str]) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right
