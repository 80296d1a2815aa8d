"""The score of the most frequent label: what a model that learnt nothing but it would reach."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from raykd.tasks.labels import Labels, LabelTask

if TYPE_CHECKING:
    import pyarrow as pa

    from raykd.corpora.tags import TagSet
    from raykd.tasks import Task


def majority_scores(task: Task, part: pa.Table, tag_set: TagSet) -> dict[str, float]:
    """Score a labelling that gives every word the most frequent label of its language.

    The first word of an utterance stands for the whole of it: it has the most frequent intent, the others the most
    frequent slot.

    Args:
        task: the task whose metric scores.
        part: a part of a corpus, with its columns `tags` and `language`.
        tag_set: the tags of the corpus.

    Returns:
        Language → score, a fraction. Empty where the task predicts no labels of words or sentences.
    """
    if not isinstance(task, LabelTask):
        return {}
    by_language: dict[str, list[list[str]]] = {}
    sentences = task.targets(part).lists(tag_set.tags)
    for language, labels in zip(part["language"].to_pylist(), sentences, strict=True):
        by_language.setdefault(language, []).append(labels)
    apart = tag_set.allowed_places() is not None
    return {language: task.metric(gold, _alike(gold, apart=apart)) for language, gold in by_language.items()}


def _alike(gold: Labels, *, apart: bool) -> Labels:
    """The most frequent label for every word; with `apart` the first words of sentences are counted by themselves."""
    firsts, others = (
        Counter(label for labels in gold for label in labels[place])
        for place in (slice(0, 1), slice(1, None))
    )
    if not apart:
        firsts = others = firsts + others
    first, other = (max(counts, key=counts.__getitem__, default="") for counts in (firsts, others))
    return [[first, *[other] * (len(labels) - 1)] if labels else [] for labels in gold]
