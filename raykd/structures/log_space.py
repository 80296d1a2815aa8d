"""Sums of exponentiated scores, some of them −∞, differentiable any number of times."""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor


def log_sum(terms: Tensor, dim: int) -> Tensor:
    """Return log Σ exp of the terms, −∞ if all are −∞, without a NaN in any derivative; a NaN is not hidden.

    Args:
        terms: Scores.
        dim: Dimension that is summed, and that the result lacks.
    """
    possible = terms != -inf
    any_possible = possible.any(dim, keepdim=True)
    # where nothing is possible the sum is over zeros, and the outer mask removes it from value and gradient
    finite_terms = torch.where(possible, terms, torch.where(any_possible, -inf, 0.0).to(terms.dtype))
    return torch.where(any_possible.squeeze(dim), torch.logsumexp(finite_terms, dim), -inf)
