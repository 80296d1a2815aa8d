"""Single signals: encoding of scores, K best paths from stored scores, the batch that objectives read."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from raykd.corpora.batching import length_buckets
from raykd.signals import SIGNALS, Need, Sizes, TeacherBatch, path_dtype
from raykd.storage.rounding import encode_int8, encode_log_scores
from raykd.structures import Chain, score
from raykd.structures.labelled_arcs import FORBIDDEN, LabelledArcs

KBEST = SIGNALS["kbest"]


def test_the_table_is_immutable_and_named_by_its_entries():
    with pytest.raises(TypeError):
        SIGNALS["emissions"] = SIGNALS["kbest"]  # pyright: ignore[reportIndexIssue]
    assert all(name == signal.name for name, signal in SIGNALS.items())


def test_bytes_are_those_of_the_arrays():
    tags, k = 17, 4

    def bytes_of(name, k=0):
        return [column.bytes_per_row(Sizes(tags), Need(name, k)) for column in SIGNALS[name].columns]

    assert bytes_of("emissions") == [np.zeros(tags, np.float16).nbytes]
    assert bytes_of("token_marginals") == [np.zeros(tags, np.float16).nbytes]
    assert bytes_of("kbest", k) == [np.zeros(k, np.uint8).nbytes, np.zeros(k, np.float32).nbytes]
    assert bytes_of("arcs") == [np.zeros(1, np.float16).nbytes]
    assert bytes_of("relations") == [np.zeros(tags, np.float16).nbytes]
    assert bytes_of("transitions") == [np.zeros(n, np.float32).nbytes for n in (tags**2, tags, tags)]
    assert [name for name, signal in SIGNALS.items() if signal.once_per_teacher] == ["transitions"]


@pytest.mark.parametrize(
    ("rows", "unit", "expected"),
    [
        ("label", "word", [1, 2, 7]), ("label", "sentence", [1, 1, 1]), ("word", "sentence", [1, 2, 7]),
        ("arc", "word", [2, 6, 56]), ("sentence", "word", [1, 1, 1]),
    ],
)  # fmt: skip
def test_how_many_rows_a_sentence_has_follows_from_what_a_row_belongs_to(rows, unit, expected):
    column = replace(SIGNALS["arcs"].columns[0], rows=rows)
    assert column.row_counts(np.array([1, 2, 7]), unit).tolist() == expected
    assert column.is_list == (rows != "sentence")


def test_a_sentences_rows_are_cut_out_of_a_batch_by_its_own_words():
    relations, emissions = SIGNALS["relations"].columns[0], SIGNALS["emissions"].columns[0]
    padded_THV = np.arange(3 * 4 * 5).reshape(3, 4, 5)
    assert np.array_equal(
        relations.strip_padding(padded_THV, 2, "word"), [padded_THV[t, h] for t in range(2) for h in range(3)]
    )
    assert np.array_equal(emissions.strip_padding(padded_THV[0], 2, "word"), padded_THV[0, :2])
    assert np.array_equal(emissions.strip_padding(padded_THV[0], 2, "sentence"), padded_THV[0, :1])
    assert np.array_equal(KBEST.columns[1].strip_padding(padded_THV[0, 0], 2, "word"), padded_THV[0, :1])


@pytest.mark.parametrize("words", [1, 2, 31, 512])
def test_words_are_found_again_from_the_rows_of_their_arcs(words):
    lengths_B = torch.tensor([words * (words + 1), 2])
    rows = words * (words + 1)
    arcs = LabelledArcs.from_rows(torch.zeros(2, rows, 1), torch.zeros(2, rows, 3), lengths_B)
    assert arcs.arcs_BTH.shape == (2, words, words + 1)
    assert arcs.lengths_B.tolist() == [words, 1]
    assert torch.equal(arcs.arcs_BTH[1].exp().sum(), torch.tensor(1.0))


@pytest.mark.parametrize("tags", [256, 257])
def test_the_largest_tag_fits_the_path_type(tags):
    assert np.iinfo(path_dtype(tags)).max >= tags - 1


@pytest.mark.parametrize(("score", "stored"), [(-np.inf, -np.inf), (-1e9, -65504.0), (-70000.0, -65504.0)])
def test_scores_beyond_float16_stay_finite_and_only_minus_infinity_stays_infinite(score, stored):
    values, error = encode_log_scores(np.array([[0.0, score]], np.float32))
    assert values.tolist() == [[0.0, stored]]
    assert error == pytest.approx(0.0 if np.isinf(score) else -score - 65504)


def test_what_may_not_be_stays_exactly_so():
    values = np.array([[7.3, FORBIDDEN, 1.0]], np.float32)
    stored, error = encode_log_scores(values)
    assert stored[0, 1] == FORBIDDEN
    assert error < 0.01


def test_the_stated_error_is_the_largest_one():
    values = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32) * 30
    stored, error = encode_log_scores(values)
    exact = values - values.max(1, keepdims=True)
    assert stored.dtype == np.float16
    assert error == np.abs(stored.astype(np.float32) - exact).max() > 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_without_a_finite_maximum_are_refused_with_their_row(bad):
    values = np.zeros((3, 2), np.float32)
    values[1] = bad
    with pytest.raises(ValueError, match="without a finite maximum") as refused:
        encode_log_scores(values)
    assert refused.value.args[1] == 1


def test_eight_bits_are_off_by_half_a_scale_at_most():
    draw = np.random.default_rng(0)
    values = draw.normal(size=(200, 33)).astype(np.float32) * 10.0 ** draw.integers(-30, 30, size=(200, 1))
    values = np.concatenate([values.astype(np.float32), np.zeros((1, 33), np.float32)])
    stored, error = encode_int8(values)
    scales = np.abs(values).max(1, keepdims=True) / np.float32(127)
    assert stored.dtype == np.int8
    assert (np.abs(stored).max(1) == 127 * (scales[:, 0] > 0)).all()
    errors = np.abs(stored * scales - values)
    assert (errors <= scales * 0.5001).all()
    assert error == errors.max() > 0
    smallest, _ = encode_int8(np.array([[5e-44, -9e-44]], np.float32))
    assert np.abs(smallest.astype(int)).max() <= 127


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_states_that_are_not_finite_are_refused_with_their_row(bad):
    values = np.zeros((3, 2), np.float32)
    values[2, 1] = bad
    with pytest.raises(ValueError, match="not finite") as refused:
        encode_int8(values)
    assert refused.value.args[1] == 2


def test_both_precisions_of_a_layer_stand_in_one_batch():
    needs = Need("hidden", layer=7), Need("hidden_int8", layer=7)
    states = {need: (torch.randn(2, 3, 4), torch.tensor([3, 1])) for need in needs}
    assert {need.name for need in TeacherBatch.from_signals(states).hidden} == {"hidden.7", "hidden_int8.7"}
    assert TeacherBatch.from_signals(states).hidden == states


def test_buckets_hold_every_sentence_once_within_the_budget():
    lengths = np.sort(np.random.default_rng(0).integers(1, 30, 200))
    runs = length_buckets(lengths, 50)
    assert [row for run in runs for row in range(run.start, run.stop)] == list(range(200))
    sizes = [(run.stop - run.start, int(lengths[run.stop - 1])) for run in runs]
    assert all(count * longest <= 50 or count == 1 for count, longest in sizes)
    # One more sentence would not have fitted: the budget is used.
    following = [int(lengths[run.stop]) for run in runs[:-1]]
    assert all((count + 1) * longer > 50 for (count, _), longer in zip(sizes[:-1], following, strict=True))


def test_buckets_of_nothing_and_of_one_too_long():
    assert length_buckets(np.array([], np.int64), 10) == []
    assert length_buckets(np.array([3, 99]), 10) == [slice(0, 1), slice(1, 2)]
    with pytest.raises(ValueError, match="sorted"):
        length_buckets(np.array([2, 1]), 10)


LENGTHS = np.array([1, 1, 2, 3, 3, 5])


def stored_scores(tags: int = 3) -> dict[str, tuple[np.ndarray, ...]]:
    """The stored emissions of sentences of `LENGTHS` and the transitions of their teacher."""
    draw = np.random.default_rng(1)
    emissions = encode_log_scores(draw.normal(size=(LENGTHS.sum(), tags)).astype(np.float32))[0]
    parts = (draw.normal(size=(1, width)).astype(np.float32) for width in (tags * tags, tags, tags))
    return {"emissions": (emissions,), "transitions": tuple(parts)}


def derived(stored, k: int, *, token_budget: int = 50):
    return KBEST.derive(stored, LENGTHS, Need("kbest", k), token_budget)


def all_scores(emissions_TY: np.ndarray, transitions: tuple[np.ndarray, ...]) -> dict[tuple[int, ...], float]:
    """The scores of all labellings, by enumeration."""
    length, tags = emissions_TY.shape
    square, start, end = transitions[0].reshape(tags, tags), transitions[1][0], transitions[2][0]
    return {
        path: start[path[0]]
        + sum(emissions_TY[place, tag] for place, tag in enumerate(path))
        + sum(square[path[place - 1], path[place]] for place in range(1, length))
        + end[path[-1]]
        for path in np.ndindex(*[tags] * length)
    }


def test_paths_and_scores_are_those_of_enumeration_over_the_rounded_emissions():
    stored, k = stored_scores(), 4
    paths_RK, scores_NK = derived(stored, k, token_budget=6)
    rounded, ends = stored["emissions"][0].astype(np.float64), np.cumsum(LENGTHS)
    for row, (length, end) in enumerate(zip(LENGTHS, ends, strict=True)):
        path_scores = all_scores(rounded[end - length : end], stored["transitions"])
        ranked = sorted(path_scores.items(), key=lambda item: -item[1])[:k]
        paths = paths_RK[end - length : end].T.tolist()
        assert [tuple(path) for path in paths[: len(ranked)]] == [path for path, _ in ranked]
        np.testing.assert_allclose(scores_NK[row, : len(ranked)], [value for _, value in ranked], rtol=1e-5)
        assert np.isneginf(scores_NK[row, len(ranked) :]).all()
        assert not np.array(paths[len(ranked) :]).any()


def test_padding_and_neighbours_do_not_change_a_byte_of_the_paths():
    stored = stored_scores()
    together, apart = (derived(stored, 3, token_budget=budget) for budget in (10_000, 1))
    assert all(first.tobytes() == second.tobytes() for first, second in zip(together, apart, strict=True))


def test_more_tags_than_a_byte_holds_are_stored_wider():
    stored = stored_scores(tags=300)
    paths_RK, scores_NK = derived(stored, 2)
    assert paths_RK.dtype == np.int16
    assert paths_RK.max() > 255
    last_TY = torch.from_numpy(stored["emissions"][0][-5:].astype(np.float32))
    square, start, end = (torch.from_numpy(part[0]) for part in stored["transitions"])
    chain = Chain(last_TY[None], torch.tensor([5]), square.reshape(300, 300), start, end)
    scored = score(chain, torch.from_numpy(paths_RK[-5:].T.astype(np.int64))[None])
    np.testing.assert_allclose(scored[0].numpy(), scores_NK[-1], rtol=1e-5)


def test_a_batch_holds_what_was_read_and_nothing_else():
    emissions_BTY, lengths_B = torch.randn(2, 3, 4), torch.tensor([3, 1])
    parts = torch.randn(2, 4, 4), torch.randn(2, 4), torch.randn(2, 4)
    chain = TeacherBatch.from_signals(
        {Need("emissions"): (emissions_BTY, lengths_B), Need("transitions"): parts}
    ).chain
    assert torch.equal(chain.emissions_BTY, emissions_BTY)
    assert all(
        torch.equal(*pair) for pair in zip((chain.transitions, chain.start, chain.end), parts, strict=True)
    )
    alone = TeacherBatch.from_signals({Need("emissions"): (emissions_BTY, lengths_B)}).chain
    assert (alone.transitions, alone.start, alone.end) == (None, None, None)
    paths, scores = torch.zeros(2, 1, 3, dtype=torch.int64), torch.zeros(2, 1)
    batch = TeacherBatch.from_signals({Need("kbest", 1): (paths, scores)})
    assert batch.paths_BKT is paths
    assert batch.scores_BK is scores
    assert (batch.chain, batch.marginals) == (None, None)
