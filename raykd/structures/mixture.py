"""Several models' distributions over the same labellings as one: their geometric or arithmetic mean.

The geometric mean, the log-linear pool p(y) ∝ Π_m p_m(y)^(1/M), has the mean of the models' scores: of chains it is a
chain again, of spans spans. The arithmetic mean p(y) = (1/M) Σ_m p_m(y), a mixture, is neither: its token marginals
are the models' mean, but its best labelling and its entropy need the sum over all labellings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from raykd.structures.chain import Chain
from raykd.structures.labelled_spans import Spans


@dataclass(frozen=True, eq=False)
class Mixture:
    """Arithmetic mean of several distributions, all chains or all spans, over the same sentences.

    Attributes:
        members: The distributions.

    Raises:
        ValueError: The members differ in kind, shape or sentences.
    """

    members: tuple[Chain, ...] | tuple[Spans, ...]

    def __post_init__(self) -> None:
        _check(self.members)

    @property
    def lengths_B(self) -> Tensor:
        """Words per sentence."""
        return self.members[0].lengths_B


def log_linear_pool(members: Sequence[Chain] | Sequence[Spans]) -> Chain | Spans:
    """Return the normalised geometric mean: the mean of the members' scores.

    A labelling forbidden by one member is forbidden.

    Args:
        members: Distributions, all chains or all spans, over the same sentences.

    Raises:
        ValueError: The members differ in kind, shape or sentences.
    """
    _check(members)
    first = members[0]
    if isinstance(first, Spans):
        return replace(first, scores_BTTL=_mean([member.scores_BTTL for member in members]))  # type: ignore[union-attr]
    parts = {
        name: _mean([getattr(member, name) for member in members])
        for name in ("emissions_BTY", "transitions", "start", "end")
        if getattr(first, name) is not None
    }
    return replace(first, **parts)


def _mean(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(parts)).mean(0)


def _check(members: Sequence[Chain] | Sequence[Spans]) -> None:
    forms = {_form(member) for member in members}
    if len(forms) != 1:
        kinds = "; ".join(" ".join(map(str, form)) for form in sorted(forms, key=str)) or "none"
        raise ValueError(f"members must be alike, with the same parts in the same shapes; got {kinds}")
    if any(not torch.equal(member.lengths_B, members[0].lengths_B) for member in members):
        raise ValueError("members must be over the same sentences; their lengths differ")


def _form(member: Chain | Spans) -> tuple[object, ...]:
    if isinstance(member, Spans):
        return ("spans", tuple(member.scores_BTTL.shape), member.tags)
    parts = (member.emissions_BTY, member.transitions, member.start, member.end)
    return ("chain", *(None if part is None else tuple(part.shape) for part in parts))
