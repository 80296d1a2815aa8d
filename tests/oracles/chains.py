"""The enumeration oracle: every labelling of every sentence, scored one by one. Small T and Y only.

Shapes: B batch, T time, Y tags. Nothing here calls `raykd`: chains enter through their attributes.
Use it to compare a result with the definition itself:

    law = enumerate_chain(chain)[b]      # the distribution over labellings of sentence b
    law.paths, law.scores, law.log_z, law.probabilities
    law.expectation(lambda path: ...)    # Σ_y p(y) f(y), f returning a tensor
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Law:
    """The distribution of one sentence's labellings, in float64, differentiable in the chain's scores."""

    paths: list[tuple[int, ...]]
    scores: Tensor
    tags: int

    @property
    def log_z(self) -> Tensor:
        return torch.logsumexp(self.scores, 0)

    @property
    def probabilities(self) -> Tensor:
        if bool((self.scores == float("-inf")).all()):
            return torch.zeros_like(self.scores)
        return torch.softmax(self.scores, 0)

    def expectation(self, statistic: Callable[[tuple[int, ...]], Tensor]) -> Tensor:
        values = torch.stack([statistic(path) for path in self.paths])
        return torch.tensordot(self.probabilities, values, 1)

    def token_marginals(self) -> Tensor:
        return self.expectation(lambda path: one_hot(path, self.tags))

    def pairwise_marginals(self) -> Tensor:
        return self.expectation(lambda path: pair_counts(path, self.tags))

    def transitions(self) -> Tensor:
        return self.pairwise_marginals().sum(0)

    def sorted_scores(self) -> Tensor:
        return self.scores.detach().sort(descending=True).values

    def entropy(self) -> Tensor:
        return self.cross_entropy(self)

    def cross_entropy(self, other: "Law") -> Tensor:
        possible = self.probabilities > 0
        return -(self.probabilities[possible] * (other.scores - other.log_z)[possible]).sum()


def one_hot(path: tuple[int, ...], tags: int) -> Tensor:
    """[n, Y]: one where the path has its tag."""
    return torch.eye(tags, dtype=torch.float64)[list(path)]


def pair_counts(path: tuple[int, ...], tags: int) -> Tensor:
    """[n, Y, Y]: one at [t, y_{t-1}, y_t]; zero at t = 0."""
    counts = torch.zeros(len(path), tags, tags, dtype=torch.float64)
    for t in range(1, len(path)):
        counts[t, path[t - 1], path[t]] = 1
    return counts


def enumerate_chain(chain) -> list[Law]:
    """Distributions of the sentences; a chain has `emissions_BTY`, `lengths_B`, `transitions`, `start` and `end`."""
    return [_law(chain, row) for row in range(chain.emissions_BTY.shape[0])]


def _law(chain, row: int) -> Law:
    emissions = chain.emissions_BTY[row].double()
    tags, length = emissions.shape[1], int(chain.lengths_B[row])
    transitions = _own(chain.transitions, row, 2)
    start, end = _own(chain.start, row, 1), _own(chain.end, row, 1)
    paths = list(itertools.product(range(tags), repeat=length))
    scores = []
    for path in paths:
        parts = [emissions[t, tag] for t, tag in enumerate(path)]
        if transitions is not None:
            parts += [transitions[i, j] for i, j in itertools.pairwise(path)]
        if start is not None:
            parts.append(start[path[0]])
        if end is not None:
            parts.append(end[path[-1]])
        scores.append(torch.stack(parts).sum())
    return Law(paths, torch.stack(scores), tags)


def _own(value: Tensor | None, row: int, shared_dims: int) -> Tensor | None:
    if value is None:
        return None
    return value.double() if value.dim() == shared_dims else value[row].double()
