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
    """The best labels int64 [B, T], 0 on padding, of words whose labels are independent of each other: the best legal
    labelling, or each word's best label where everything is legal.
    """
    if legal is not None:
        return add_viterbi_to(graph, scores_BTY, lengths_B, *map(graph.constant, legal.parts))
    best_BT = graph.add("ArgMax", scores_BTY, axis=2, keepdims=0)
    inside_BT = graph.inside(graph.places(scores_BTY, 1), lengths_B)
    return graph.add("Where", inside_BT, best_BT, graph.constant(0))


def add_viterbi_to(
    graph: Graph, emissions_BTY: Value, lengths_B: Value, transitions: Value, start: Value, end: Value
) -> Value:
    """The best labels int64 [B, T], 0 on padding.

    Forwards, best[t, j] = e[t, j] + max_i (best[t-1, i] + transitions[i, j]); backwards from the last word of each
    sentence, the i of that maximum. Of equal scores the first tag counts.
    """
    # As the compiled kernel: only then are equal scores equal here too.
    lowered_BTY = graph.add("Sub", emissions_BTY, graph.add("ReduceMax", emissions_BTY, graph.constant([2])))
    lowered_TBY = graph.add("Transpose", lowered_BTY, perm=[1, 0, 2])

    def forward(body: Graph, into_BY: Value, emissions_BY: Value) -> tuple[Value, Value]:
        best_BY = body.add("Add", into_BY, emissions_BY)
        ways_BYY = body.add("Add", body.unsqueeze(best_BY, 2), transitions)
        return body.add("ReduceMax", ways_BYY, body.constant([1]), keepdims=0), best_BY

    begin_BY = graph.add(
        "Expand", start, graph.add("Shape", graph.add("Gather", lowered_TBY, graph.constant(0)))
    )
    best_TBY = graph.scan(forward, begin_BY, lowered_TBY, dtype="float32")
    ways_TBYY = graph.add("Add", graph.unsqueeze(best_TBY, 3), transitions)
    from_TBY = graph.add("ArgMax", ways_TBYY, axis=2, keepdims=0)
    last_B1 = _last_labels(graph, best_TBY, lengths_B, end)
    places_T = graph.places(emissions_BTY, 1)
    before_T = graph.add("Add", places_T, graph.constant(1))
    # From its last word on, whatever follows, a sentence has the label that it ends with.
    before_TB = graph.add("Transpose", graph.inside(before_T, lengths_B), perm=[1, 0])
    from_TBY = graph.add("Where", graph.unsqueeze(before_TB, 2), from_TBY, last_B1)

    def backward(body: Graph, next_B1: Value, from_BY: Value) -> tuple[Value, Value]:
        label_B1 = body.add("GatherElements", from_BY, next_B1, axis=1)
        return label_B1, body.add("Identity", label_B1)

    nothing_B1 = graph.add("Sub", last_B1, last_B1)
    labels_TB1 = graph.scan(backward, nothing_B1, from_TBY, dtype="int64", reverse=True)
    labels_BT = graph.add("Transpose", graph.add("Squeeze", labels_TB1, graph.constant([2])), perm=[1, 0])
    return graph.add("Where", graph.inside(places_T, lengths_B), labels_BT, graph.constant(0))


def _last_labels(graph: Graph, best_TBY: Value, lengths_B: Value, end: Value) -> Value:
    """The label [B, 1] that the best labelling of each sentence ends with."""
    best_BTY = graph.add("Transpose", best_TBY, perm=[1, 0, 2])
    last_B1 = graph.unsqueeze(graph.add("Sub", lengths_B, graph.constant(1)), 1)
    scores_B1Y = graph.add("Add", graph.take(best_BTY, last_B1), end)
    return graph.add("ArgMax", scores_B1Y, axis=2, keepdims=0)
