"""Calibration: one temperature, chosen on dev, so that the probabilities of a model are right as often as they say.

Shapes: B batch, T labels of a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raykd.layers.model import Output
from raykd.objectives.labels import negative_log_likelihood
from raykd.structures import Chain
from raykd.training.data import Part
from raykd.training.evaluate import predict
from raykd.training.load import Tagger
from raykd.training.worker import Worker

LOWEST, HIGHEST = 0.25, 10.0
"""Bounds of the temperature. A model without an error on a small dev would otherwise be made certain of everything."""
STEPS = 40
"""Steps of the search; each leaves 0.62 of the interval."""


@dataclass(frozen=True)
class Calibration:
    """The temperature of a model, and its effect on dev.

    Attributes:
        temperature: Divides all scores.
        sentences: Sentences of dev.
        before: Mean negative log-probability of the gold labelling of a sentence without it, in nats.
        after: The same with it.
    """

    temperature: float
    sentences: int
    before: float
    after: float


def calibrate(tagger: Tagger, dev: Part) -> Calibration | None:
    """Return the temperature under which the gold labellings of dev are most probable among the legal labellings.

    The negative log-likelihood is convex in 1 / temperature (Guo et al. 2017, §4.2), for chains too.

    Args:
        tagger: The trained model.
        dev: Dev, encoded for the model.

    Returns:
        The calibration; None for a model whose labels are no chain, and for an empty dev.
    """
    batches: list[Callable[[float], tuple[float, int]]] = []

    def keep(output: Output, rows: np.ndarray) -> list[None]:
        if isinstance(output.distribution, Chain):
            batches.append(_losses(output, dev, rows))
        return [None] * len(rows)

    predict(tagger.model, dev.text, keep, worker=Worker(device=tagger.device))

    def loss(temperature: float) -> float:
        total, sentences = (
            sum(values) for values in zip(*(batch(temperature) for batch in batches), strict=True)
        )
        return total / max(sentences, 1)

    sentences = sum(batch(1.0)[1] for batch in batches)
    if not sentences:
        return None
    temperature = _least(loss)
    return Calibration(round(temperature, 4), sentences, loss(1.0), loss(temperature))


def _losses(output: Output, dev: Part, rows: np.ndarray) -> Callable[[float], tuple[float, int]]:
    """Return a function: temperature → summed loss of a batch, and its sentences with a possible gold labelling."""
    chain = output.distribution
    assert isinstance(chain, Chain)
    legal = (output.legal.restrict(chain) if output.legal is not None else chain).double()
    labels_BT = dev.labels.gather(rows).to(chain.device).tags_BT

    def loss(temperature: float) -> tuple[float, int]:
        loss_B = negative_log_likelihood(legal.map(lambda scores: scores / temperature), labels_BT)
        possible_B = loss_B.isfinite()
        return float(loss_B[possible_B].sum()), int(possible_B.sum())

    return loss


def _least(loss: Callable[[float], float]) -> float:
    """Return the temperature with the least loss, by golden sections of its logarithm."""
    section = (math.sqrt(5) - 1) / 2
    low, high = math.log(LOWEST), math.log(HIGHEST)
    left, right = high - section * (high - low), low + section * (high - low)
    loss_left, loss_right = loss(math.exp(left)), loss(math.exp(right))
    for _ in range(STEPS):
        if loss_left <= loss_right:
            high, right, loss_right = right, left, loss_left
            left = high - section * (high - low)
            loss_left = loss(math.exp(left))
        else:
            low, left, loss_left = left, right, loss_right
            right = low + section * (high - low)
            loss_right = loss(math.exp(right))
    return math.exp((low + high) / 2)
