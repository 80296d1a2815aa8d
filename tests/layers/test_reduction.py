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
    """Vectors whose components have different lengths and a mean, turned at random: no two axes are equally good."""
    random = np.random.default_rng(seed)
    turned = np.linalg.qr(random.normal(size=(wide, wide)))[0]
    vectors_ND = (random.normal(size=(rows, wide)) * 1.7 ** -np.arange(wide)) @ turned + random.normal(
        size=wide
    )
    return vectors_ND.astype(np.float32)


def by_numpy(vectors_ND: np.ndarray, size: int) -> np.ndarray:
    """U S of the largest singular values, with zeros for those that a matrix of few rows does not have."""
    left, values, _ = np.linalg.svd(vectors_ND.astype(np.float64), full_matrices=False)
    found = (left * values)[:, :size]
    return np.pad(found, ((0, 0), (0, size - found.shape[1])))


def post_processed(vectors_ND: np.ndarray, remove: int) -> np.ndarray:
    """PPA: less the mean, less the projections on the first components."""
    centred_ND = vectors_ND.astype(np.float64) - vectors_ND.mean(0, dtype=np.float64)
    axes_DD = np.linalg.svd(centred_ND, full_matrices=False)[2][:remove]
    for axis_D in axes_DD:
        centred_ND = centred_ND - np.outer(centred_ND @ axis_D, axis_D)
    return centred_ND


def assert_same_up_to_signs(found_NE: torch.Tensor, expected_NE: np.ndarray) -> None:
    """Each component, or its opposite."""
    scale = max(1.0, float(np.abs(expected_NE).max()))
    for found, expected in zip(found_NE.double().numpy().T, expected_NE.T, strict=True):
        near = min(np.abs(found - expected).max(), np.abs(found + expected).max())
        assert near < 2e-4 * scale


@given(sizes, st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_svd_and_pca_are_those_of_numpy(asked, size):
    rows, wide, seed = asked
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
    found_NE = ppa(torch.from_numpy(vectors_ND), size, remove=remove)
    assert_same_up_to_signs(found_NE, expected_NE)
    assert (found_NE[:, :remove] == 0).all()
    assert found_NE[:, remove:].abs().max() > 0


def test_the_largest_component_of_an_axis_is_positive():
    """Vectors along the negative axes have negative coordinates, the longest first."""
    vectors_ND = torch.diag(torch.tensor([-1.0, -3.0, 2.0]))
    expected_NE = torch.tensor([[0.0, 0, -1], [-3, 0, 0], [0, 2, 0]])
    torch.testing.assert_close(svd(vectors_ND, 3), expected_NE)


def test_neither_threads_nor_blocks_matter(monkeypatch):
    # So many that two threads share a sum.
    vectors_ND = torch.from_numpy(draw(20_000, 128, 0))
    threads, found = torch.get_num_threads(), []
    for count in (1, 2):
        torch.set_num_threads(count)
        found.append((svd(vectors_ND, 20), ppa(vectors_ND, 20, remove=3)))
        assert torch.get_num_threads() == count
    torch.set_num_threads(threads)
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))
    monkeypatch.setattr(reduction, "BLOCK", 999)
    torch.testing.assert_close(svd(vectors_ND, 20), found[0][0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduce", [svd, pca])
def test_fewer_components_are_the_first_of_more(reduce):
    vectors_ND = torch.from_numpy(draw(50, 9, 1))
    assert torch.equal(reduce(vectors_ND, 3), reduce(vectors_ND, 7)[:, :3])
