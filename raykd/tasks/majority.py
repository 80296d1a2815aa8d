"""The score of the most frequent label: the lower bound for any model that learnt more than label frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from raykd.forms import TagSet
    from raykd.tasks.task import Task


def majority_scores(task: Task, part: pa.Table, tag_set: TagSet) -> dict[str, float]:
    """Score the labelling by the most frequent label of a language.

    The first word of an utterance stands for all of it: it has the most frequent intent, the others the most frequent
    slot. All other words have the most frequent label of their language.

    Args:
        task: the task whose metric is used.
        part: a part of a corpus, with its columns `tags` and `language`.
        tag_set: the tags of the corpus.

    Returns:
        Language → score, a fraction. Empty where the task predicts no labels of words or sentences.
    """
    if task.form.most_frequent(()) is None:
        return {}
    by_language: dict[str, list[list[str]]] = {}
    for language, numbers in zip(part["language"].to_pylist(), part["tags"].to_pylist(), strict=True):
        by_language.setdefault(language, []).append(tag_set.decode(numbers or ()))
    guesses = {language: task.form.most_frequent(gold) or () for language, gold in by_language.items()}
    return {language: task.metric(gold, guesses[language]) for language, gold in by_language.items()}
