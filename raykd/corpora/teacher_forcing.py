"""Teacher forcing: a text whose decoder is given the steps of the gold trees in training.

Shapes: N sentences, B of a batch, S steps of the longest tree of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from raykd.corpora.encoded_text import EncodedText, TokenBatch
    from raykd.forms.steps import StepColumn


@dataclass(frozen=True)
class TeacherForcedText:
    """An encoded text with the steps that a decoder is given in training (teacher forcing).

    The target of a sentence is its steps, so `lengths` counts steps.
    """

    text: EncodedText
    steps: StepColumn

    def __len__(self) -> int:
        return len(self.text)

    @property
    def features(self) -> None:
        """None: frozen encoders are not read."""

    @property
    def piece_lengths(self) -> np.ndarray:
        """Pieces of each sentence, special tokens included, int64 [N]."""
        return self.text.piece_lengths

    @property
    def lengths(self) -> np.ndarray:
        """Steps of each sentence, int64 [N]."""
        return self.steps.lengths

    def gather(self, indices: np.ndarray) -> TokenBatch:
        """Return the sentences at `indices`, with steps."""
        steps_BS, lengths_B = self.steps.steps.pad(np.asarray(indices, np.int64))
        return replace(
            self.text.gather(indices),
            steps_BS=torch.from_numpy(steps_BS),
            step_lengths_B=torch.from_numpy(lengths_B),
        )
