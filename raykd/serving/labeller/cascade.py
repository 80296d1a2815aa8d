"""A cascade: a model labels every sentence, and a teacher those of which the model is not sure.

Shapes: T words, Y labels.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

from .folder import LabellerError
from .lattice import Chain, Lattice, divided
from .spans import decode_spans

STUDENT, TEACHER, AWAY = "student", "teacher", "away"
"""Givers of an answer; `AWAY`: the student, because the teacher that should have been asked is away."""
CONFIDENCES = ("word", "labelling", "span")
SPAN_PREFIXES = ("B-", "I-", "E-", "S-")
log = logging.getLogger("raykd")


@dataclass(frozen=True)
class Answer:
    """The labels of one sentence by one model, with all that its probabilities are computed from.

    Attributes:
        labels: The names of the model's labels [Y].
        best_T: Numbers of the best labels.
        scores_TY: Scores of the labels.
        decoding: Scores of neighbouring labels, −∞ for illegal pairs; None: labels are independent.
        temperature: Divides all scores.
        given_by: Model of a cascade that gave it; None outside a cascade.
    """

    labels: tuple[str, ...]
    best_T: np.ndarray
    scores_TY: np.ndarray
    decoding: Chain | None
    temperature: float
    given_by: str | None = None

    @property
    def best(self) -> list[str]:
        """Names of the best labels [T]."""
        return [self.labels[number] for number in self.best_T]

    def lattice(self, temperature: float | None = None) -> Lattice:
        """Return the distribution over the legal labellings; `temperature` replaces that of the calibration."""
        temperature = temperature or self.temperature
        return Lattice(self.scores_TY / temperature, divided(self.decoding, temperature))

    def marginals(self, labels: tuple[str, ...]) -> np.ndarray:
        """Return the probabilities [T, Y] of labels with these names, in their order."""
        marginals_TY = self.lattice().marginals()
        if labels == self.labels:
            return marginals_TY
        return marginals_TY[:, [self.labels.index(name) for name in labels]]


def confidence(answer: Answer, kind: str) -> float:
    """Return how sure a model is of its answer, from 0 to 1.

    Args:
        answer: Labels of a sentence.
        kind: `word`, the least marginal of its labels; `labelling`, the probability of all labels together; `span`, the
            least probability of its spans, 1 without spans.
    """
    lattice, best_T = answer.lattice(), answer.best_T
    if kind == "labelling":
        return lattice.probability(0, best_T)
    if kind == "word":
        return float(lattice.marginals()[np.arange(len(best_T)), best_T].min())
    spans = decode_spans([label if label[:2] in SPAN_PREFIXES else "O" for label in answer.best])
    return min(
        (lattice.probability(first, best_T[first : last + 1]) for first, last, _ in spans), default=1.0
    )


Ask = Callable[[Sequence[Sequence[str]], int], Sequence[Answer | None]]
"""Labels sentences, some together, with the teacher; None stands for no usable answer."""
ANNOTATORS = "raykd.annotators"
"""Group of entry points that open a teacher which is no export: a function, a pipeline, a service."""


def open_annotator(folder: Path, card: Mapping[str, Any]) -> Ask | None:
    """Return the annotator of a cascade; None if no package that opens it is installed.

    Args:
        folder: Folder of the cascade.
        card: Content of `export.json`.
    """
    openers = list(entry_points(group=ANNOTATORS))
    return openers[0].load()(folder, card) if openers else None


@dataclass(frozen=True)
class Cascade:
    """Passes sentences of which a student is not sure to its teacher.

    Attributes:
        kind: Measure of confidence, one of `CONFIDENCES`.
        threshold: Sentences with a confidence below it are passed on.
        ask: The teacher; None: it is away.
        may_be_away: Give the student's answer if the teacher is away, or fails; else raise an error.
    """

    kind: str
    threshold: float
    ask: Ask | None
    may_be_away: bool = True

    @staticmethod
    def from_card(card: Mapping[str, Any], ask: Ask | None, *, may_be_away: bool) -> Cascade:
        """Return the cascade of an export.

        Args:
            card: Entry `cascade` of `export.json`.
            ask: The teacher; None: it is away.
            may_be_away: See `Cascade`.
        """
        return Cascade(card["confidence"], card["threshold"], ask, may_be_away)

    def complete(
        self, answers: Sequence[Answer], sentences: Sequence[Sequence[str]], batch: int
    ) -> list[Answer]:
        """Return the answers of the student, or of the teacher where the student is not sure.

        Args:
            answers: Of the student.
            sentences: Words of each sentence.
            batch: Sentences that are read together.

        Raises:
            LabellerError: The teacher is away, and may not be.
        """
        completed = [replace(answer, given_by=STUDENT) for answer in answers]
        unsure = [row for row, answer in enumerate(answers) if confidence(answer, self.kind) < self.threshold]
        if not unsure:
            return completed
        asked = self._ask([sentences[row] for row in unsure], batch)
        for place, row in enumerate(unsure):
            by_teacher = None if asked is None else asked[place]
            if by_teacher is None:
                completed[row] = replace(completed[row], given_by=AWAY)
            else:
                # A teacher that is a cascade itself says which of its models answered.
                within = by_teacher.given_by
                completed[row] = replace(by_teacher, given_by=f"{TEACHER}/{within}" if within else TEACHER)
        return completed

    def _ask(self, sentences: Sequence[Sequence[str]], batch: int) -> Sequence[Answer | None] | None:
        if self.ask is None:
            if self.may_be_away:
                return None
            raise LabellerError(
                f"the teacher is away, and {len(sentences)} sentences need it; load it with away='student'"
            )
        try:
            return self.ask(sentences, batch)
        except Exception as error:
            if not self.may_be_away:
                raise LabellerError(f"the teacher failed ({type(error).__name__}: {error})") from error
            log.warning(
                "the teacher failed, so the student answers for it: %s: %s", type(error).__name__, error
            )
            return None
