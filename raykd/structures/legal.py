"""Which labels may begin a sentence, follow each other and end it: what a labelling must keep to, whatever its score.

A model whose labels are independent of each other (a MaxEnt decoder) gives each word its best label, and together these
may be no labelling at all: an I that nothing began. A CRF learns what may follow what, but not without fault. So the
best labelling is sought among the legal ones. The model's probabilities stay what they are.

Shapes: Y tags.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Bool, Float
    from torch import Tensor

    from raykd.structures.chain import Chain


@dataclass(frozen=True, eq=False)
class LegalTransitions:
    """Scores of 0 for what is legal, −∞ for what is not; `transitions_YY[from, to]`. Build it with `of`."""

    transitions_YY: Float[Tensor, "tag tag"]
    start_Y: Float[Tensor, " tag"]
    end_Y: Float[Tensor, " tag"]

    @classmethod
    def from_masks(
        cls,
        transitions_YY: Bool[np.ndarray, "tag tag"],
        start_Y: Bool[np.ndarray, " tag"],
        end_Y: Bool[np.ndarray, " tag"],
    ) -> LegalTransitions:
        """The constraint that allows what is True."""

        def scores(allowed: np.ndarray) -> Tensor:
            return torch.zeros(allowed.shape).masked_fill(torch.from_numpy(~allowed), -torch.inf)

        return cls(scores(transitions_YY), scores(start_Y), scores(end_Y))

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """The scores of transitions, of what begins a sentence, and of what ends it, in the order of a chain's."""
        return self.transitions_YY, self.start_Y, self.end_Y

    def restrict(self, chain: Chain) -> Chain:
        """The chain whose illegal labellings score −∞; the others keep their scores."""
        added, parts = {}, _on_device(self, chain.device, chain.dtype)
        for name, part in zip(("transitions", "start", "end"), parts, strict=True):
            own = getattr(chain, name)
            added[name] = part if own is None else own + part
        return replace(chain, **added)


@lru_cache(maxsize=64)
def _on_device(legal: LegalTransitions, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Its parts, which are sent to a GPU once, not with every batch."""
    with torch.inference_mode(mode=False):
        return tuple(part.to(device, dtype) for part in legal.parts)
