"""Masked language modelling: the pieces that are hidden in raw text, scored by perplexity.

The score is 1 − ln(perplexity) / ln(V) of a vocabulary of V pieces: 0 where every piece is as probable as any other,
below it where a model is worse than that, 1 where each is certain. So larger is better, as of every other score, and
models of one vocabulary stand in the order of their perplexities, which are beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from raykd.forms import PIECES
from raykd.tasks.task import Task

if TYPE_CHECKING:
    from raykd.forms.pieces import Guess


def _score(_: Sequence[Guess], predicted: Sequence[Guess]) -> float:
    return float(1 + _mean_log_p(predicted) / np.log(predicted[0].pieces))


def _perplexity(_: Sequence[Guess], predicted: Sequence[Guess]) -> float:
    return float(np.exp(-_mean_log_p(predicted)))


def _right(_: Sequence[Guess], predicted: Sequence[Guess]) -> float:
    return float(np.concatenate([guess.right_M for guess in predicted]).mean())


def _mean_log_p(predicted: Sequence[Guess]) -> float:
    return np.concatenate([guess.log_p_M for guess in predicted]).mean()


MASKED_LM = Task(
    name="masked_lm",
    form=PIECES,
    score_name="mlm_score",
    score_label="MLM score",
    metric=_score,
    other_metrics=MappingProxyType({"perplexity": _perplexity, "guessed": _right}),
)
