"""Evaluation: decode a part of the corpus and score it by the task's metric, for each language."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist

from raykd.corpora.batching import plan_batches
from raykd.corpora.encoded_text import EncodedText
from raykd.corpora.masking import MaskedText
from raykd.corpora.teacher_forcing import TeacherForcedText
from raykd.figures.results import Group, Score
from raykd.figures.table import AGREEMENT
from raykd.forms import TagSet
from raykd.forms.targets import TargetColumn
from raykd.layers.hf_tagger import HFTagger
from raykd.layers.model import Model, Output
from raykd.progress import with_progress
from raykd.tasks import Task
from raykd.training.data import Part
from raykd.training.device import piece_budget
from raykd.training.worker import Worker


@dataclass(frozen=True)
class Reference:
    """Labels of a teacher for some sentences of a part.

    Attributes:
        rows: the sentences.
        labels: their labels.
    """

    rows: Sequence[int]
    labels: TargetColumn


def evaluation_batches(lengths: np.ndarray, device: torch.device, *, share: float = 1.0) -> list[np.ndarray]:
    """Return the batches for labelling sentences, as arrays of positions.

    Args:
        lengths: of the sentences, in pieces [N].
        device: of the model.
        share: the share of the device that belongs to the process.
    """
    budget = piece_budget(device, share=share)
    return plan_batches(lengths, batch_tokens=budget, seed=0, epoch=0, shuffle=False)


Labelling = TypeVar("Labelling")
Decode = Callable[[Output, np.ndarray], Sequence[Labelling]]
"""Maps an output, and the rows of its sentences in the text, to the best labelling or tree of each sentence."""


def predict(
    model: Model,
    text: EncodedText | MaskedText | TeacherForcedText,
    decode: Decode[Labelling],
    *,
    worker: Worker,
) -> list[Labelling]:
    """Return the best labellings of the sentences, in order; all workers decode together, and each gets the whole list.

    Scores are computed in float32, as in the exported file, whatever precision teachers use elsewhere.

    Args:
        model: set to evaluation mode.
        text: the sentences.
        decode: finds the best labellings of a batch.
        worker: of this process.
    """
    model.eval()
    plan = evaluation_batches(text.piece_lengths, worker.device, share=worker.share)
    labellings: list[tuple[int, Labelling]] = []
    with torch.inference_mode(), _in_float32(model):
        for rows in with_progress(plan[worker.rank :: worker.world]):
            output = model(text.gather(rows).to(worker.device))
            labellings += zip(map(int, rows), decode(output, rows), strict=True)
    if worker.grouped:
        gathered: list[Any] = [None] * worker.world
        dist.all_gather_object(gathered, labellings)
        labellings = [item for items in gathered for item in items]
    return [labelling for _, labelling in sorted(labellings, key=lambda item: item[0])]


@contextmanager
def _in_float32(model: Model) -> Iterator[None]:
    precisions: dict[HFTagger, Any] = {
        tagger: tagger.precision for tagger in model.modules() if isinstance(tagger, HFTagger)
    }
    for tagger in precisions:
        tagger.precision = "float32"
    try:
        yield
    finally:
        for tagger, precision in precisions.items():
            tagger.precision = precision


def score_part(
    model: Model,
    part: Part,
    task: Task,
    tag_set: TagSet,
    *,
    worker: Worker,
    targets: Collection[str] = (),
    reference: Reference | None = None,
) -> Mapping[Group, Score]:
    """Return the scores of a model on a part of the corpus: over source languages and, if any, over target languages.

    Args:
        model: the trained model.
        part: encoded for the model.
        task: decides the metric.
        tag_set: of the corpus.
        worker: of this process.
        targets: the target languages; empty if the corpus has none.
        reference: labels of the teacher, with which the predictions are compared too.
    """
    predicted = predict(model, part.text, partial(part.form.best_labellings, part.labels), worker=worker)
    languages = list(part.languages)
    groups = task.score(part.labels, predicted, tag_set=tag_set, languages=languages, targets=targets)
    if reference is None:
        return groups
    agreement = task.without_gold.score(
        reference.labels, [predicted[row] for row in reference.rows], tag_set=tag_set,
        languages=[languages[row] for row in reference.rows], targets=targets,
    )  # fmt: skip
    return {
        group: replace(score, beside={**score.beside, AGREEMENT: agreement[group]})
        if group in agreement
        else score
        for group, score in groups.items()
    }
