"""Sums of exponentiated scores of which some are −∞, differentiable any number of times."""

from __future__ import annotations

import torch
from torch import Tensor

_NONE = float("-inf")


def log_sum(terms: Tensor, dim: int) -> Tensor:
    """log Σ exp of the terms, −∞ where all of them are, without a NaN in any derivative; a NaN is not hidden."""
    possible = terms != _NONE
    some = possible.any(dim, keepdim=True)
    # where nothing is possible the sum is over zeros, and the outer mask removes it from value and gradient
    kept = torch.where(possible, terms, torch.where(some, _NONE, 0.0).to(terms.dtype))
    return torch.where(some.squeeze(dim), torch.logsumexp(kept, dim), _NONE)
