"""Sentences labelled by a checkpoint as published, shown before anything is computed with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from raykd.corpora.corpus import Corpus
from raykd.forms.form_types import LabelledSentence
from raykd.layers.hf_tagger import HFTagger
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.storage.store import Storage
from raykd.structures import viterbi
from raykd.training.model_folder import build_model

READ = 32
"""Sentences that are read."""
SHOWN = 3
"""Sentences that are shown."""
_WORDS = 12


@dataclass(frozen=True)
class CheckpointExamples:
    """Sentences of dev, labelled by a checkpoint.

    Attributes:
        sentences: the first with a label, as text.
        read: number of sentences that were read.
        left_out: mean probability of spans that cut a word; None where words are labelled at their first pieces.
    """

    sentences: Sequence[str]
    read: int
    left_out: float | None


def checkpoint_examples(storage: Storage, run: Run, corpus: Corpus) -> CheckpointExamples:
    """Label the first sentences of dev with a checkpoint, in float32 and in this process.

    Args:
        storage: of the vocabulary.
        run: of the checkpoint, which is used as published.
        corpus: has the sentences, in the languages of the checkpoint.

    Raises:
        StoreError: the checkpoint is missing, changed, or of an unreadable format.
    """
    model = build_model(storage, run, dropout=0.0).eval()
    sentences = corpus.parts["dev"].slice(0, READ)["tokens"].to_pylist()
    text = open_vocabulary(storage, run.vocabulary_id).encode(sentences)
    labelled, left_out, tag_set = [], list[float](), corpus.tag_set
    with torch.inference_mode():
        for row, tokens in enumerate(sentences):
            batch = text.gather(np.array([row]))
            output = model(batch)
            labels_T = viterbi(output.distribution, output.legal)[0][0]
            if isinstance(model, HFTagger) and (probability_B := model.left_out(batch)) is not None:
                left_out.append(float(probability_B))
            labelled.append(LabelledSentence(tokens, tag_set.decode(labels_T.tolist()), corpus.unit))
    labelled.sort(key=lambda sentence: not set(sentence.tags) - tag_set.form.always_known)
    examples = [tag_set.form.format_sentence(sentence, words=_WORDS) for sentence in labelled[:SHOWN]]
    return CheckpointExamples(examples, len(sentences), sum(left_out) / len(left_out) if left_out else None)
