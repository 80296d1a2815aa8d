"""Weighted labellings: a distribution given by a list of labellings, such as the samples of a language model.

Unlike a chain, it gives no probability to any labelling outside its list. Its moments are exact sums over the list.

Shapes: B batch, K labellings of a sentence, T time, Y tags.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures.decoding import path_weights
from raykd.structures.moments import Moments, path_moments
from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class WeightedPaths:
    """Distinct labellings of each sentence, most probable first, with their log-weights.

    Attributes:
        paths_BKT: Labellings, int64 [B, K, T]; values on padding are not read, missing labellings are 0.
        log_weights_BK: Log-weights, not necessarily normalised; −∞ where a sentence has fewer than K labellings.
        lengths_B: Words per sentence, int64.
        tags: Number of tags Y.

    Raises:
        ValueError: Shapes do not fit together, or a sentence has no labelling.
    """

    paths_BKT: Tensor
    log_weights_BK: Tensor
    lengths_B: Tensor
    tags: int

    def __post_init__(self) -> None:
        B, K, _ = self.paths_BKT.shape
        shapes = (tuple(self.log_weights_BK.shape), tuple(self.lengths_B.shape))
        if shapes != ((B, K), (B,)):
            raise ValueError(
                f"paths [{B}, {K}, T] need log-weights [{B}, {K}] and lengths [{B}]; got {shapes}"
            )
        if not bool((self.log_weights_BK > -torch.inf).any(1).all()):
            raise ValueError("every sentence needs at least one labelling of weight above zero")

    def __len__(self) -> int:
        return len(self.lengths_B)

    def map(self, change: Callable[[Tensor], Tensor]) -> WeightedPaths:
        """Return the same labellings with `change` applied to all tensors, for example to move them to a device.

        Args:
            change: Function of one tensor.
        """
        parts = (self.paths_BKT, self.log_weights_BK, self.lengths_B)
        return WeightedPaths(*map(change, parts), tags=self.tags)

    def moments(self) -> Moments:
        """Return the exact moments: tokens, transitions, first and last tags."""
        weights_BK = path_weights(self.log_weights_BK)
        return path_moments(self.paths_BKT, weights_BK, self.lengths_B, self.tags)


def log_partition(paths: WeightedPaths) -> Float[Tensor, " batch"]:
    """Return the log of the summed weights [B].

    Args:
        paths: The distribution.
    """
    return paths.log_weights_BK.logsumexp(1)


def score(paths: WeightedPaths, labellings: Int[Tensor, "batch *best time"]) -> Float[Tensor, " batch *best"]:
    """Return the log-weights of labellings, [B] or [B, N]; −∞ for a labelling outside the list.

    Args:
        paths: The distribution.
        labellings: Tags [B, T] or [B, N, T].

    Raises:
        ValueError: The shape does not fit the distribution.
    """
    B, _, T = paths.paths_BKT.shape
    if labellings.dim() not in (2, 3) or (labellings.shape[0], labellings.shape[-1]) != (B, T):
        raise ValueError(f"labellings must be [{B}, {T}] or [{B}, N, {T}]; got {list(labellings.shape)}")
    labellings_BNT = labellings[:, None] if labellings.dim() == 2 else labellings
    padding_BT = ~length_mask(paths.lengths_B, T)
    equal_BNKT = labellings_BNT[:, :, None] == paths.paths_BKT[:, None]
    same_BNK = (equal_BNKT | padding_BT[:, None, None]).all(3)
    scores_BN = paths.log_weights_BK[:, None].masked_fill(~same_BNK, -torch.inf).logsumexp(2)
    return scores_BN[:, 0] if labellings.dim() == 2 else scores_BN


def token_marginals(paths: WeightedPaths) -> Float[Tensor, "batch time tag"]:
    """Return p(y_t = y) [B, T, Y]: zero on padding, the rows of tokens sum to one.

    Args:
        paths: The distribution.
    """
    return paths.moments().token_BTY


def viterbi(paths: WeightedPaths) -> tuple[Int[Tensor, "batch time"], Float[Tensor, " batch"]]:
    """Return the labelling of the largest weight [B, T] (zero on padding), and its log-weight [B].

    The labellings of an annotator are legal, so there is no restriction to legal ones. Of equal weights the first
    wins.

    Args:
        paths: The distribution.
    """
    best_B1 = paths.log_weights_BK.argmax(1, keepdim=True)
    T = paths.paths_BKT.shape[2]
    best_BT = paths.paths_BKT.gather(1, best_B1[:, :, None].expand(-1, 1, T))[:, 0].long()
    best_BT = best_BT.masked_fill(~length_mask(paths.lengths_B, T), 0)
    return best_BT, paths.log_weights_BK.gather(1, best_B1)[:, 0]
