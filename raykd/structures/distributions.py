"""What a model says of a sentence's tags, a chain or spans, and the operations that both have.

Shapes: B batch, T time, Y tags. Everything else in `structures/` is of one of the two; what trains, stores or decodes a
model's distribution asks here and need not know which it is. Another structure joins by one `register` per operation.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from torch import Tensor

from raykd.structures import decoding, divergences, partition, span_decoding, span_sums
from raykd.structures.chain import Chain
from raykd.structures.spans import Spans

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Distribution = Chain | Spans


@singledispatch
def log_partition(distribution: Distribution) -> Float[Tensor, " batch"]:
    """log Z [B]: the log of the summed exponentiated scores of all labellings, in nats; differentiable."""
    raise _unknown(distribution)


@singledispatch
def score(
    distribution: Distribution, paths: Int[Tensor, "batch *best time"]
) -> Float[Tensor, " batch *best"]:
    """Scores of given labellings: paths [B, T] to [B]; of a chain also [B, K, T] to [B, K]. Differentiable."""
    raise _unknown(distribution)


@singledispatch
def token_marginals(distribution: Distribution) -> Float[Tensor, "batch time tag"]:
    """p(y_t = y) [B, T, Y]: zero on padding, each token's row sums to one. Differentiable."""
    raise _unknown(distribution)


@singledispatch
def viterbi(distribution: Distribution) -> tuple[Int[Tensor, "batch time"], Float[Tensor, " batch"]]:
    """The best labelling [B, T] (zero on padding) and its score [B], −∞ where none is allowed."""
    raise _unknown(distribution)


@singledispatch
def entropy(distribution: Distribution) -> Float[Tensor, " batch"]:
    """H(p) = −Σ_y p(y) log p(y) [B] over all labellings, in nats."""
    raise _unknown(distribution)


def _unknown(distribution: object) -> TypeError:
    return TypeError(f"a Chain or Spans is a distribution over labellings; got {type(distribution).__name__}")


log_partition.register(Chain, partition.log_partition)
score.register(Chain, decoding.score)
token_marginals.register(Chain, partition.token_marginals)
viterbi.register(Chain, decoding.viterbi)
entropy.register(Chain, divergences.entropy)

log_partition.register(Spans, span_sums.log_partition)
score.register(Spans, span_decoding.score)
token_marginals.register(Spans, span_sums.token_marginals)
viterbi.register(Spans, span_decoding.viterbi)
entropy.register(Spans, span_sums.entropy)
