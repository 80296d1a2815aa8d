"""Loading trained teachers from the store, for the precompute's actors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from raykd.corpora.batching import plan_batches
from raykd.corpora.encoded_text import TokenBatch
from raykd.layers.model import Output
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.storage.layout import MODEL
from raykd.storage.store import Storage
from raykd.training.data import cached_corpus
from raykd.training.model_folder import load_model
from raykd.training.stored_features import FeatureReader, encoder_ids
from raykd.training.teacher_answers import answer_reader

CPU = torch.device("cpu")


class LoadedTeacher:
    """A trained teacher in memory."""

    def __init__(self, storage: Storage, run: Run, device: torch.device):
        self._features, self._device = FeatureReader(storage, encoder_ids(run)), device
        self._model = load_model(storage, run).to(device).eval()
        self._vocabulary = open_vocabulary(storage, run.vocabulary_id)
        tag_set = cached_corpus(storage.uri, run.corpus_id).tag_set
        self._answers = answer_reader(storage, run, tag_set)

    def outputs(
        self, sentences: Sequence[Sequence[str]], token_budget: int, *, layers: Sequence[int] = ()
    ) -> Iterator[tuple[list[int], TokenBatch, Output]]:
        """Yield the outputs for all sentences, in batches of similar length.

        Args:
            sentences: lists of words.
            token_budget: pieces of a batch, padding included.
            layers: layers whose hidden states are needed.

        Yields:
            The positions of the batch's sentences, the batch, and the model's output.
        """
        text: Any
        if self._answers is not None:
            text = self._answers.encode(sentences)
        else:
            text = self._vocabulary.encode(sentences, self._features.find(sentences))
        plan = plan_batches(text.piece_lengths, batch_tokens=token_budget, seed=0, epoch=0, shuffle=False)
        with torch.inference_mode():
            for rows in plan:
                batch = text.gather(rows).to(self._device)
                yield rows.tolist(), batch, self._model(batch, layers=layers)


def load_teacher(storage: Storage, teacher_id: str, device: torch.device = CPU) -> LoadedTeacher:
    """Load the stored teacher `teacher_id` on a device."""
    run = storage.read_json(f"teachers/{teacher_id}/{MODEL}", Run.from_plain)
    return LoadedTeacher(storage, run, device)
