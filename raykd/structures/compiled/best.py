"""The K best labellings, exactly: Viterbi over lanes, then Lawler's deviations, O(T·Y² + K·T) per sentence.

The forward sweep keeps, for every tag, the best and the second-best way into it. Each labelling gives candidates for
the next one: at each position t up to the one where the labelling differs from its parent, a candidate has the same
tags after t, the next-best tag at t, and the best way into that tag. The second-best way into the tag after t gives its
score, except where the labelling itself differs: there even a third-best way may be needed (Lawler 1972).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from raykd.structures.compiled.blocks import bring_in, bring_out, kernel, largest, lay_out
from raykd.structures.compiled.lanes import (
    everywhere,
    larger,
    load,
    store,
    where_above,
    width,
)
from raykd.structures.compiled.products import entry


class Sentence(NamedTuple):
    """Rows of one sentence, [T·Y] each.

    Attributes:
        best: Best score of a prefix that ends in a tag.
        second: Second-best score of a way into a tag, without the tag's emission.
        emissions: Emissions less their maximum at each word, see `lower`.
        into: Transitions [to, from].
        end: End scores [Y].
        size: Words.
        tags: Y.
    """

    best: np.ndarray
    second: np.ndarray
    emissions: np.ndarray
    into: np.ndarray
    end: np.ndarray
    size: int
    tags: int


class Candidates(NamedTuple):
    """Candidate labellings, best first.

    Attributes:
        scores: Scores of the labellings.
        values: Value of the parent's tag at the position where the candidate differs, as in `follow`.
        places: Parent's rank, this position, and the parent's tag there.
    """

    scores: np.ndarray
    values: np.ndarray
    places: np.ndarray


@kernel
def k_best(problem, paths, scores, first_block, last_block):
    """Fill paths [B, K, T] (zero beyond the sentence and where none is left) and scores [B, K] in float64."""
    emissions, tags, time, k = problem.emissions, problem.tags, problem.time, scores.shape[1]
    lanes, dtype = width(emissions), emissions.dtype
    longest = problem.lengths[problem.order[first_block * lanes]]
    sentences, sizes, tag_now = (
        np.empty(lanes, np.int64),
        np.empty(lanes, np.int64),
        np.empty(lanes, np.int64),
    )
    limits, base, numbers = np.empty(lanes, dtype), np.empty(lanes, np.float64), np.arange(lanes)
    room = (longest * tags + lanes) * lanes
    weights, best, second = np.empty(room, dtype), np.empty(room, dtype), np.empty(room, dtype)
    rows = np.empty((3, room if k > 1 else 0), dtype)
    per_sentence = problem.transitions_step > 0
    matrix = np.empty(tags * tags * lanes if per_sentence else 0, dtype)
    into, ways = np.empty((tags, tags), dtype), np.empty((tags + lanes) * lanes, dtype)
    candidates = Candidates(
        np.empty(k + 1, np.float64), np.empty(k + 1, dtype), np.empty((k + 1, 3), np.int64)
    )
    if not per_sentence:
        turn(problem.transitions, np.int64(0), into)
    for number in range(first_block, last_block):
        count = lay_out(problem, number, sentences, sizes, limits)
        steps = sizes[0]
        bring_in(emissions, sentences, time * tags, steps * tags, weights)
        lower(weights, steps, tags, sizes, limits, base)
        if per_sentence:
            bring_in(problem.transitions, sentences, tags * tags, tags * tags, matrix)
        begin(problem, sentences, weights, best, second, tags)
        for t in range(1, steps):
            if per_sentence:
                _advance_per_sentence(matrix, t, tags, k, weights, best, second)
            else:
                _advance_shared(problem.transitions, t, tags, k, weights, best, second)
        for lane in range(count):
            paths[sentences[lane]] = 0
            scores[sentences[lane]] = -np.inf
        trace(
            problem,
            sentences,
            sizes,
            best,
            matrix,
            into,
            ways,
            tag_now,
            base,
            paths,
            scores,
            count,
            steps,
            per_sentence,
        )
        if k == 1:
            continue
        stride = steps * tags
        bring_out(best, numbers, stride, stride, count, rows[0])
        bring_out(second, numbers, stride, stride, count, rows[1])
        bring_out(weights, numbers, stride, stride, count, rows[2])
        for lane in range(count):
            place, end = sentences[lane], problem.end_step * sentences[lane]
            if per_sentence:
                turn(problem.transitions, place * problem.transitions_step, into)
            of_lane = slice(lane * stride, (lane + 1) * stride)
            sentence = Sentence(
                rows[0][of_lane],
                rows[1][of_lane],
                rows[2][of_lane],
                into,
                problem.end[end : end + tags],
                sizes[lane],
                tags,
            )
            deviate(sentence, base[lane], candidates, paths[place], scores[place])


@kernel
def trace(
    problem,
    sentences,
    sizes,
    best,
    matrix,
    into,
    ways,
    tag_now,
    base,
    paths,
    scores,
    count,
    steps,
    per_sentence,
):
    """Write the best labelling and its score for all lanes, traced back in all lanes together.

    `ways` and `tag_now` are buffers: transitions into the current tag of each lane, and this tag.
    """
    lanes, tags = len(sizes), problem.tags
    tag_now[:] = 0
    for t in range(steps - 1, -1, -1):
        row = t * tags * lanes
        if per_sentence:
            for i in range(tags):
                for lane in range(lanes):
                    ways[i * lanes + lane] = matrix[(i * tags + tag_now[lane]) * lanes + lane]
        else:
            bring_in(into.ravel(), tag_now, tags, tags, ways)
        top, tag = everywhere(ways, -np.inf), everywhere(ways, -1.0)
        for i in range(tags):
            value = load(best, row + i * lanes) + load(ways, i * lanes)
            tag = where_above(value, top, everywhere(ways, i), tag)
            top = larger(value, top)
        store(ways, 0, tag)
        for lane in range(count):
            if sizes[lane] > t + 1:
                tag_now[lane] = max(0, int(ways[lane]))
            elif sizes[lane] == t + 1:
                score, tag_now[lane] = finish(problem, sentences[lane], best, row + lane, lanes)
                scores[sentences[lane], 0] = score + base[lane]
            if sizes[lane] > t and scores[sentences[lane], 0] > -np.inf:
                paths[sentences[lane], 0, t] = tag_now[lane]


@kernel
def finish(problem, sentence, best, at, lanes):
    """Return the best score of a whole labelling of a sentence, and its last tag."""
    top, tag = -np.inf, 0
    for y in range(problem.tags):
        value = best[at + y * lanes] + problem.end[sentence * problem.end_step + y]
        if value > top:
            top, tag = value, y
    return top, tag


@kernel
def turn(transitions, at, into):
    """Write the transposed transitions [to, from] of one sentence into `into`."""
    for i in range(into.shape[0]):
        for j in range(into.shape[0]):
            into[j, i] = transitions[at + i * into.shape[0] + j]


@kernel
def lower(values, steps, tags, sizes, peaks, base):
    """Subtract each word's largest emission, the same for all labellings; their sum per lane goes into `base`."""
    lanes = width(values)
    base[:] = 0
    for t in range(steps):
        row = t * tags * lanes
        peak = largest(values, row, tags)
        store(peaks, 0, peak)
        for lane in range(lanes):
            base[lane] += peaks[lane] if t < sizes[lane] else 0.0
        for y in range(tags):
            store(values, row + y * lanes, load(values, row + y * lanes) - peak)


@kernel
def begin(problem, sentences, weights, best, second, tags):
    """Start the recursion at the first word: start scores plus emissions."""
    lanes = len(sentences)
    for y in range(tags):
        for lane in range(lanes):
            at = y * lanes + lane
            best[at] = problem.start[sentences[lane] * problem.start_step + y] + weights[at]
            second[at] = -np.inf


def _advance(per_sentence: bool) -> Callable:
    """Make the step for one kind of matrix; as a constant, `per_sentence` costs nothing in the loops."""

    @kernel
    def advance(matrix, t, tags, k, weights, best, second):
        """Compute the best and second-best ways into all tags at step t."""
        lanes = width(best)
        nothing = everywhere(best, -np.inf)
        row = t * tags * lanes
        before = row - tags * lanes
        for j in range(0, tags, 4):
            a, b, c, d = j, min(j + 1, tags - 1), min(j + 2, tags - 1), min(j + 3, tags - 1)
            b0, b1, b2, b3 = nothing, nothing, nothing, nothing
            s0, s1, s2, s3 = nothing, nothing, nothing, nothing
            for i in range(tags):
                value, m = load(best, before + i * lanes), i * tags
                x0, x1 = (
                    value + entry(matrix, m + a, per_sentence),
                    value + entry(matrix, m + b, per_sentence),
                )
                x2, x3 = (
                    value + entry(matrix, m + c, per_sentence),
                    value + entry(matrix, m + d, per_sentence),
                )
                if k > 1:
                    s0, s1 = runner_up(x0, b0, s0), runner_up(x1, b1, s1)
                    s2, s3 = runner_up(x2, b2, s2), runner_up(x3, b3, s3)
                b0, b1, b2, b3 = larger(x0, b0), larger(x1, b1), larger(x2, b2), larger(x3, b3)
            settle(weights, best, second, row + a * lanes, b0, s0)
            settle(weights, best, second, row + b * lanes, b1, s1)
            settle(weights, best, second, row + c * lanes, b2, s2)
            settle(weights, best, second, row + d * lanes, b3, s3)

    return advance


_advance_shared, _advance_per_sentence = _advance(per_sentence=False), _advance(per_sentence=True)


@kernel
def runner_up(value, top, next_top):
    """Return the second-best of the values so far and a new one."""
    return larger(where_above(top, value, value, top), next_top)


@kernel
def settle(weights, best, second, at, top, next_top):
    """Store the best and second-best ways into one tag."""
    store(best, at, top + load(weights, at))
    store(second, at, next_top)


@kernel
def deviate(sentence, base, candidates, paths, scores):
    """Write one sentence's second to k-th best labellings; the best is already written."""
    k, last, tags = len(scores), sentence.size - 1, sentence.tags
    if scores[0] == -np.inf:
        return
    waiting = branch(sentence, paths[0], np.int64(0), last, candidates, np.int64(0), k - 1)
    for rank in range(1, k):
        if waiting == 0:
            return
        scores[rank] = candidates.scores[0] + base
        last_value = candidates.values[0]
        parent, place, last_tag = candidates.places[0]
        for c in range(1, waiting):
            candidates.scores[c - 1] = candidates.scores[c]
            candidates.values[c - 1] = candidates.values[c]
            candidates.places[c - 1] = candidates.places[c]
        waiting -= 1
        path = paths[rank]
        path[place + 1 : last + 1] = paths[parent, place + 1 : last + 1]
        row = sentence.end if place == last else sentence.into[path[place + 1]]
        path[place] = follow(sentence.best[place * tags :], row, last_value, last_tag)
        retrace(sentence, path, paths[0], place)
        if rank + 1 < k:
            waiting = branch(sentence, path, rank, place, candidates, waiting, k - rank - 1)


@kernel
def retrace(sentence, path, first_path, place):
    """Write the best way to path[place] into `path`; before a tag shared with the best labelling, both agree."""
    tags = sentence.tags
    for t in range(place - 1, -1, -1):
        if path[t + 1] == first_path[t + 1]:
            path[: t + 1] = first_path[: t + 1]
            return
        path[t] = follow(sentence.best[t * tags :], sentence.into[path[t + 1]], np.inf, np.int64(-1))


@kernel
def follow(best, row, after_value, after_tag):
    """Return the tag after (value, tag) in the order of decreasing value, then increasing tag; −1 if there is none.

    The value of a tag is its best prefix plus its transition in `row`.
    """
    top, tag = -np.inf, -1
    for i in range(len(row)):
        value = best[i] + row[i]
        if value > top and (value < after_value or (value == after_value and i > after_tag)):
            top, tag = value, i
    return tag


@kernel
def next_value(best, row, after_value, after_tag):
    """Return the value of the tag that `follow` returns, −∞ if there is none."""
    tag = follow(best, row, after_value, after_tag)
    return best[tag] + row[tag] if tag >= 0 else -np.inf


@kernel
def branch(sentence, path, rank, place, candidates, waiting, capacity):
    """Add the best labellings that differ from `path` at a position t ≤ place and agree with it after t.

    Returns the number of candidates.
    """
    tags, last = sentence.tags, sentence.size - 1
    right = 0.0
    for t in range(last, -1, -1):
        row = sentence.end if t == last else sentence.into[path[t + 1]]
        tag = path[t]
        if t <= place:
            value = sentence.best[t * tags + tag] + row[tag]
            if t in (place, last):
                next_best = next_value(sentence.best[t * tags :], row, value, tag)
            else:
                next_best = sentence.second[(t + 1) * tags + path[t + 1]]
            score = next_best + right
            if score > -np.inf and (waiting < capacity or score > candidates.scores[waiting - 1]):
                waiting = insert(candidates, waiting, capacity, score, value, rank, t, tag)
        right += sentence.emissions[t * tags + tag] + row[tag]
    return waiting


@kernel
def insert(candidates, waiting, capacity, score, value, parent, place, tag):
    """Insert a candidate in order, keeping at most `capacity`; return the number of candidates."""
    slot = min(waiting, capacity - 1)
    while slot > 0 and candidates.scores[slot - 1] < score:
        candidates.scores[slot] = candidates.scores[slot - 1]
        candidates.values[slot] = candidates.values[slot - 1]
        candidates.places[slot] = candidates.places[slot - 1]
        slot -= 1
    candidates.scores[slot] = score
    candidates.values[slot] = value
    candidates.places[slot] = (parent, place, tag)
    return min(waiting + 1, capacity)
