"""Fewer components for vectors of pieces, exactly: from the eigenvectors of a D × D matrix in float64.

Shapes: N vectors, D their components, E components after the reduction.

All processes compute the same bytes. They compute on one thread, because sums in another order differ in their last
digits. The largest component of every axis is made positive, because an axis and its opposite are equally good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from raykd.layers.threads import one_thread

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

BLOCK = 16_384
"""Number of vectors in float64 at once."""


def svd(vectors_ND: Float[Tensor, "row wide"], size: int) -> Float[Tensor, "row narrow"]:
    """Return X V_E: coordinates in the E-dimensional subspace with most of the vectors' sum of squares.

    V_E are the first right singular vectors (Mukherjee & Awadallah 2020, §4.2).

    Args:
        vectors_ND: the vectors X.
        size: number of components E.
    """
    return svd_factors(vectors_ND, size)[0]


def svd_factors(
    vectors_ND: Float[Tensor, "row wide"], size: int
) -> tuple[Float[Tensor, "row narrow"], Float[Tensor, "wide narrow"]]:
    """Return X V_E and V_E: their product X V_E V_Eᵀ is the matrix of rank E nearest to X (Eckart & Young 1936).

    Args:
        vectors_ND: the vectors X.
        size: number of components E.
    """
    return _coordinates(vectors_ND, torch.zeros_like(vectors_ND[0], dtype=torch.float64), slice(size))


def pca(vectors_ND: Float[Tensor, "row wide"], size: int) -> Float[Tensor, "row narrow"]:
    """Return the first E principal components: `svd` of the vectors minus their mean.

    Args:
        vectors_ND: the vectors.
        size: number of components E.
    """
    return _coordinates(vectors_ND, _mean(vectors_ND), slice(size))[0]


def ppa(vectors_ND: Float[Tensor, "row wide"], size: int, *, remove: int) -> Float[Tensor, "row narrow"]:
    """Return principal components between two post-processings (Raunak et al. 2019).

    A post-processing subtracts the mean and the projections on the first `remove` principal components. After the first
    post-processing the principal components are those from number `remove` + 1 on; E of them are kept. The second one
    removes the first `remove` of the E, which become zero.

    Args:
        vectors_ND: the vectors.
        size: number of components E.
        remove: components removed by each post-processing.
    """
    reduced_NE, _ = _coordinates(vectors_ND, _mean(vectors_ND), slice(remove, remove + size))
    reduced_NE[:, :remove] = 0.0
    return reduced_NE


def _coordinates(vectors_ND: Tensor, origin_D: Tensor, axes_range: slice) -> tuple[Tensor, Tensor]:
    """Return coordinates [N, E] relative to `origin_D` along some of the principal axes, and these axes [D, E].

    The axes with the largest sum of squares come first.
    """
    with one_thread():
        squares_DD = torch.zeros(2 * [vectors_ND.shape[1]], dtype=torch.float64)
        for block_ND in vectors_ND.split(BLOCK):
            from_origin_ND = block_ND.double() - origin_D
            squares_DD.addmm_(from_origin_ND.T, from_origin_ND)
        axes_DE = torch.linalg.eigh(squares_DD).eigenvectors.flip(1)[:, axes_range]
        largest_1E = axes_DE.gather(0, axes_DE.abs().argmax(0, keepdim=True))
        axes_DE = axes_DE * largest_1E.sign()
        blocks = [((block_ND.double() - origin_D) @ axes_DE).float() for block_ND in vectors_ND.split(BLOCK)]
    return torch.cat(blocks), axes_DE.float()


def _mean(vectors_ND: Tensor) -> Tensor:
    with one_thread():
        return vectors_ND.mean(0, dtype=torch.float64)
