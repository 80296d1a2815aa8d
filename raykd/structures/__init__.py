"""Exact inference on linear chains: batched, ragged, differentiable, on CPU and CUDA.

chain = Chain(emissions_BTY, lengths_B, transitions, start, end)
log_partition · score · token_marginals · pairwise_marginals · moments          sums over labellings
viterbi · kbest · path_weights · sample                                         labellings
entropy · cross_entropy · kl · posterior_kl                                     divergences
path_moments · tempered_moments · fenchel_young · path_loss                     losses as target moments
"""

from raykd.structures.chain import Chain
from raykd.structures.decoding import kbest, path_weights, sample, score, viterbi
from raykd.structures.divergences import cross_entropy, entropy, kl, posterior_kl
from raykd.structures.moments import (
    Moments,
    expected_score,
    fenchel_young,
    moments,
    path_loss,
    path_moments,
    tempered_moments,
)
from raykd.structures.partition import log_partition, pairwise_marginals, token_marginals

__all__ = [
    "Chain",
    "Moments",
    "cross_entropy",
    "entropy",
    "expected_score",
    "fenchel_young",
    "kbest",
    "kl",
    "log_partition",
    "moments",
    "pairwise_marginals",
    "path_loss",
    "path_moments",
    "path_weights",
    "posterior_kl",
    "sample",
    "score",
    "tempered_moments",
    "token_marginals",
    "viterbi",
]
