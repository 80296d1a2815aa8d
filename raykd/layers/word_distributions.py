"""The distribution over tags of each word, as plain data: what a model as an annotator answers.

Shapes: B batch, T words, Y tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from raykd.corpora.batching import plan_batches
from raykd.corpora.encoded_text import encode_text
from raykd.structures import token_marginals

if TYPE_CHECKING:
    from raykd.corpora.word_pieces import Vocabulary
    from raykd.layers.model import Model

SMALLEST = 1e-7
"""Smallest probability that is given; most tags of a word have less."""
_BATCH_TOKENS = 8000


def word_distributions(
    model: Model, vocabulary: Vocabulary, tags: Sequence[str], sentences: Sequence[Sequence[str]]
) -> Iterator[list[Mapping[str, float]]]:
    """Yield for each sentence the token marginals of a model: for each word, tag → probability.

    Args:
        model: set to evaluation mode.
        vocabulary: of the model.
        tags: names of its tags [Y].
        sentences: words of each sentence.
    """
    text = encode_text(sentences, vocabulary)
    plan = plan_batches(text.piece_lengths, batch_tokens=_BATCH_TOKENS, seed=0, epoch=0, shuffle=False)
    by_row: dict[int, list[Mapping[str, float]]] = {}
    with torch.inference_mode():
        for rows in plan:
            marginals_BTY = token_marginals(model(text.gather(rows)).distribution)
            for row, marginals_TY in zip(rows.tolist(), marginals_BTY.tolist(), strict=True):
                by_row[row] = [
                    {tag: mass for tag, mass in zip(tags, marginals_Y, strict=True) if mass >= SMALLEST}
                    for marginals_Y in marginals_TY[: len(sentences[row])]
                ]
    yield from (by_row[row] for row in range(len(sentences)))
