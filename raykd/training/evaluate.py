"""Decode a part of the corpus and score it by the task's metric, per language."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from raykd.forms import TagSet
from raykd.layers.hf_tagger import HFTagger
from raykd.layers.model import Model, Output
from raykd.progress import with_progress
from raykd.tasks import Task
from raykd.training.data import Part
from raykd.training.device import piece_budget
from raykd.training.worker import Worker


def evaluation_batches(lengths: np.ndarray, device: torch.device, *, share: float = 1.0) -> list[np.ndarray]:
    """The batches in which sentences of these lengths, in pieces, are labelled on this `share` of a `device`."""
    most = piece_budget(device, share=share)
    return plan_batches(lengths, batch_tokens=most, seed=0, epoch=0, shuffle=False)


Labelling = TypeVar("Labelling")
Decode = Callable[[Output, np.ndarray], Sequence[Labelling]]
"""From an output and the rows of its sentences in the text to the best labelling, or tree, of each."""


def predict(
    model: Model,
    text: EncodedText | MaskedText | TeacherForcedText,
    decode: Decode[Labelling],
    *,
    worker: Worker,
) -> list[Labelling]:
    """The best labels of every sentence, decoded by all workers together; every worker gets the whole list.

    Scores are computed in float32, as the exported file computes them, whatever precision teachers are read in.
    """
    model.eval()
    plan = evaluation_batches(text.piece_lengths, worker.device, share=worker.share)
    found: list[tuple[int, Labelling]] = []
    with torch.inference_mode(), _in_float32(model):
        for rows in with_progress(plan[worker.rank :: worker.world]):
            output = model(text.gather(rows).to(worker.device))
            found += zip(map(int, rows), decode(output, rows), strict=True)
    if worker.grouped:
        gathered: list[Any] = [None] * worker.world
        dist.all_gather_object(gathered, found)
        found = [item for items in gathered for item in items]
    return [path for _, path in sorted(found, key=lambda item: item[0])]


@contextmanager
def _in_float32(model: Model) -> Iterator[None]:
    reading: dict[HFTagger, Any] = {
        own: own.precision for own in model.modules() if isinstance(own, HFTagger)
    }
    for own in reading:
        own.precision = "float32"
    try:
        yield
    finally:
        for own, precision in reading.items():
            own.precision = precision


def score_part(
    model: Model, part: Part, task: Task, tag_set: TagSet, *, worker: Worker, targets: Collection[str] = ()
) -> Mapping[Group, Score]:
    """The scores of `model` on `part`: over source languages and, where the corpus has any, over the `targets`."""
    predicted = predict(model, part.text, partial(part.form.best_labellings, part.labels), worker=worker)
    return task.score(
        part.labels, predicted, tag_set=tag_set, languages=list(part.languages), targets=targets
    )
