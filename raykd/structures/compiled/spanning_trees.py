"""The best tree with one word under the root (Chu & Liu 1965; Edmonds 1967), in O(n²) for each sentence.

Shapes: n words of a sentence. Groups are numbered 1..2n: 1..n the words, then contracted cycles; the root is 0.
From each word a path follows the best heads. If the path reaches the root or a finished group, all of the path is
finished. If it comes back to itself, the cycle is contracted to a group. An arc from a head h into the group enters at
one of its words, and is worth its score less that of the arc that it replaces (path growing; Gabow, Galil, Spencer &
Tarjan 1986). In the end the groups are opened, the last first.

A group has the root as its head only if it has no other possible head. This is as if a large number were subtracted
from every score under the root (Zmigrod et al. 2020), without choosing its size: the root is never part of a cycle, so
the number would stand in the worth of each arc from the root exactly once, and in no other. So one run finds the best
of the trees with the fewest words under the root, exactly.

Arrays, x a group, h a head 0..n, and a word 1..n:

    gains[x, h]   worth of the best arc from h into x, −∞ if there is none
    into[x, h]    word where this arc enters
    chosen[x]     head of x                         parent[x]    group into which x was contracted, 0 if into none
    group[word]   outermost group of a word         state[x]     see `grow`
"""

from __future__ import annotations

import numpy as np

from raykd.structures.compiled.blocks import kernel


@kernel
def best_tree(scores, lengths, order, heads, best, first, last):
    """Fill the best trees' heads [B, T] (zero on padding) and scores [B], −∞ if there is no tree."""
    time = scores.shape[1]
    groups = 2 * time + 1
    gains, into = np.empty((groups, time + 1)), np.empty((groups, time + 1), np.int64)
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
                into[t + 1, h] = t + 1
        last_group = grow(n, gains, into, chosen, parent, state, group, path)
        if last_group < 0:
            continue
        open_groups(n, last_group, into, chosen, parent, heads[b])
        total, under_root = 0.0, 0
        for t in range(n):
            total += scores[b, t, heads[b, t]]
            under_root += heads[b, t] == 0
        if under_root > 1:
            heads[b] = 0
        else:
            best[b] = total


@kernel
def grow(n, gains, into, chosen, parent, state, group, path):
    """Choose the heads of all groups; return the number of the last group, −1 if a group has no possible head."""
    for word in range(n + 1):
        group[word], state[word], parent[word] = word, 0, 0
    state[0] = 2  # 0 not reached, 1 on the path, 2 finished
    last_group = n
    for word in range(1, n + 1):
        size = 0
        x = group[word]
        while state[x] != 2:
            if state[x] == 0:
                state[x] = 1
                path[size] = x
                size += 1
            h = best_head(n, x, gains, group)
            if h < 0:
                return -1
            chosen[x] = h
            y = group[h]
            if state[y] == 1:
                last_group += 1
                size = contract(n, last_group, y, size, gains, into, chosen, parent, group, path)
                state[last_group] = 1
                path[size] = last_group
                size += 1
                y = last_group
            x = y
        for k in range(size):
            state[path[k]] = 2
    return last_group


@kernel
def best_head(n, x, gains, group):
    """Return the best word outside group x as its head, the root if no word is possible; −1 if neither is."""
    best = 0 if gains[x, 0] > -np.inf else -1
    best_gain = -np.inf
    for h in range(1, n + 1):
        if group[h] != x and gains[x, h] > best_gain:
            best, best_gain = h, gains[x, h]
    return best


@kernel
def contract(n, new_group, start, size, gains, into, chosen, parent, group, path):
    """Contract the groups at the end of the path, from `start` on, to one; return the path's length before them."""
    for h in range(n + 1):
        gains[new_group, h] = -np.inf
    parent[new_group] = 0
    while True:
        size -= 1
        x = path[size]
        parent[x] = new_group
        for h in range(n + 1):
            gain = gains[x, h] - gains[x, chosen[x]]
            if gain > gains[new_group, h]:
                gains[new_group, h], into[new_group, h] = gain, into[x, h]
        if x == start:
            break
    for word in range(1, n + 1):
        if parent[group[word]] == new_group:
            group[word] = new_group
    return size


@kernel
def open_groups(n, last_group, into, chosen, parent, heads):
    """Fill the heads of the words: a group's arc enters at one word and replaces that word's arc in the group."""
    for x in range(last_group, n, -1):
        head = chosen[x]
        y = into[x, head]
        while y != x:
            chosen[y] = head
            y = parent[y]
    for word in range(1, n + 1):
        heads[word - 1] = chosen[word]
