"""A batch of linear chains.

Shapes: B batch, T time (tokens, padded), Y tags.
A chain scores a labelling y of a sentence of length n by

    score(y) = start[y_0] + Σ_t emissions[t, y_t] + Σ_{t≥1} transitions[y_{t-1}, y_t] + end[y_{n-1}]

`transitions[from, to]` is oriented here, once. A score of −∞ forbids every labelling that uses it. Transition, start or
end scores that are None count as 0: without transitions the tags are independent (a MaxEnt decoder).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from raykd.structures.padding import PaddedBatch, check_form, check_lengths

if TYPE_CHECKING:
    from collections.abc import Callable

_FIELDS = ("emissions_BTY", "lengths_B", "transitions", "start", "end")


@dataclass(frozen=True, eq=False)
class Chain(PaddedBatch):
    """Scores of a batch of ragged sentences; checked once, here.

    All scores get one type, which results have too: float64 if one of them is float64, else float32.

    Attributes:
        emissions_BTY: Floating point [B, T, Y]; values beyond a sentence's length are never read.
        lengths_B: Integers [B] in 1..T.
        transitions: [Y, Y] for all sentences, [B, Y, Y] with one matrix per sentence, or None; [from, to].
        start: [Y], [B, Y] or None.
        end: [Y], [B, Y] or None.

    Raises:
        ValueError: Shapes, dtypes, devices or lengths do not fit together.
    """

    # plain Tensor, not an annotated shape: __post_init__ checks the shapes, with a better message
    emissions_BTY: Tensor
    lengths_B: Tensor
    transitions: Tensor | None = None
    start: Tensor | None = None
    end: Tensor | None = None
    rows_field: ClassVar[str] = "emissions_BTY"

    def __post_init__(self) -> None:
        _check(self)
        self.widen("emissions_BTY", "transitions", "start", "end")

    @property
    def tags(self) -> int:
        """Number of tags."""
        return self.emissions_BTY.shape[2]

    def scores(self) -> tuple[Tensor, ...]:
        """Return the present score tensors (not None): emissions, transitions, start and end, in this order."""
        parts = (self.emissions_BTY, self.transitions, self.start, self.end)
        return tuple(part for part in parts if part is not None)

    @classmethod
    def unchecked(cls, *parts: Tensor | None) -> Chain:
        """Return a chain of parts of a checked chain, without a second check.

        Args:
            *parts: Values of all fields, in their order.
        """
        chain = object.__new__(cls)
        chain.__dict__.update(zip(_FIELDS, parts, strict=True))
        return chain

    def parts(self) -> tuple[Tensor | None, ...]:
        """Return all fields in order, as arguments of an autograd function."""
        return (self.emissions_BTY, self.lengths_B, self.transitions, self.start, self.end)

    def map(self, change: Callable[[Tensor], Tensor]) -> Chain:
        """Return the chain with `change` applied to all score tensors; checked like any chain.

        Args:
            change: Function of one tensor, which keeps its shape.
        """
        return Chain(*self._map_unchecked(change).parts())  # type: ignore[arg-type]

    def _map_unchecked(self, change: Callable[[Tensor], Tensor]) -> Chain:
        """Apply `change` as `map` does, unchecked: for changes that keep a valid chain valid."""
        rest = (self.transitions, self.start, self.end)
        changed = (None if part is None else change(part) for part in rest)
        return Chain.unchecked(change(self.emissions_BTY), self.lengths_B, *changed)

    def detach(self) -> Chain:
        """Return the same chain without gradients."""
        return self._map_unchecked(Tensor.detach)

    def double(self) -> Chain:
        """Return the same chain in float64."""
        return self._map_unchecked(Tensor.double)

    def to(self, device: torch.device | str) -> Chain:
        """Return the same chain on a device."""
        moved = (None if part is None else part.to(device) for part in self.parts())
        return Chain.unchecked(*moved)

    def select(self, rows: Tensor) -> Chain:
        """Return the chain of some sentences of the batch; shared parts stay shared.

        Args:
            rows: Indices or a mask of sentences.
        """
        rest = ((self.transitions, 2), (self.start, 1), (self.end, 1))
        selected = (
            part if part is None or part.dim() == shared_dims else part[rows] for part, shared_dims in rest
        )
        return Chain.unchecked(self.emissions_BTY[rows], self.lengths_B[rows], *selected)

    def filled(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return transitions [1|B, Y, Y], start [1|B, Y] and end [1|B, Y], zeros in place of None.

        The first dimension is 1 if all sentences share the scores.
        """
        zero_Y = self.emissions_BTY.new_zeros(self.tags)
        zero_YY = self.emissions_BTY.new_zeros(self.tags, self.tags)
        transitions = zero_YY if self.transitions is None else self.transitions
        start, end = (zero_Y if v is None else v for v in (self.start, self.end))
        return (
            transitions[None] if transitions.dim() == 2 else transitions,
            start[None] if start.dim() == 1 else start,
            end[None] if end.dim() == 1 else end,
        )


def _check(chain: Chain) -> None:
    emissions = chain.emissions_BTY
    check_form(emissions, "emissions", "batch, time, tag", fits=emissions.dim() == 3)
    B, T, Y = emissions.shape
    if T < 1 or Y < 1:
        raise ValueError(f"emissions need at least one token and one tag; got {list(emissions.shape)}")
    allowed = {"transitions": ((Y, Y), (B, Y, Y)), "start": ((Y,), (B, Y)), "end": ((Y,), (B, Y))}
    for name, shapes in allowed.items():
        value = getattr(chain, name)
        if value is None:
            continue
        if tuple(value.shape) not in shapes or not value.is_floating_point():
            raise ValueError(
                f"{name} must be floating point {list(shapes[0])} or {list(shapes[1])} with emissions "
                f"{list(emissions.shape)}; got {value.dtype} {list(value.shape)}"
            )
        if value.device != emissions.device:
            raise ValueError(
                f"{name} is on {value.device}, emissions on {emissions.device}; move one of them"
            )
    check_lengths(chain.lengths_B, emissions, "emissions")
