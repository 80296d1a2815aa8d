"""Masked language modelling: the pieces hidden in raw text, scored by perplexity.

The score is 1 − ln(perplexity) / ln(V) for a vocabulary of V pieces: 0 if all pieces are equally probable, negative if
a model is worse than that, 1 if every piece is certain. So larger is better, as for all scores, and models of one
vocabulary are ordered by their perplexities, which are shown too.
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


def _accuracy(_: Sequence[Guess], predicted: Sequence[Guess]) -> float:
    return float(np.concatenate([guess.right_M for guess in predicted]).mean())


def _mean_log_p(predicted: Sequence[Guess]) -> float:
    return np.concatenate([guess.log_p_M for guess in predicted]).mean()


MASKED_LM = Task(
    name="masked_lm",
    form=PIECES,
    score_name="mlm_score",
    score_label="MLM score",
    metric=_score,
    other_metrics=MappingProxyType({"perplexity": _perplexity, "guessed": _accuracy}),
)
