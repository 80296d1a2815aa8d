"""Sentences longer than a model reads at once: overlapping windows, with most context for each piece.

Windows overlap by half. A piece's output comes from the window in which the nearer cut is farthest: at least a quarter
of a window away. The ends of a sentence are no cuts. Nothing is truncated, so every word gets a prediction.

Shapes: B batch, P pieces, L components of the output for a piece, W windows, V pieces of a window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from raykd.layers.dropout import masks_by_sentence

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


def window_starts(pieces: int, width: int) -> list[int]:
    """Return the first pieces of the windows; one window if the text fits into it.

    Args:
        pieces: pieces of the text.
        width: pieces of a window.
    """
    if pieces <= width:
        return [0]
    stride = max(1, width // 2)
    return [*range(0, pieces - width, stride), pieces - width]


def window_of_piece(pieces: int, width: int) -> Int[Tensor, " piece"]:
    """Return the number of the window that each piece's output is read from: that with the most distant cuts.

    Args:
        pieces: pieces of the text.
        width: pieces of a window.
    """
    starts_W1 = torch.tensor(window_starts(pieces, width))[:, None]
    place_P = torch.arange(pieces)
    before_WP = torch.where(starts_W1 == 0, pieces, place_P - starts_W1)
    ends_W1 = starts_W1 + width
    after_WP = torch.where(ends_W1 >= pieces, pieces, ends_W1 - 1 - place_P)
    # Outside a window one of the two is negative, so another window always wins.
    return torch.minimum(before_WP, after_WP).argmax(0)


def read_in_windows(
    read: Callable[[Tensor, Tensor], Tensor],
    pieces_BP: Int[Tensor, "batch piece"],
    lengths_B: Int[Tensor, " batch"],
    *,
    limit: int,
    prefix: int,
    suffix: int,
) -> Float[Tensor, "batch piece output"]:
    """Return the output of a model for all pieces, if the model has a limit on the pieces read at once.

    The special pieces around a sentence are put around every window. Their outputs are those of the first and of the
    last window.

    Args:
        read: read(pieces [W, V], lengths [W]) returns outputs [W, V, L], such as logits or hidden states.
        pieces_BP: pieces of the sentences.
        lengths_B: pieces of each sentence.
        limit: most pieces that `read` takes at once.
        prefix: number of special pieces before a sentence.
        suffix: number of special pieces after a sentence.
    """
    if pieces_BP.shape[1] <= limit or int(lengths_B.max()) <= limit:
        return read(pieces_BP, lengths_B)
    rows = [
        _row_windows(row[:n], limit, prefix, suffix)
        for row, n in zip(pieces_BP, lengths_B.tolist(), strict=True)
    ]
    windows = [window for row in rows for window in row]
    lengths_W = torch.tensor([len(window) for window in windows], device=lengths_B.device)
    pieces_WV = torch.nn.utils.rnn.pad_sequence(windows, batch_first=True)
    counts_B = torch.tensor([len(row) for row in rows], device=lengths_B.device)
    sentence_W = torch.arange(len(rows), device=lengths_B.device).repeat_interleave(counts_B)
    outputs = []
    # As many windows at once as the batch has sentences, so that memory does not grow with the length of a sentence.
    for chunk in torch.arange(len(windows), device=lengths_B.device).split(len(pieces_BP)):
        with masks_by_sentence(sentence_W[chunk]):
            outputs.append(read(pieces_WV[chunk], lengths_W[chunk]))
    output_WVL = torch.cat(outputs)
    output_BPL = output_WVL.new_zeros(*pieces_BP.shape, output_WVL.shape[-1])
    first = 0
    for b, (row, n) in enumerate(zip(rows, lengths_B.tolist(), strict=True)):
        output_BPL[b, :n] = _join_windows(output_WVL[first : first + len(row)], n, limit, prefix, suffix)
        first += len(row)
    return output_BPL


def _row_windows(pieces_P: Tensor, limit: int, prefix: int, suffix: int) -> list[Tensor]:
    end, width = len(pieces_P) - suffix, limit - prefix - suffix
    starts = window_starts(end - prefix, width)
    bodies = [pieces_P[prefix + start : min(prefix + start + width, end)] for start in starts]
    return [torch.cat([pieces_P[:prefix], body, pieces_P[end:]]) for body in bodies]


def _join_windows(output_WVL: Tensor, length: int, limit: int, prefix: int, suffix: int) -> Tensor:
    body, width = length - prefix - suffix, limit - prefix - suffix
    window_P = window_of_piece(body, width)
    starts_W = torch.tensor(window_starts(body, width))
    place_P = torch.arange(body) - starts_W[window_P] + prefix
    last = min(body, width) + prefix
    return torch.cat(
        [output_WVL[0, :prefix], output_WVL[window_P, place_P], output_WVL[-1, last : last + suffix]]
    )
