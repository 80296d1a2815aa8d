"""Corpora without gold labels: an annotator's own labels of held-out text stand in for those of dev and test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import torch

from raykd.corpora.corpus import Corpus
from raykd.corpora.label_counts import label_counts_by_part, languages_without_labels
from raykd.corpora.report import count_sentences
from raykd.forms import LabelForm
from raykd.layers.answered_text import EncodedAnswer
from raykd.storage.layout import PARTS
from raykd.structures import Chain, viterbi
from raykd.tasks import Task
from raykd.training.answer_reader import Answers
from raykd.training.evaluate import Reference

if TYPE_CHECKING:
    from raykd.figures.results import Group, Score

HELD_OUT = ("dev", "test")


def labels_of_config(corpus: Corpus, labels: Sequence[str], task: Task) -> Corpus:
    """Return a corpus without labels as one of the labels that an annotator gives.

    Args:
        corpus: The corpus.
        labels: Types of spans, tags, or classes of sentences: `corpus.labels`.
        task: Decides the form of the tags, and their unit.
    """
    return replace(corpus, tag_set=task.form.tag_set(labels), unit=task.unit)


def labelled_by_teacher(corpus: Corpus, usable: Mapping[str, np.ndarray], reader: Answers) -> Corpus:
    """Return the corpus of the sentences with a usable answer; dev and test have the annotator's best labels.

    All training text is unlabelled: students learn the whole distribution, and nothing in place of gold labels.

    Args:
        corpus: The corpus, without labels.
        usable: Part → True for the sentences to take [N].
        reader: Of the annotator's answers. Sentences of dev and test that it has not answered yet have no labels.
    """
    answered = corpus.select_rows(usable).parts
    parts = {
        "train": answered["train"].slice(0, 0),
        "unlabelled": pa.concat_tables([answered["train"], answered["unlabelled"]]),
        **{part: _with_best_labels(answered[part], corpus, reader) for part in HELD_OUT},
    }
    without = languages_without_labels(label_counts_by_part(parts, corpus.tag_set))
    sentences = count_sentences(parts, corpus.languages)
    report = replace(corpus.report, sentences=sentences, without_labels=without)
    return replace(corpus, parts={part: parts[part] for part in PARTS}, report=report)


def teacher_reference(corpus: Corpus, form: LabelForm, part: str, answers: Answers) -> Reference | None:
    """Return a teacher's own labels of the sentences of a part; None if it has answers about none.

    Args:
        corpus: The corpus.
        form: Form of its labels.
        part: Name of the part.
        answers: The teacher's answers.
    """
    table = _with_best_labels(corpus.parts[part], corpus, answers)
    rows = [row for row, tags in enumerate(table["tags"].to_pylist()) if tags is not None]
    if not rows:
        return None
    columns = table.take(rows).select(form.columns)
    return Reference(rows, form.targets(columns, pos=corpus.pos, labels=corpus.tag_set))


def _with_best_labels(table: pa.Table, corpus: Corpus, reader: Answers) -> pa.Table:
    answers = [reader.find_usable(words) for words in table["tokens"].to_pylist()]
    best = [None if answer is None else _best_labels(answer, corpus) for answer in answers]
    columns = {"tags": best}
    if any(answer is not None and answer.is_tree for answer in answers):
        relations = len(corpus.tag_set)
        columns = {
            "tags": [None if arcs is None else [arc % relations for arc in arcs] for arcs in best],
            "heads": [None if arcs is None else [arc // relations for arc in arcs] for arcs in best],
        }
    for name, values in columns.items():
        column = pa.array(values, table.schema.field(name).type)
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def _best_labels(answer: EncodedAnswer, corpus: Corpus) -> list[int]:
    if answer.log_probabilities_TY is None:
        return answer.paths[0].tolist()
    chain = Chain(answer.log_probabilities_TY[None], torch.tensor([answer.labels]))
    return viterbi(chain, corpus.tag_set.legal())[0][0].tolist()


class FreshAnswer(NamedTuple):
    """One answer of several, and the best labelling by the others.

    Attributes:
        row: Row of the sentence.
        answer: Its labels, int64 [T].
        reference: Best labels by the other answers, int64 [T].
    """

    row: int
    answer: np.ndarray
    reference: np.ndarray


def fresh_answers(draws: Iterable[tuple[EncodedAnswer, int] | None]) -> Iterator[FreshAnswer]:
    """Yield each answer of the sentences that have several, with the best labelling by the others.

    Args:
        draws: Of each sentence the usable answers and their number, or None. Equal ones were merged: their weights
            tell how many there were.
    """
    for row, drawn in enumerate(draws):
        answer, count = drawn or (None, 0)
        if answer is None or count < 2:
            continue
        weights_K = np.exp(np.array(answer.log_weights) - np.logaddexp.reduce(answer.log_weights))
        for place, (path, weight) in enumerate(zip(answer.paths, weights_K, strict=True)):
            others_K = weights_K.copy()
            others_K[place] -= 1 / count
            reference = answer.paths[int(others_K.argmax())]
            for _ in range(round(weight * count)):
                yield FreshAnswer(row, path, reference)


def fresh_answer_scores(
    reader: Answers, corpus: Corpus, task: Task, part: str
) -> Mapping[Group, Score] | None:
    """Return what a fresh answer of an annotator reaches against the best labelling by its others.

    It is no ceiling for a student: one that gives the commonest answer may pass it.

    Args:
        reader: Of the answers.
        corpus: The corpus.
        task: Decides the metric.
        part: Part of the corpus whose sentences are scored.

    Returns:
        The scores; None where no sentence has several answers.
    """
    table = corpus.parts[part]
    usable = [reader.find_draws(words) for words in table["tokens"].to_pylist()]
    fresh = list(fresh_answers(usable))
    if not fresh:
        return None
    rows = table.take([answer.row for answer in fresh])
    references = pa.array([answer.reference.tolist() for answer in fresh], table.schema.field("tags").type)
    rows = rows.set_column(table.schema.get_field_index("tags"), "tags", references)
    gold = task.form.targets(rows.select(task.form.columns), pos=corpus.pos, labels=corpus.tag_set)
    return task.score(
        gold, [answer.answer for answer in fresh], tag_set=corpus.tag_set,
        languages=rows["language"].to_pylist(), targets=corpus.targets,
    )  # fmt: skip
