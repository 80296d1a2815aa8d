"""Inference on linear chains, flat labelled spans and dependency arcs: batched, ragged, differentiable, CPU and CUDA.

chain = Chain(emissions_BTY, lengths_B, transitions, start, end)
log_partition · score · token_marginals · moments                               sums over labellings
viterbi · kbest · path_weights · sample                                         labellings
LegalTransitions.from_masks(…)                                                  legal labellings, for viterbi and kbest
path_moments · tempered_moments · expected_score                                targets as moments
fenchel_young · path_loss · posterior_kl                                        losses

spans = Spans(scores_BTTL, lengths_B, SpanTags(begin, inside, end, single, outside))
log_partition · score · token_marginals · viterbi                               as of a chain

arcs = Arcs(scores_BTH, lengths_B)
head_log_marginals                                                              log p(head), heads independent
best_trees · are_trees                                                          heads that are trees
mean_field(arcs, siblings_BHTT=…, grandparents_BTTH=…)                          pairs of arcs, approximately

log_linear_pool(members) · Mixture(members)                                     several models as one
log_partition · score · token_marginals · viterbi                               of a mixture

UnscoredChain(states_BTD, lengths_B, score, tags=Y)                             a chain over a vocabulary
chunk_tokens · chunked_scores                                                   its scores, in chunks

WeightedPaths(paths_BKT, log_weights_BK, lengths_B, tags=Y)                     a list of labellings, as of an annotator
log_partition · score · token_marginals · viterbi                               of the list

A `Distribution` is a chain, spans, weighted labellings or a mixture; operations that they share take any.
"""

from raykd.structures.arc_decoding import are_trees, best_trees
from raykd.structures.arcs import Arcs, head_log_marginals
from raykd.structures.chain import Chain
from raykd.structures.decoding import kbest, path_weights, sample
from raykd.structures.distributions import Distribution, log_partition, score, token_marginals, viterbi
from raykd.structures.labelled_spans import Spans, SpanTags
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
    posterior_kl,
    tempered_moments,
)
from raykd.structures.unscored import UnscoredChain, chunk_tokens, chunked_scores
from raykd.structures.weighted_paths import WeightedPaths

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
    "WeightedPaths",
    "are_trees",
    "best_trees",
    "chunk_tokens",
    "chunked_scores",
    "expected_score",
    "fenchel_young",
    "head_log_marginals",
    "kbest",
    "log_linear_pool",
    "log_partition",
    "mean_field",
    "moments",
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
