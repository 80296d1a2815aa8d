"""Chains over very many tags (the pieces of a vocabulary), with more scores per batch than memory holds.

Shapes: B batch, T time, D size of a state, Y tags, K best, N tokens of a chunk. Chunks are ranges of the tokens of the
padded batch: token b · T + t is word t of sentence b.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from raykd.structures.chain import Chain
from raykd.structures.padding import check_lengths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MAX_SCORES = 2**25
"""Scores held at once: 128 MiB in float32.

A loss holds up to eight such tensors (scores, exponentials and gradients, of teacher and student), about 1 GiB. With
120,000 pieces a chunk has 279 tokens: fewer would make a GPU's matrix products too narrow."""


class UnscoredChain(Chain):
    """A chain without transitions, with token states from which scores are computed on demand.

    `emissions_BTY` scores all tokens; `chunk_tokens` scores a chunk.

    Args:
        states_BTD: States from which tags are scored.
        lengths_B: Integers [B] in 1..T.
        score: Maps states [N, D] to scores [N, Y] in float32 or float64.
        tags: Y.
        parameters: Tensors that `score` reads in addition to the states.

    Raises:
        ValueError: The lengths do not fit.
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
        check_lengths(lengths_B, states_BTD, "states")
        self.__dict__.update(
            states_BTD=states_BTD, lengths_B=lengths_B, score=score, parameters=tuple(parameters), _tags=tags
        )

    @cached_property
    @override
    def emissions_BTY(self) -> Tensor:  # type: ignore[override]
        return self.score(self.states_BTD.flatten(0, 1)).unflatten(0, self.states_BTD.shape[:2])

    @property
    @override
    def tags(self) -> int:
        return self._tags

    @property
    @override
    def dtype(self) -> torch.dtype:
        return torch.promote_types(self.states_BTD.dtype, torch.float32)

    @property
    def fits_in_memory(self) -> bool:
        """True if all scores may be held at once."""
        return self.batch * self.time * self.tags <= MAX_SCORES

    def with_scores(self) -> Chain:
        """Return the same chain with all scores computed."""
        return Chain.unchecked(*self.parts())

    def chunks(self) -> list[slice]:
        """Return slices of the tokens, in order, so short that the scores of one slice may be held at once."""
        tokens, width = self.batch * self.time, max(1, MAX_SCORES // self.tags)
        return [slice(first, min(first + width, tokens)) for first in range(0, tokens, width)]

    def token_chain(self, states_ND: Tensor) -> Chain:
        """Return a chain with one sentence per token, scored from the tokens' states."""
        return _single_token_chain(self.score(states_ND), self.lengths_B)

    def best_tags(self, k: int) -> tuple[Chain, Tensor]:
        """Return the chain of the k best tags per token (or all tags, if fewer), and the tags [B, T, K]."""
        with torch.no_grad():
            scored = (chunk_tokens(self, chunk).emissions_BTY[:, 0] for chunk in self.chunks())
            best = [scores_NY.topk(min(k, self.tags), 1) for scores_NY in scored]
        scores_BTK, tags_BTK = (
            torch.cat(parts).unflatten(0, (self.batch, self.time)) for parts in zip(*best, strict=True)
        )
        return Chain.unchecked(scores_BTK, self.lengths_B, None, None, None), tags_BTK


def chunk_tokens(chain: Chain, chunk: slice) -> Chain:
    """Return the tokens of a chunk, padding included, as a chain with one sentence per token.

    Args:
        chain: Chain without transitions.
        chunk: Range of tokens.

    Raises:
        ValueError: The chain has transitions, start or end scores, so that its tokens are not independent.
    """
    if isinstance(chain, UnscoredChain):
        return chain.token_chain(chain.states_BTD.flatten(0, 1)[chunk])
    if len(chain.scores()) > 1:
        raise ValueError("tokens of a chain with transitions are not independent; score its sentences whole")
    return _single_token_chain(chain.emissions_BTY.flatten(0, 1)[chunk], chain.lengths_B)


def chunked_scores(chain: Chain, tags_BT: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Iterate over all tokens, padding included, chunk by chunk: their scores [N, Y], and one tag for each [N].

    Args:
        chain: Chain without transitions.
        tags_BT: One tag for each token.
    """
    chunks = chain.chunks() if isinstance(chain, UnscoredChain) else [slice(None)]
    return ((chunk_tokens(chain, chunk).emissions_BTY[:, 0], tags_BT.flatten()[chunk]) for chunk in chunks)


def _single_token_chain(scores_NY: Tensor, lengths_B: Tensor) -> Chain:
    return Chain.unchecked(scores_NY[:, None], lengths_B.new_ones(len(scores_NY)), None, None, None)
