"""The best labelling of a chain as nodes of an ONNX graph: the labels of `raykd.structures.viterbi`, ties included.

Shapes: B batch, T time, Y tags. Both computations add and compare the same numbers in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raykd.layers.graph import Graph, Value
    from raykd.structures import LegalTransitions


def add_best_labels_to(
    graph: Graph, scores_BTY: Value, lengths_B: Value, legal: LegalTransitions | None
) -> Value:
    """Add the best labelling of words with independent scores, and return its name.

    Args:
        graph: graph that the nodes are added to.
        scores_BTY: name of the scores.
        lengths_B: name of the sentences' lengths.
        legal: labellings among which the best one is sought; None: each word gets its best label.

    Returns:
        Name of the labels [B, T], int64 and 0 on padding.
    """
    if legal is not None:
        return add_viterbi_to(graph, scores_BTY, lengths_B, *map(graph.constant, legal.parts))
    best_BT = graph.add("ArgMax", scores_BTY, axis=2, keepdims=0)
    inside_BT = graph.length_mask(graph.positions(scores_BTY, 1), lengths_B)
    return graph.add("Where", inside_BT, best_BT, graph.constant(0))


def add_viterbi_to(
    graph: Graph, emissions_BTY: Value, lengths_B: Value, transitions: Value, start: Value, end: Value
) -> Value:
    """Add the Viterbi algorithm and return the name of the best labels [B, T], int64 and 0 on padding.

    Forwards, best[t, j] = e[t, j] + max_i (best[t-1, i] + transitions[i, j]). Backwards from the last word of each
    sentence, the i of that maximum. Of equal scores the first tag wins.

    Args:
        graph: graph that the nodes are added to.
        emissions_BTY: name of the emission scores.
        lengths_B: name of the sentences' lengths.
        transitions: name of the scores [Y, Y] from tag to tag.
        start: name of the scores [Y] of the first tag.
        end: name of the scores [Y] of the last tag.
    """
    # The compiled kernel subtracts the maximum too: only then do ties come out the same.
    lowered_BTY = graph.add("Sub", emissions_BTY, graph.add("ReduceMax", emissions_BTY, graph.constant([2])))
    lowered_TBY = graph.add("Transpose", lowered_BTY, perm=[1, 0, 2])

    def forward(body: Graph, arriving_BY: Value, emissions_BY: Value) -> tuple[Value, Value]:
        best_BY = body.add("Add", arriving_BY, emissions_BY)
        arrivals_BYY = body.add("Add", body.unsqueeze(best_BY, 2), transitions)
        return body.add("ReduceMax", arrivals_BYY, body.constant([1]), keepdims=0), best_BY

    start_BY = graph.add(
        "Expand", start, graph.add("Shape", graph.add("Gather", lowered_TBY, graph.constant(0)))
    )
    best_TBY = graph.scan(forward, start_BY, lowered_TBY, dtype="float32")
    arrivals_TBYY = graph.add("Add", graph.unsqueeze(best_TBY, 3), transitions)
    previous_TBY = graph.add("ArgMax", arrivals_TBYY, axis=2, keepdims=0)
    last_B1 = _last_labels(graph, best_TBY, lengths_B, end)
    positions_T = graph.positions(emissions_BTY, 1)
    next_position_T = graph.add("Add", positions_T, graph.constant(1))
    # At and after its last word a sentence keeps the label that it ends with.
    before_last_TB = graph.add("Transpose", graph.length_mask(next_position_T, lengths_B), perm=[1, 0])
    previous_TBY = graph.add("Where", graph.unsqueeze(before_last_TB, 2), previous_TBY, last_B1)

    def backward(body: Graph, next_B1: Value, previous_BY: Value) -> tuple[Value, Value]:
        label_B1 = body.add("GatherElements", previous_BY, next_B1, axis=1)
        return label_B1, body.add("Identity", label_B1)

    # The first step may look up any label: at the last position all entries of a sentence are its last label.
    zero_B1 = graph.add("Sub", last_B1, last_B1)
    labels_TB1 = graph.scan(backward, zero_B1, previous_TBY, dtype="int64", reverse=True)
    labels_BT = graph.add("Transpose", graph.add("Squeeze", labels_TB1, graph.constant([2])), perm=[1, 0])
    return graph.add("Where", graph.length_mask(positions_T, lengths_B), labels_BT, graph.constant(0))


def _last_labels(graph: Graph, best_TBY: Value, lengths_B: Value, end: Value) -> Value:
    best_BTY = graph.add("Transpose", best_TBY, perm=[1, 0, 2])
    last_B1 = graph.unsqueeze(graph.add("Sub", lengths_B, graph.constant(1)), 1)
    scores_B1Y = graph.add("Add", graph.take(best_BTY, last_B1), end)
    return graph.add("ArgMax", scores_B1Y, axis=2, keepdims=0)
