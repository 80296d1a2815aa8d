"""Distributions over labellings (chains, spans, weighted lists, mixtures), and the operations that they share.

Shapes: B batch, T time, Y tags. Code that trains, stores or decodes a model's distribution calls these operations and
need not know its kind. A new structure registers one function per operation here.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures import decoding, differentiable, span_decoding, span_sums, weighted_paths
from raykd.structures.chain import Chain
from raykd.structures.labelled_spans import Spans
from raykd.structures.mixture import Mixture, log_linear_pool
from raykd.structures.weighted_paths import WeightedPaths

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from raykd.structures.legal import LegalTransitions

Distribution = Chain | Spans | Mixture | WeightedPaths


@singledispatch
def log_partition(distribution: Distribution) -> Float[Tensor, " batch"]:
    """Return log Z [B]: the log of the summed exponentiated scores of all labellings, in nats. Differentiable.

    Args:
        distribution: The distribution; log Z of a mixture is 0.

    Raises:
        TypeError: The value is no distribution.
    """
    raise _unknown(distribution)


@singledispatch
def score(
    distribution: Distribution, paths: Int[Tensor, "batch *best time"]
) -> Float[Tensor, " batch *best"]:
    """Return the scores of labellings, [B] or [B, K]. Differentiable.

    Args:
        distribution: The distribution; a mixture returns log-probabilities.
        paths: Tags [B, T], for a chain also [B, K, T].

    Raises:
        TypeError: The value is no distribution.
        ValueError: The shape does not fit the distribution, or a tag is out of range.
    """
    raise _unknown(distribution)


@singledispatch
def token_marginals(distribution: Distribution) -> Float[Tensor, "batch time tag"]:
    """Return p(y_t = y) [B, T, Y]: zero on padding, the rows of tokens sum to one. Differentiable.

    Args:
        distribution: The distribution.

    Raises:
        TypeError: The value is no distribution.
    """
    raise _unknown(distribution)


@singledispatch
def viterbi(
    distribution: Distribution, legal: LegalTransitions | None = None
) -> tuple[Int[Tensor, "batch time"], Float[Tensor, " batch"]]:
    """Return the best labelling [B, T] (zero on padding) and its score [B], −∞ if none is allowed.

    Args:
        distribution: The distribution.
        legal: Transitions to which the labelling of a chain or a mixture of chains is restricted. Labellings of spans
            are legal by construction, and so are weighted labellings.

    Raises:
        TypeError: The value is no distribution.
    """
    raise _unknown(distribution)


def _unknown(distribution: object) -> TypeError:
    return TypeError(
        f"expected a Chain, Spans, WeightedPaths or a Mixture; got {type(distribution).__name__}"
    )


log_partition.register(Chain, differentiable.log_partition)
score.register(Chain, decoding.score)
token_marginals.register(Chain, differentiable.token_marginals)
viterbi.register(Chain, decoding.viterbi)

log_partition.register(Spans, span_sums.log_partition)
score.register(Spans, span_decoding.score)
token_marginals.register(Spans, span_sums.token_marginals)
viterbi.register(Spans, lambda spans, legal=None: span_decoding.viterbi(spans))

log_partition.register(WeightedPaths, weighted_paths.log_partition)
score.register(WeightedPaths, weighted_paths.score)
token_marginals.register(WeightedPaths, weighted_paths.token_marginals)
viterbi.register(WeightedPaths, lambda paths, legal=None: weighted_paths.viterbi(paths))


@log_partition.register(Mixture)
def _log_partition(mixture: Mixture) -> Float[Tensor, " batch"]:
    first = mixture.members[0]
    return torch.zeros(first.batch, dtype=first.dtype, device=first.device)


@score.register(Mixture)
def _score(mixture: Mixture, paths: Int[Tensor, "batch *best time"]) -> Float[Tensor, " batch *best"]:
    """Return log p(path), exactly."""
    logs = torch.stack([_log_probability(member, paths) for member in mixture.members])
    return logs.logsumexp(0) - math.log(len(mixture.members))


def _log_probability(member: Distribution, paths: Tensor) -> Tensor:
    scores, log_z_B = score(member, paths), log_partition(member)
    return scores - log_z_B.reshape(-1, *[1] * (scores.dim() - 1))


@token_marginals.register(Mixture)
def _token_marginals(mixture: Mixture) -> Float[Tensor, "batch time tag"]:
    return torch.stack([token_marginals(member) for member in mixture.members]).mean(0)


@viterbi.register(Mixture)
def _viterbi(
    mixture: Mixture, legal: LegalTransitions | None = None
) -> tuple[Int[Tensor, "batch time"], Float[Tensor, " batch"]]:
    """Return the best (legal) labelling of the log-linear pool, and its log-probability under the mixture."""
    # The best labelling of the mixture can differ from the pool's, but finding it takes a sum over all labellings.
    paths_BT = viterbi(log_linear_pool(mixture.members), legal)[0]
    return paths_BT, score(mixture, paths_BT)
