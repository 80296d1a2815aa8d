"""The enumeration oracle of dependency arcs: every way to give each word a head, and which of them are trees.

Shapes: B batch, T time (words), H = T + 1 heads. Nothing here calls `raykd`: arcs and pairs enter through their
attributes. Head 0 is the root, head j the word j − 1.
"""

import itertools

import torch
from torch import Tensor

from tests.oracles.chains import Law

Heads = tuple[int, ...]


def is_analysis(heads: Heads, allowed: str, single_root: bool) -> bool:
    """By the definitions: no word under itself; all below the root; all words between an arc's ends below its head."""
    words = range(1, len(heads) + 1)
    if any(heads[w - 1] == w for w in words):
        return False
    if allowed == "heads":
        return True
    if any(0 not in _ancestors(heads, w) for w in words) or (single_root and heads.count(0) != 1):
        return False
    between = (
        (heads[w - 1], inner)
        for w in words
        for inner in range(min(w, heads[w - 1]) + 1, max(w, heads[w - 1]))
    )
    return allowed == "trees" or all(head in _ancestors(heads, inner) for head, inner in between)


def _ancestors(heads: Heads, word: int) -> set[int]:
    found: set[int] = set()
    while word != 0 and word not in found:
        found.add(word)
        word = heads[word - 1]
    return found | ({0} if word == 0 else set())


def enumerate_arcs(arcs) -> list[Law]:
    """Each sentence's distribution over heads; paths are tuples of heads."""
    return [_law(arcs, row) for row in range(arcs.scores_BTH.shape[0])]


def _law(arcs, row: int) -> Law:
    length, scores = int(arcs.lengths_B[row]), arcs.scores_BTH[row].double()
    every = itertools.product(range(length + 1), repeat=length)
    paths = [heads for heads in every if is_analysis(heads, arcs.allowed, arcs.single_root)]
    totals = [torch.stack([scores[t, h] for t, h in enumerate(heads)]).sum() for heads in paths]
    return Law(paths, torch.stack(totals), scores.shape[1])


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
    found = torch.full_like(scores_TH, float("-inf"))
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
        found[t, h] = total
    return found


def expected_step(scores_TH: Tensor, q_TH: Tensor, siblings_HTT: Tensor, grandparents_TTH: Tensor) -> Tensor:
    """The same by the definition of mean field: the expected score of all analyses that have the arc, under Q of the
    other words."""
    n = scores_TH.shape[0]
    found = torch.zeros_like(scores_TH)
    for heads in itertools.product(range(n + 1), repeat=n):
        if not is_analysis(heads, "heads", False):
            continue
        pairs = pair_score(heads, siblings_HTT, grandparents_TTH)
        for t in range(n):
            rest = torch.stack([q_TH[u, heads[u]] for u in range(n) if u != t] + [q_TH.new_ones(())])
            found[t, heads[t]] = found[t, heads[t]] + rest.prod() * pairs
    return found + scores_TH
