"""The enumeration oracle of dependency arcs: every way to give each word a head, and which of them are trees.

Shapes: B batch, T time (words), H = T + 1 heads. Nothing here calls `raykd`: arcs and pairs enter through their
attributes. Head 0 is the root, head j the word j − 1.
"""

import functools
import itertools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tests.oracles.chains import Law

Heads = tuple[int, ...]


def is_dependency_tree(heads: Heads) -> bool:
    """By the definition: no word under itself, every word below the root, exactly one right under it."""
    words = range(1, len(heads) + 1)
    below_root = all(0 in _ancestors(heads, word) for word in words)
    return _is_analysis(heads) and below_root and heads.count(0) == 1


def _is_analysis(heads: Heads) -> bool:
    """True if no head is the word."""
    return all(head != word for word, head in enumerate(heads, start=1))


def _ancestors(heads: Heads, word: int) -> set[int]:
    result: set[int] = set()
    while word != 0 and word not in result:
        result.add(word)
        word = heads[word - 1]
    return result | ({0} if word == 0 else set())


def enumerate_trees(arcs) -> list[Law]:
    """Distributions over trees by sentence; paths are tuples of heads."""
    return [_law(arcs, row, is_dependency_tree) for row in range(arcs.scores_BTH.shape[0])]


def enumerate_heads(arcs) -> list[Law]:
    """Distributions over all analyses by sentence: words have any head but themselves."""
    return [_law(arcs, row, _is_analysis) for row in range(arcs.scores_BTH.shape[0])]


def _law(arcs, row: int, allowed: Callable[[Heads], bool]) -> Law:
    length, scores = int(arcs.lengths_B[row]), arcs.scores_BTH[row].double()
    paths = [heads for heads in itertools.product(range(length + 1), repeat=length) if allowed(heads)]
    totals = [torch.stack([scores[t, h] for t, h in enumerate(heads)]).sum() for heads in paths]
    return Law(paths, torch.stack(totals), scores.shape[1])


def best_total(scores_TH: Sequence[Sequence[float]]) -> float:
    """The score of the best tree of up to nine words, too many to enumerate.

    A tree is its root's word with the trees below it. Words are a set of bits.
    """

    @functools.cache
    def tree_under(head: int, words: int) -> float:
        below = [(t, words & ~(1 << t)) for t in range(words.bit_length()) if words >> t & 1]
        return max(scores_TH[t][head] + trees_under(t + 1, rest) for t, rest in below)

    @functools.cache
    def trees_under(head: int, words: int) -> float:
        if not words:
            return 0.0
        lowest, best, part = words & -words, float("-inf"), words
        while part:  # all parts of the words, of which one is the tree that holds the lowest word
            if part & lowest:
                best = max(best, tree_under(head, part) + trees_under(head, words & ~part))
            part = (part - 1) & words
        return best

    return tree_under(0, 2 ** len(scores_TH) - 1)


def pair_score(heads: Heads, siblings_HTT: Tensor, grandparents_TTH: Tensor) -> Tensor:
    """The summed scores of an analysis' pairs of arcs: words under one head, and words under a word under a head."""
    total = siblings_HTT.new_zeros(())
    for t, u in itertools.combinations(range(len(heads)), 2):
        if heads[t] == heads[u] and heads[t] - 1 not in (t, u):
            total = total + siblings_HTT[heads[t], t, u]
    for t, head in enumerate(heads):
        middle = head - 1
        if head > 0 and middle != t and heads[middle] - 1 not in (t, middle):
            total = total + grandparents_TTH[middle, t, heads[middle]]
    return total


def mean_field_step(
    scores_TH: Tensor, q_TH: Tensor, siblings_HTT: Tensor, grandparents_TTH: Tensor
) -> Tensor:
    """One update of all words at once, by a loop over its equation: unnormalised log Q [n, n + 1] of one sentence."""
    n = scores_TH.shape[0]
    result = torch.full_like(scores_TH, float("-inf"))
    for t, h in itertools.product(range(n), range(n + 1)):
        middle = h - 1
        if middle == t:
            continue
        total = scores_TH[t, h]
        for u in range(n):
            if u not in (t, middle):
                total = total + q_TH[u, h] * siblings_HTT[h, t, u]
                total = total + q_TH[u, t + 1] * grandparents_TTH[t, u, h]
        if h > 0:
            for g in range(n + 1):
                if g - 1 not in (t, middle):
                    total = total + q_TH[middle, g] * grandparents_TTH[middle, t, g]
        result[t, h] = total
    return result


def expected_step(scores_TH: Tensor, q_TH: Tensor, siblings_HTT: Tensor, grandparents_TTH: Tensor) -> Tensor:
    """One step by the definition of mean field.

    The expected score of all analyses that have the arc, under Q of the other words.
    """
    n = scores_TH.shape[0]
    result = torch.zeros_like(scores_TH)
    for heads in itertools.product(range(n + 1), repeat=n):
        if not _is_analysis(heads):
            continue
        pairs = pair_score(heads, siblings_HTT, grandparents_TTH)
        for t in range(n):
            rest = torch.stack([q_TH[u, heads[u]] for u in range(n) if u != t] + [q_TH.new_ones(())])
            result[t, heads[t]] = result[t, heads[t]] + rest.prod() * pairs
    return result + scores_TH
