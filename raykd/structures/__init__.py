"""Inference on linear chains, flat labelled spans and dependency arcs: batched, ragged, differentiable, CPU and CUDA.

chain = Chain(emissions_BTY, lengths_B, transitions, start, end)
log_partition · score · token_marginals · pairwise_marginals · moments          sums over labellings
viterbi · kbest · path_weights · sample                                         labellings, or the legal ones
entropy · cross_entropy · kl · posterior_kl                                     divergences
path_moments · tempered_moments · fenchel_young · path_loss                     losses as target moments

spans = Spans(scores_BTTL, lengths_B, SpanTags(begin, inside, end, single, outside))
log_partition · score · token_marginals · viterbi · entropy                     as of a chain
span_marginals                                                                  of entities

arcs = Arcs(scores_BTH, lengths_B, "heads" | "trees" | "projective_trees", single_root)
log_partition · score · token_marginals · viterbi · entropy                     as of a chain, a word's tag is its head
head_log_marginals · is_allowed                                                 log p(head), trees or not
mean_field(arcs, siblings_BHTT=…, grandparents_BTTH=…)                          pairs of arcs, approximately

log_linear_pool(members) · Mixture(members)                                     several models as one
log_partition · score · token_marginals · viterbi                               of a mixture

UnscoredChain(states_BTD, lengths_B, score, tags=Y) · tokens · chunked_scores    a chain over a vocabulary, in chunks

A `Distribution` is any of them; operations that they share take any.
"""

from raykd.structures.arc_decoding import is_allowed
from raykd.structures.arc_sums import head_log_marginals
from raykd.structures.arcs import Arcs
from raykd.structures.chain import Chain
from raykd.structures.decoding import kbest, path_weights, sample
from raykd.structures.distributions import (
    Distribution,
    entropy,
    log_partition,
    score,
    token_marginals,
    viterbi,
)
from raykd.structures.divergences import cross_entropy, kl, posterior_kl
from raykd.structures.legal import LegalTransitions
from raykd.structures.mean_field import mean_field
from raykd.structures.mixture import Mixture, log_linear_pool
from raykd.structures.moments import (
    Moments,
    expected_score,
    fenchel_young,
    moments,
    path_loss,
    path_moments,
    tempered_moments,
)
from raykd.structures.partition import pairwise_marginals
from raykd.structures.span_sums import span_marginals
from raykd.structures.spans import Spans, SpanTags
from raykd.structures.unscored import UnscoredChain, chunked_scores, tokens

__all__ = [
    "Arcs",
    "Chain",
    "Distribution",
    "LegalTransitions",
    "Mixture",
    "Moments",
    "SpanTags",
    "Spans",
    "UnscoredChain",
    "chunked_scores",
    "cross_entropy",
    "entropy",
    "expected_score",
    "fenchel_young",
    "head_log_marginals",
    "is_allowed",
    "kbest",
    "kl",
    "log_linear_pool",
    "log_partition",
    "mean_field",
    "moments",
    "pairwise_marginals",
    "path_loss",
    "path_moments",
    "path_weights",
    "posterior_kl",
    "sample",
    "score",
    "span_marginals",
    "tempered_moments",
    "token_marginals",
    "tokens",
    "viterbi",
]
