"""Trained teachers in the store: load one and let it speak."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from raykd.corpora.batching import plan_batches
from raykd.corpora.encoding import encode_text
from raykd.layers import Tagger
from raykd.runs.execute import MODEL, load_model
from raykd.runs.run import Run
from raykd.runs.vocabularies import StoredVocabulary, open_vocabulary
from raykd.storage import Storage
from raykd.structures import Chain


class LoadedTeacher:
    """A trained teacher that emits scores for sentences."""

    def __init__(self, model: Tagger, vocabulary: StoredVocabulary, device: torch.device):
        self._model, self._vocabulary, self._device = model.to(device).eval(), vocabulary, device
        self._transitions: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def emit(self, sentences: Sequence[Sequence[str]], token_budget: int) -> list[np.ndarray]:
        """Emissions float32 [T, Y] of each sentence, computed in batches of similar length of `token_budget` pieces."""
        text = encode_text(sentences, self._vocabulary.pieces, self._vocabulary.characters)
        plan = plan_batches(text.piece_lengths, batch_tokens=token_budget, seed=0, epoch=0, shuffle=False)
        found: dict[int, np.ndarray] = {}
        with torch.inference_mode():
            for rows in plan:
                chain = self._model(text.gather(rows).to(self._device))
                emissions_BTY = chain.emissions_BTY.float().cpu().numpy()
                found |= {int(row): emissions_BTY[i, : text.lengths[row]] for i, row in enumerate(rows)}
                self._remember(chain)
        return [found[row] for row in range(len(sentences))]

    @property
    def transitions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Transitions [Y, Y] (from, to), start [Y] and end [Y], float32; zeros where the model has none."""
        if self._transitions is None:
            self.emit([["."]], 1)
        assert self._transitions is not None
        return self._transitions

    def _remember(self, chain: Chain) -> None:
        tags = chain.tags
        self._transitions = (
            _array(chain.transitions, (tags, tags)), _array(chain.start, (tags,)), _array(chain.end, (tags,))
        )  # fmt: skip


def _array(scores: Tensor | None, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape, np.float32) if scores is None else scores.detach().float().cpu().numpy()


def load_teacher(storage: Storage, teacher_id: str) -> LoadedTeacher:
    """The stored teacher `teacher_id`, on the GPU if this process has one."""
    run = Run.from_plain(storage.read_json(f"teachers/{teacher_id}/{MODEL}"))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return LoadedTeacher(load_model(storage, run), open_vocabulary(storage, run.vocabulary_id), device)
