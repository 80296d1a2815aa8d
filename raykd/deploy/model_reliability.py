"""Reliability of an exported model's probabilities on labelled text, before and after calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raykd.metrics.reliability import Reliability, reliability
from raykd.serving.labeller import Labeller, decode_spans

MOST_SENTENCES = 2000
"""Most sentences of a model, evenly over its text: each is labelled once more for this."""
LABELS, SPANS = "labels", "spans"


@dataclass(frozen=True)
class Calibrated:
    """Reliability at temperature 1, and at the temperature of the calibration.

    Attributes:
        before: At temperature 1.
        after: At the temperature of the export.
    """

    before: Reliability
    after: Reliability


class Predictions:
    """Predicted labels and spans of some sentences, with their probabilities at both temperatures."""

    def __init__(self) -> None:
        self._probabilities: dict[str, list[tuple[float, float]]] = {LABELS: [], SPANS: []}
        self._right: dict[str, list[bool]] = {LABELS: [], SPANS: []}

    def add(
        self,
        model: Labeller,
        sentences: Sequence[Sequence[str]],
        gold: Sequence[Sequence[str]],
        *,
        batch: int,
    ) -> None:
        """Label sentences with a model and compare the labels with gold ones.

        Args:
            model: The exported model.
            sentences: Words of each sentence.
            gold: Gold labels of each sentence; of an utterance the intent's first.
            batch: Sentences labelled at once.
        """
        for answer, gold_labels in zip(model.answers(sentences, batch), gold, strict=True):
            labels, best_T = answer.best, answer.best_T
            lattice, calibrated = answer.lattice(1.0), answer.lattice()
            places = np.arange(len(best_T))
            sides = lattice.marginals()[places, best_T], calibrated.marginals()[places, best_T]
            self._probabilities[LABELS] += zip(*(side.tolist() for side in sides), strict=True)
            self._right[LABELS] += [label == name for label, name in zip(labels, gold_labels, strict=True)]
            if model.has_spans:
                front = int(model.utterances)
                gold_spans = set(decode_spans(gold_labels[front:]))
                for first, last, name in decode_spans(labels[front:]):
                    path = best_T[first + front : last + front + 1]
                    self._probabilities[SPANS].append(
                        (
                            lattice.probability(first + front, path),
                            calibrated.probability(first + front, path),
                        )
                    )
                    self._right[SPANS].append((first, last, name) in gold_spans)

    def reliability(self) -> Mapping[str, Calibrated]:
        """Return the reliability of labels and of spans; without predictions of a kind it has no entry."""
        return {
            kind: Calibrated(*(reliability(side, self._right[kind]) for side in zip(*pairs, strict=True)))
            for kind, pairs in self._probabilities.items()
            if pairs
        }
