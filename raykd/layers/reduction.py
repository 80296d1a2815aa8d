"""Fewer components for the vectors of pieces, exactly: the eigenvectors of a D × D matrix in float64.

Shapes: N vectors, D their components, E those that are kept.

All processes compute the same bytes: on one thread, because sums in another order have other last digits, and with the
largest component of every axis positive, because an axis and its opposite are equally good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from raykd.layers.threads import one_thread

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

BLOCK = 16_384
"""Vectors that are held in float64 at once."""


def svd(vectors_ND: Float[Tensor, "row wide"], size: int) -> Float[Tensor, "row narrow"]:
    """X V_E: the coordinates in the E-dimensional subspace that has most of the vectors' sum of squares; V_E are the
    first right singular vectors (Mukherjee & Awadallah 2020, §4.2).
    """
    return _coordinates(vectors_ND, torch.zeros_like(vectors_ND[0], dtype=torch.float64), slice(size))


def pca(vectors_ND: Float[Tensor, "row wide"], size: int) -> Float[Tensor, "row narrow"]:
    """The first E principal components: `svd` of the vectors less their mean."""
    return _coordinates(vectors_ND, _mean(vectors_ND), slice(size))


def ppa(vectors_ND: Float[Tensor, "row wide"], size: int, *, remove: int) -> Float[Tensor, "row narrow"]:
    """Principal components between two post-processings, each of which subtracts the mean and the projections on the
    first `remove` components (Raunak et al. 2019).

    What the first post-processing leaves has the later components as its first ones. The second takes `remove` more of
    them away: so many of the E components are zero.
    """
    reduced_NE = _coordinates(vectors_ND, _mean(vectors_ND), slice(remove, remove + size))
    reduced_NE[:, :remove] = 0.0
    return reduced_NE


def _coordinates(vectors_ND: Tensor, origin_D: Tensor, kept: slice) -> Tensor:
    """The coordinates of the vectors, seen from `origin_D`, along these of the axes on which their sum of squares is
    largest, the largest first.
    """
    with one_thread():
        squares_DD = torch.zeros(2 * [vectors_ND.shape[1]], dtype=torch.float64)
        for block_ND in vectors_ND.split(BLOCK):
            from_origin_ND = block_ND.double() - origin_D
            squares_DD.addmm_(from_origin_ND.T, from_origin_ND)
        axes_DE = torch.linalg.eigh(squares_DD).eigenvectors.flip(1)[:, kept]
        largest_1E = axes_DE.gather(0, axes_DE.abs().argmax(0, keepdim=True))
        axes_DE = axes_DE * largest_1E.sign()
        blocks = [((block_ND.double() - origin_D) @ axes_DE).float() for block_ND in vectors_ND.split(BLOCK)]
    return torch.cat(blocks)


def _mean(vectors_ND: Tensor) -> Tensor:
    with one_thread():
        return vectors_ND.mean(0, dtype=torch.float64)
