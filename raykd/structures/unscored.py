"""Chains over so many tags that the scores of a whole batch are too large to hold: the pieces of a vocabulary.

Shapes: B batch, T time, D size, Y tags, K best, N tokens of a chunk: token b · T + t is at place t of sentence b.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from raykd.structures.chain import Chain
from raykd.structures.padding import check_lengths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MAX_SCORES = 2**25
"""Scores that are held at once: 128 MiB in float32. A loss holds up to eight such tensors (scores, exponentials and
gradients, of teacher and student), some 1 GiB. Of 120,000 pieces 279 tokens make a chunk: fewer would leave a GPU's
matrix products too narrow."""


class UnscoredChain(Chain):
    """A chain without transitions that keeps the states of its tokens and scores tags when it is asked to.

    `emissions_BTY` scores all tokens; `tokens` scores a chunk.

    Args:
        states_BTD: what tags are scored from.
        lengths_B: integers [B] in 1..T.
        score: from states [N, D] to scores [N, Y] in float32 or float64.
        tags: Y.
        parameters: what `score` reads beside the states.

    Raises:
        ValueError: the lengths do not fit.
    """

    states_BTD: Tensor
    score: Callable[[Tensor], Tensor]
    parameters: tuple[Tensor, ...]
    _tags: int
    rows_field: ClassVar[str] = "states_BTD"

    def __init__(
        self,
        states_BTD: Tensor,
        lengths_B: Tensor,
        score: Callable[[Tensor], Tensor],
        *,
        tags: int,
        parameters: Sequence[Tensor] = (),
    ):
        check_lengths(lengths_B, states_BTD, "emissions")
        self.__dict__.update(
            states_BTD=states_BTD, lengths_B=lengths_B, score=score, parameters=tuple(parameters), _tags=tags
        )

    @cached_property
    def emissions_BTY(self) -> Tensor:  # type: ignore[override]
        return self.score(self.states_BTD.flatten(0, 1)).unflatten(0, self.states_BTD.shape[:2])

    @property
    def tags(self) -> int:
        return self._tags

    @property
    def dtype(self) -> torch.dtype:
        return torch.promote_types(self.states_BTD.dtype, torch.float32)

    @property
    def fits_in_memory(self) -> bool:
        """Whether all scores may be held at once."""
        return self.batch * self.time * self.tags <= MAX_SCORES

    def with_scores(self) -> Chain:
        """The same chain with all its scores."""
        return Chain.unchecked(*self.parts())

    def chunks(self) -> list[slice]:
        """The tokens in order, cut so that the scores of one chunk may be held at once."""
        tokens, width = self.batch * self.time, max(1, MAX_SCORES // self.tags)
        return [slice(first, min(first + width, tokens)) for first in range(0, tokens, width)]

    def token_chain(self, states_ND: Tensor) -> Chain:
        """Tokens with these states, as sentences of one token each."""
        return _single_token_chain(self.score(states_ND), self.lengths_B)

    def best_tags(self, k: int) -> tuple[Chain, Tensor]:
        """The chain of the k best tags of each token, or of all where there are fewer, and which they are [B, T, K]."""
        with torch.no_grad():
            scored = (chunk_tokens(self, chunk).emissions_BTY[:, 0] for chunk in self.chunks())
            found = [scores_NY.topk(min(k, self.tags), 1) for scores_NY in scored]
        scores_BTK, tags_BTK = (
            torch.cat(parts).unflatten(0, (self.batch, self.time)) for parts in zip(*found, strict=True)
        )
        return Chain.unchecked(scores_BTK, self.lengths_B, None, None, None), tags_BTK


def chunk_tokens(chain: Chain, chunk: slice) -> Chain:
    """The tokens of a chunk, padding too, as sentences of one token each.

    Raises:
        ValueError: the chain has transitions, start or end scores, so that its tokens are not independent.
    """
    if isinstance(chain, UnscoredChain):
        return chain.token_chain(chain.states_BTD.flatten(0, 1)[chunk])
    if len(chain.scores()) > 1:
        raise ValueError("tokens of a chain with transitions are not independent; score its sentences whole")
    return _single_token_chain(chain.emissions_BTY.flatten(0, 1)[chunk], chain.lengths_B)


def chunked_scores(chain: Chain, tags_BT: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Of all tokens of a chain without transitions, padding too, chunk by chunk: their scores [N, Y], and a tag [N]."""
    chunks = chain.chunks() if isinstance(chain, UnscoredChain) else [slice(None)]
    return ((chunk_tokens(chain, chunk).emissions_BTY[:, 0], tags_BT.flatten()[chunk]) for chunk in chunks)


def _single_token_chain(scores_NY: Tensor, lengths_B: Tensor) -> Chain:
    return Chain.unchecked(scores_NY[:, None], lengths_B.new_ones(len(scores_NY)), None, None, None)
