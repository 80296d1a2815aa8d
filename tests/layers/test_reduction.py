"""Reduced vectors against numpy's singular values, and against the algorithm of Raunak et al. step by step."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.layers import reduction
from raykd.layers.reduction import pca, ppa, svd

sizes = st.tuples(st.integers(2, 60), st.integers(1, 12), st.integers(0, 2**31))


def draw(rows: int, wide: int, seed: int) -> np.ndarray:
    """Return vectors with a mean and components of different lengths, rotated so that no two axes are equally good."""
    random = np.random.default_rng(seed)
    rotation = np.linalg.qr(random.normal(size=(wide, wide)))[0]
    vectors_ND = (random.normal(size=(rows, wide)) * 1.7 ** -np.arange(wide)) @ rotation + random.normal(
        size=wide
    )
    return vectors_ND.astype(np.float32)


def by_numpy(vectors_ND: np.ndarray, size: int) -> np.ndarray:
    """Return U S of the largest singular values, with zeros for those that a matrix of few rows lacks."""
    singular_NE, values, _ = np.linalg.svd(vectors_ND.astype(np.float64), full_matrices=False)
    coordinates_NE = (singular_NE * values)[:, :size]
    return np.pad(coordinates_NE, ((0, 0), (0, size - coordinates_NE.shape[1])))


def post_processed(vectors_ND: np.ndarray, remove: int) -> np.ndarray:
    """PPA: subtract the mean and the projections on the first components."""
    centred_ND = vectors_ND.astype(np.float64) - vectors_ND.mean(0, dtype=np.float64)
    axes_DD = np.linalg.svd(centred_ND, full_matrices=False)[2][:remove]
    for axis_D in axes_DD:
        centred_ND = centred_ND - np.outer(centred_ND @ axis_D, axis_D)
    return centred_ND


def assert_same_up_to_signs(actual_NE: torch.Tensor, expected_NE: np.ndarray) -> None:
    """Compare components; the opposite of a component is equal to it."""
    scale = max(1.0, float(np.abs(expected_NE).max()))
    for actual, expected in zip(actual_NE.double().numpy().T, expected_NE.T, strict=True):
        near = min(np.abs(actual - expected).max(), np.abs(actual + expected).max())
        assert near < 2e-4 * scale


@given(sizes, st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_svd_and_pca_are_those_of_numpy(shape, size):
    rows, wide, seed = shape
    vectors_ND, size = draw(rows, wide, seed), min(size, wide)
    assert_same_up_to_signs(svd(torch.from_numpy(vectors_ND), size), by_numpy(vectors_ND, size))
    centred_ND = vectors_ND - vectors_ND.mean(0, dtype=np.float64)
    assert_same_up_to_signs(pca(torch.from_numpy(vectors_ND), size), by_numpy(centred_ND, size))


@given(st.integers(30, 60), st.integers(0, 2**31), st.integers(1, 3), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_ppa_is_post_processing_pca_and_post_processing(rows, seed, remove, spare):
    vectors_ND = draw(rows, 10, seed)
    size = 10 - remove - spare
    reduced_NE = by_numpy(post_processed(vectors_ND, remove), size)
    expected_NE = post_processed(reduced_NE, remove)
    actual_NE = ppa(torch.from_numpy(vectors_ND), size, remove=remove)
    assert_same_up_to_signs(actual_NE, expected_NE)
    assert (actual_NE[:, :remove] == 0).all()
    assert actual_NE[:, remove:].abs().max() > 0


def test_the_largest_component_of_an_axis_is_positive():
    """Vectors along the negative axes have negative coordinates, the longest first."""
    vectors_ND = torch.diag(torch.tensor([-1.0, -3.0, 2.0]))
    expected_NE = torch.tensor([[0.0, 0, -1], [-3, 0, 0], [0, 2, 0]])
    torch.testing.assert_close(svd(vectors_ND, 3), expected_NE)


def test_neither_threads_nor_blocks_matter(monkeypatch):
    # Enough vectors for two threads to share a sum.
    vectors_ND = torch.from_numpy(draw(20_000, 128, 0))
    threads, results = torch.get_num_threads(), []
    for count in (1, 2):
        torch.set_num_threads(count)
        results.append((svd(vectors_ND, 20), ppa(vectors_ND, 20, remove=3)))
        assert torch.get_num_threads() == count
    torch.set_num_threads(threads)
    assert all(torch.equal(first, second) for first, second in zip(*results, strict=True))
    monkeypatch.setattr(reduction, "BLOCK", 999)
    torch.testing.assert_close(svd(vectors_ND, 20), results[0][0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduce", [svd, pca])
def test_fewer_components_are_the_first_of_more(reduce):
    vectors_ND = torch.from_numpy(draw(50, 9, 1))
    assert torch.equal(reduce(vectors_ND, 3), reduce(vectors_ND, 7)[:, :3])
