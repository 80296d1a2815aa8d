"""Legal transitions: the labels that may begin a sentence, follow each other and end it, whatever their scores.

A model with independent labels (a MaxEnt decoder) gives each word its best label, and together these may be illegal: an
I without a B before it. A CRF learns the order of labels, but not without error. So the best labelling is sought
among the legal ones. The model's probabilities stay as they are.

Shapes: Y tags.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Bool, Float
    from torch import Tensor

    from raykd.structures.chain import Chain


@dataclass(frozen=True, eq=False)
class LegalTransitions:
    """Scores of 0 for legal transitions, −∞ for illegal ones; [from, to]. Build it with `from_masks`."""

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
        """Return the constraint from masks (True: legal).

        Args:
            transitions_YY: Pairs of neighbouring labels, [from, to].
            start_Y: First labels of a sentence.
            end_Y: Last labels of a sentence.
        """

        def scores(allowed: np.ndarray) -> Tensor:
            return torch.zeros(allowed.shape).masked_fill(torch.from_numpy(~allowed), -inf)

        return cls(scores(transitions_YY), scores(start_Y), scores(end_Y))

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Scores of transitions, first labels and last labels, in the order of a chain's."""
        return self.transitions_YY, self.start_Y, self.end_Y

    def restrict(self, chain: Chain) -> Chain:
        """Return the chain with score −∞ for illegal labellings; the others keep their scores.

        Args:
            chain: Chain over the same labels.
        """
        added, parts = {}, _on_device(self, chain.device, chain.dtype)
        for name, part in zip(("transitions", "start", "end"), parts, strict=True):
            scores = getattr(chain, name)
            added[name] = part if scores is None else scores + part
        return replace(chain, **added)


@lru_cache(maxsize=64)
def _on_device(legal: LegalTransitions, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Return the parts on a device; a GPU gets them once, not with every batch."""
    with torch.inference_mode(mode=False):
        return tuple(part.to(device, dtype) for part in legal.parts)
