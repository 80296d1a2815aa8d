"""The best tree with one word under the root (Chu & Liu 1965; Edmonds 1967), in O(n²) for each sentence.

Shapes: n words of a sentence. Groups are numbered 1..2n: 1..n the words, then contracted cycles; the root is 0.
From a word along best heads: if the path reaches a finished word, all of the path is finished. If it comes back to
itself, the cycle becomes a group, whose arc from a head h is worth the score that it adds to the cycle: its score less
that of the arc that it replaces (path growing; Gabow, Galil, Spencer & Tarjan 1986). In the end groups are opened, the
last first.

Arcs are compared first by the number of the root's arcs that they add, then by score. The algorithm only adds,
subtracts and compares, so it finds the best of the trees with the fewest such arcs, exactly, in one run (a penalty on
the root's arcs, as of Zmigrod et al. 2020, without choosing its size).
"""

from __future__ import annotations

import numpy as np

from raykd.structures.compiled.blocks import kernel


@kernel
def best_tree(scores, lengths, order, heads, best, first, last):
    """Fill the best trees' heads [B, T] (zero on padding) and scores [B], −∞ if there is no tree."""
    time = scores.shape[1]
    groups = 2 * time + 1
    gains, roots = np.empty((groups, time + 1)), np.empty((groups, time + 1), np.int64)
    into = np.empty((groups, time + 1), np.int64)
    chosen, parent, state = np.empty(groups, np.int64), np.empty(groups, np.int64), np.empty(groups, np.int64)
    group, path = np.empty(time + 1, np.int64), np.empty(groups, np.int64)
    for number in range(first, last):
        b = order[number]
        n = lengths[b]
        heads[b] = 0
        best[b] = -np.inf
        for t in range(n):
            for h in range(n + 1):
                gains[t + 1, h] = -np.inf if h == t + 1 else scores[b, t, h]
                roots[t + 1, h] = 1 if h == 0 else 0
                into[t + 1, h] = t + 1
        last_group = grow(n, gains, roots, into, chosen, parent, state, group, path)
        if last_group < 0:
            continue
        spread(n, last_group, into, chosen, parent, heads[b])
        total, under_root = 0.0, 0
        for t in range(n):
            total += scores[b, t, heads[b, t]]
            under_root += heads[b, t] == 0
        if under_root > 1:
            heads[b] = 0
        else:
            best[b] = total


@kernel
def grow(n, gains, roots, into, chosen, parent, state, group, path):
    """Choose the heads of all groups; return the largest number of a group, −1 if one has no head."""
    for word in range(n + 1):
        group[word], state[word], parent[word] = word, 0, 0
    state[0] = 2  # 0 not met, 1 on the path, 2 done
    last_group = n
    for word in range(1, n + 1):
        size = 0
        x = group[word]
        while state[x] != 2:
            if state[x] == 0:
                state[x] = 1
                path[size] = x
                size += 1
            h = best_head(n, x, gains, roots, group)
            if h < 0:
                return -1
            chosen[x] = h
            y = group[h]
            if state[y] == 1:
                last_group += 1
                size = contract(n, last_group, y, size, gains, roots, into, chosen, parent, group, path)
                state[last_group] = 1
                path[size] = last_group
                size += 1
                y = last_group
            x = y
        for k in range(size):
            state[path[k]] = 2
    return last_group


@kernel
def best_head(n, x, gains, roots, group):
    """Return the best head outside group x; −1 if there is none."""
    best = -1
    for h in range(n + 1):
        gain = gains[x, h]
        if group[h] == x or not gain > -np.inf:
            continue
        fewer = best < 0 or roots[x, h] < roots[x, best]
        if fewer or (roots[x, h] == roots[x, best] and gain > gains[x, best]):
            best = h
    return best


@kernel
def contract(n, new_group, start, size, gains, roots, into, chosen, parent, group, path):
    """Contract the groups at the end of the path, from `start` on, to one; return the size of the path without them."""
    for h in range(n + 1):
        gains[new_group, h], roots[new_group, h] = -np.inf, 0
    parent[new_group] = 0
    while True:
        size -= 1
        x = path[size]
        parent[x] = new_group
        cycle_gain, cycle_roots = gains[x, chosen[x]], roots[x, chosen[x]]
        for h in range(n + 1):
            if not gains[x, h] > -np.inf:
                continue
            gain, count = gains[x, h] - cycle_gain, roots[x, h] - cycle_roots
            less = count < roots[new_group, h] or (
                count == roots[new_group, h] and gain > gains[new_group, h]
            )
            if less or gains[new_group, h] == -np.inf:
                gains[new_group, h], roots[new_group, h], into[new_group, h] = gain, count, into[x, h]
        if x == start:
            break
    for word in range(1, n + 1):
        if parent[group[word]] == new_group:
            group[word] = new_group
    return size


@kernel
def spread(n, last_group, into, chosen, parent, heads):
    """Open the groups, the last first: a group's arc enters at one word and replaces that word's arc in the group."""
    for x in range(last_group, n, -1):
        head = chosen[x]
        y = into[x, head]
        while y != x:
            chosen[y] = head
            y = parent[y]
    for word in range(1, n + 1):
        heads[word - 1] = chosen[word]
