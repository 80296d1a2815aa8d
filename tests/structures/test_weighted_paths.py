"""Weighted labellings, against sums over the list itself: repeats merged or not, fewer than K, all weight on one."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raykd.objectives import OBJECTIVES
from raykd.signals import TeacherBatch
from raykd.structures import Chain, WeightedPaths, log_partition, score, token_marginals, viterbi
from tests.structures.chains import MINUS_INFINITY, SETTINGS


@st.composite
def weighted(draw) -> tuple[WeightedPaths, list[dict[tuple[int, ...], float]]]:
    """Weighted labellings of 1–3 ragged sentences, and the same as weight by labelling."""
    B, K, T, Y = (draw(st.integers(1, most)) for most in (3, 4, 4, 3))
    lengths = [draw(st.integers(1, T)) for _ in range(B)]
    laws, paths_BKT = [], torch.zeros(B, K, T, dtype=torch.long)
    for place, length in enumerate(lengths):
        paths_BKT[place, :, length:] = Y + 3  # values on padding are not read
    log_weights_BK = torch.full((B, K), MINUS_INFINITY, dtype=torch.float64)
    for place, length in enumerate(lengths):
        labelling = st.tuples(*[st.integers(0, Y - 1)] * length)
        labellings = draw(st.lists(labelling, min_size=1, max_size=K, unique=True))
        weights = [draw(st.sampled_from([1e-30, 0.2, 1.0, 7.0])) for _ in labellings]
        laws.append(dict(zip(labellings, weights, strict=True)))
        for k, (tags, weight) in enumerate(laws[-1].items()):
            paths_BKT[place, k, :length] = torch.tensor(tags)
            log_weights_BK[place, k] = math.log(weight)
    return WeightedPaths(paths_BKT, log_weights_BK, torch.tensor(lengths), Y), laws


@SETTINGS
@given(weighted())
def test_sums_are_those_over_the_list(case):
    paths, laws = case
    log_z, marginals, moments = log_partition(paths), token_marginals(paths), paths.moments()
    for b, law in enumerate(laws):
        total = sum(law.values())
        assert log_z[b].item() == pytest.approx(math.log(total))
        for t in range(paths.paths_BKT.shape[2]):
            for y in range(paths.tags):
                share = sum(w for tags, w in law.items() if t < len(tags) and tags[t] == y) / total
                assert marginals[b, t, y].item() == pytest.approx(share, abs=1e-12)
        for y in range(paths.tags):
            for following in range(paths.tags):
                counts = {tags: sum(p == (y, following) for p in itertools.pairwise(tags)) for tags in law}
                expected = sum(w * counts[tags] for tags, w in law.items()) / total
                assert moments.transition_BYY[b, y, following].item() == pytest.approx(expected, abs=1e-12)


@SETTINGS
@given(weighted())
def test_the_best_labelling_has_the_largest_weight_and_others_have_no_score(case):
    paths, laws = case
    best_BT, scores_B = viterbi(paths)
    for b, law in enumerate(laws):
        length = int(paths.lengths_B[b])
        assert law[tuple(best_BT[b, :length].tolist())] == max(law.values())
        assert not best_BT[b, length:].any()
        assert scores_B[b].item() == pytest.approx(math.log(max(law.values())))
    assert torch.equal(score(paths, best_BT), scores_B)
    missing = best_BT.clone()
    for b, law in enumerate(laws):
        length = int(paths.lengths_B[b])
        every = torch.cartesian_prod(*[torch.arange(paths.tags)] * length).reshape(-1, length)
        outside = [tags for tags in every.tolist() if tuple(tags) not in law]
        missing[b, :length] = torch.tensor(outside[0] if outside else every[0].tolist())
        expected = MINUS_INFINITY if outside else math.log(law[tuple(every[0].tolist())])
        assert score(paths, missing)[b].item() == pytest.approx(expected)


@SETTINGS
@given(weighted(), st.integers(0, 2**31), st.booleans())
def test_for_a_chain_student_structural_on_samples_is_weighted_top_k(case, seed, transitions):
    paths, laws = case
    generator = torch.Generator().manual_seed(seed)
    B, T, Y = len(laws), paths.paths_BKT.shape[2], paths.tags

    def part(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    student = Chain(part(B, T, Y), paths.lengths_B, *((part(Y, Y), part(Y), part(Y)) if transitions else ()))
    teacher = TeacherBatch(
        paths_BKT=paths.paths_BKT, scores_BK=paths.log_weights_BK, sample_lengths_B=paths.lengths_B
    )
    structural = OBJECTIVES["structural"]().loss(student, teacher)
    top_wk = OBJECTIVES["top_wk"](k=1).loss(student, teacher)  # k cuts no sample
    expected = torch.stack([
        sum(
            weight / sum(law.values()) * (log_partition(student)[b] - score(student, _padded(tags, T, B))[b])
            for tags, weight in law.items()
        )
        for b, law in enumerate(laws)
    ])  # fmt: skip
    torch.testing.assert_close(structural, expected)
    torch.testing.assert_close(top_wk, expected)


def _padded(tags: tuple[int, ...], time: int, batch: int) -> torch.Tensor:
    return torch.tensor([*tags, *[0] * (time - len(tags))]).expand(batch, time)


@pytest.mark.parametrize(
    ("paths", "weights", "words"),
    [
        (torch.zeros(2, 1, 3, dtype=torch.long), torch.zeros(2, 2), "need log-weights"),
        (
            torch.zeros(1, 2, 3, dtype=torch.long),
            torch.full((1, 2), MINUS_INFINITY),
            "at least one labelling",
        ),
    ],
)
def test_faulty_parts_are_refused(paths, weights, words):
    with pytest.raises(ValueError, match=words):
        WeightedPaths(paths, weights, torch.ones(len(paths), dtype=torch.long), 2)


def test_labellings_of_another_shape_are_refused():
    paths = WeightedPaths(torch.zeros(1, 1, 3, dtype=torch.long), torch.zeros(1, 1), torch.tensor([3]), 2)
    with pytest.raises(ValueError, match=r"must be \[1, 3\]"):
        score(paths, torch.zeros(1, 2, dtype=torch.long))
