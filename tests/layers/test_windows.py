from itertools import pairwise

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.layers.windows import read_in_windows, window_of_piece, window_starts

FEW = settings(max_examples=50)
SIZES = given(st.integers(1, 60), st.integers(1, 20))


@FEW
@SIZES
def test_windows_cover_everything_within_bounds(pieces, width):
    starts = window_starts(pieces, width)
    assert starts[0] == 0
    assert starts[-1] + width >= pieces
    assert all(start + width <= pieces for start in starts if start)
    assert all(0 < b - a <= max(1, width // 2) for a, b in pairwise(starts))


@FEW
@SIZES
def test_each_piece_is_read_within_its_window_and_far_from_cuts(pieces, width):
    starts = window_starts(pieces, width)
    for place, window in enumerate(window_of_piece(pieces, width).tolist()):
        start, end = starts[window], min(starts[window] + width, pieces)
        assert start <= place < end
        before = place - start if start > 0 else width
        after = end - 1 - place if end < pieces else width
        assert min(before, after) >= (width - 1) // 4


def look_up(pieces_WV, lengths_W):
    """A model without context: the logits of a piece depend on the piece only."""
    assert all(n <= pieces_WV.shape[1] for n in lengths_W)
    return torch.stack([pieces_WV, pieces_WV * 2], -1).float()


@FEW
@given(st.lists(st.integers(3, 40), min_size=1, max_size=4), st.integers(4, 12))
def test_every_piece_gets_its_own_logits(lengths, limit):
    pieces_BP = (
        torch.arange(1, max(lengths) + 1).repeat(len(lengths), 1) + 100 * torch.arange(len(lengths))[:, None]
    )
    lengths_B = torch.tensor(lengths)
    lengths_read = []

    def read(pieces_WV, lengths_W):
        lengths_read.append(int(lengths_W.max()))
        return look_up(pieces_WV, lengths_W)

    logits_BPL = read_in_windows(read, pieces_BP, lengths_B, limit=limit, prefix=1, suffix=1)
    inside_BP = torch.arange(max(lengths)) < lengths_B[:, None]
    assert torch.equal(logits_BPL[inside_BP], look_up(pieces_BP, lengths_B)[inside_BP])
    assert max(lengths_read) <= limit


def test_special_pieces_stand_around_every_window():
    windows = []

    def read(pieces_WV, lengths_W):
        windows.extend(row[:n].tolist() for row, n in zip(pieces_WV, lengths_W, strict=True))
        return look_up(pieces_WV, lengths_W)

    read_in_windows(
        read, torch.tensor([[7, 1, 2, 3, 4, 5, 6, 8, 9]]), torch.tensor([9]), limit=7, prefix=1, suffix=2
    )
    assert windows == [[7, 1, 2, 3, 4, 8, 9], [7, 3, 4, 5, 6, 8, 9]]
