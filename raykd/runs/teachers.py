"""Trained teachers in the store: load one and let it speak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from raykd.corpora.batching import plan_batches
from raykd.layers import Tagger
from raykd.runs.execute import MODEL, load_model, model_config
from raykd.runs.run import Run
from raykd.runs.vocabularies import StoredVocabulary, open_vocabulary
from raykd.signals import CHAIN
from raykd.storage import Storage
from raykd.structures import Chain, Distribution, token_marginals, viterbi


class LoadedTeacher:
    """A trained teacher that tells, sentence by sentence, what it `offers`."""

    def __init__(
        self, model: Tagger, vocabulary: StoredVocabulary, device: torch.device, offers: Sequence[str] = CHAIN
    ):
        self._model, self._vocabulary, self._device = model.to(device).eval(), vocabulary, device
        self._offers = tuple(offers)
        self._transitions: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def emit(self, sentences: Sequence[Sequence[str]], token_budget: int) -> list[np.ndarray]:
        """Float32 [T, Y] of each sentence: emissions of a chain, log token marginals of any other teacher.

        Computed in batches of similar length of `token_budget` pieces.
        """
        scores: dict[int, np.ndarray] = {}
        for rows, lengths_B, said in self._read(sentences, token_budget):
            scores_BTY = self._scores(said).float().cpu().numpy()
            scores |= {row: scores_BTY[i, : lengths_B[i]] for i, row in enumerate(rows)}
        return [scores[row] for row in range(len(sentences))]

    def decode(self, sentences: Sequence[Sequence[str]], token_budget: int) -> list[tuple[np.ndarray, float]]:
        """The best path [T] of each sentence and its score."""
        best: dict[int, tuple[np.ndarray, float]] = {}
        for rows, lengths_B, said in self._read(sentences, token_budget):
            paths_BT, scores_B = (part.cpu().numpy() for part in viterbi(said))
            best |= {row: (paths_BT[i, : lengths_B[i]], float(scores_B[i])) for i, row in enumerate(rows)}
        return [best[row] for row in range(len(sentences))]

    def _read(
        self, sentences: Sequence[Sequence[str]], token_budget: int
    ) -> Iterator[tuple[list[int], np.ndarray, Distribution]]:
        text = self._vocabulary.encode(sentences)
        plan = plan_batches(text.piece_lengths, batch_tokens=token_budget, seed=0, epoch=0, shuffle=False)
        with torch.inference_mode():
            for rows in plan:
                said = self._model(text.gather(rows).to(self._device))
                yield rows.tolist(), text.lengths[rows], said

    def _scores(self, said: Distribution) -> Tensor:
        if "emissions" not in self._offers:
            return token_marginals(said).log()
        assert isinstance(said, Chain)
        self._remember(said)
        return said.emissions_BTY

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
    vocabulary = open_vocabulary(storage, run.vocabulary_id)
    return LoadedTeacher(load_model(storage, run), vocabulary, device, model_config(run).offers)
