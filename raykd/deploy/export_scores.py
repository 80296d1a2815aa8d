"""Evaluation of an exported model on labelled files: the task's score, scores of labels and languages, and confusions.

The score is computed as the test score of a run: the task's metric of each language, and the mean over all languages,
because an export does not know which languages had no labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from raykd.corpora.labelled_files import LabelledText
from raykd.deploy.model_reliability import MOST_SENTENCES, Calibrated, Predictions
from raykd.errors import CorpusError, StoreError
from raykd.figures.results import Score
from raykd.metrics import score_metrics
from raykd.metrics.bioes import OUTSIDE
from raykd.metrics.by_label import ScoresByLabel
from raykd.metrics.confusions import Confusion
from raykd.serving.labeller import (
    CARD,
    READ_AHEAD,
    SEPARATOR,
    Labeller,
    LabellerError,
    load,
    model_file,
)
from raykd.tasks import TASKS, Task


@dataclass(frozen=True)
class Evaluation:
    """Scores of one export on some text; the intent of an utterance counts as one more span.

    Attributes:
        address: Folder of the export.
        run_ids: Runs of its models.
        score: Score of the task.
        by_language: Language → scores of its labels.
        overall: Scores of labels over the sentences of all languages together.
        confusions: Confusions; their examples count the sentences of the text.
        unknown_labels: Label of the text that the model cannot predict → its occurrences.
        pos_origin: Source of the parts of speech that a parser read, in words; empty if it read none.
        reliability: Reliability of the probabilities of labels and of spans, on some sentences; empty for a parser.
    """

    address: str
    run_ids: tuple[str, ...]
    score: Score
    by_language: Mapping[str, ScoresByLabel]
    overall: ScoresByLabel
    confusions: tuple[Confusion, ...]
    unknown_labels: Mapping[str, int]
    pos_origin: str = ""
    reliability: Mapping[str, Calibrated] = field(default_factory=dict)


class LoadedExport:
    """The models in a folder written by `raykd export`: one, or one for each language or group of languages.

    Args:
        folder: Folder of the export.
        int8: True runs the file with 8-bit weights.
        threads: CPU threads of each model.

    Raises:
        StoreError: The folder is no export, or holds models of several tasks.
    """

    def __init__(self, folder: Path, *, int8: bool = False, threads: int = 1):
        self.folder = folder
        file = model_file(int8=int8)
        is_single = (folder / CARD).is_file()
        folders = (
            {"": folder}
            if is_single
            else {card.parent.name: card.parent for card in sorted(folder.glob(f"*/{CARD}"))}
        )
        try:
            # A folder without models is loaded itself: the error then states what it lacks.
            self._models = {
                name: load(place, file=file, threads=threads)
                for name, place in (folders or {"": folder}).items()
            }
        except LabellerError as error:
            raise StoreError(str(folder), str(error), "see docs/EXPORT.md") from None
        tasks = {model.card["task"] for model in self._models.values()}
        if len(tasks) > 1:
            raise StoreError(
                str(folder), f"holds models of {' and '.join(sorted(tasks))}", "name one of its folders"
            )
        self.task: Task = TASKS[tasks.pop()]
        self.run_ids = tuple(str(model.card["run"]) for model in self._models.values())

    def model(self, language: str) -> Labeller:
        """Return the model of a language; StoreError if there is none."""
        names = [name for name in self._models if name == "" or language in name.split("+")]
        if not names:
            languages = ", ".join(sorted(self._models))
            hint = f"name the language of each file: {sorted(self._models)[0]}=FILE"
            raise StoreError(str(self.folder), f"has no model of {language!r}, only of {languages}", hint)
        return self._models[names[0]]

    def predict(
        self,
        text: LabelledText,
        pos: Sequence[Sequence[str] | None],
        *,
        batch: int = 32,
        on_progress: Callable[[int], None] = lambda finished: None,
    ) -> list[Any]:
        """Return the predictions for all sentences, in the form compared by the task's metric.

        Args:
            text: The sentences.
            pos: Parts of speech of each sentence, for a parser that reads them; else empty.
            batch: Sentences labelled at once.
            on_progress: Called with the number of labelled sentences so far.

        Raises:
            CorpusError: A model reads parts of speech, and some are missing or unknown to it.
        """

        def label_rows(model: Labeller, rows: Sequence[int]) -> Sequence[Any]:
            sentence_pos = [pos[row] for row in rows] if pos else None
            for row in rows if sentence_pos else ():
                _check_pos(model, text, row, pos[row])
            sentences = [text.sentences[row] for row in rows]
            return self.task.form.run_exported(model, sentences, sentence_pos, batch=batch)

        return self._by_language(text, label_rows, READ_AHEAD * batch, on_progress)

    def _by_language(
        self,
        text: LabelledText,
        call: Callable[[Labeller, Sequence[int]], Sequence[list[Any]]],
        at_once: int,
        on_progress: Callable[[int], None],
    ) -> list[list[Any]]:
        """Return what `call` predicts for blocks of sentences of one language, in the order of the text."""
        predictions: list[list[Any]] = [[] for _ in text.sentences]
        finished = 0
        for language in dict.fromkeys(text.languages):
            model = self.model(language)
            rows = [row for row, name in enumerate(text.languages) if name == language]
            for first in range(0, len(rows), at_once):
                some = rows[first : first + at_once]
                for row, prediction in zip(some, call(model, some), strict=True):
                    predictions[row] = prediction
                finished += len(some)
                on_progress(finished)
        return predictions

    def check_tagger(self, tagger: LoadedExport) -> None:
        """Refuse a tagger without the parts of speech that these parsers read.

        Args:
            tagger: Export of the tagger.

        Raises:
            StoreError: A model of `tagger` does not give them.
        """
        for model in self._models.values():
            for tagger_model in tagger._models.values():
                try:
                    model.check_tagger(tagger_model)
                except LabellerError as error:
                    raise StoreError(str(tagger.folder), str(error), "see docs/EXPORT.md") from None

    @property
    def tree_settings(self) -> dict[str, str]:
        """Settings of the corpus source: column of parts of speech, and relations with or without subtypes."""
        columns = [model.card["trees"]["pos"] or "upos" for model in self._models.values()]
        subtypes = any(":" in relation for relation in self.known_labels)
        relations = "full" if subtypes else "universal"
        return {"source": "conllu", "tag": "tree", "pos": columns[0], "relations": relations}

    @property
    def reads_pos(self) -> bool:
        """True if a model is a parser with parts of speech in the labels."""
        return any(model.needs_pos for model in self._models.values())

    @property
    def known_labels(self) -> set[str]:
        """Span types, labels or relations that the models can predict."""
        form = self.task.form
        return {
            label for model in self._models.values() for label in form.exported_labels(model)
        } | form.always_known


def evaluate(
    exported: LoadedExport,
    text: LabelledText,
    *,
    pos_tagger: LoadedExport | None = None,
    batch: int = 32,
    examples: int = 2,
    on_progress: Callable[[int], None] = lambda finished: None,
) -> Evaluation:
    """Label a text and score the labels.

    Args:
        exported: The export.
        text: Sentences with gold labels.
        pos_tagger: Export of a tagger that predicts the parts of speech for a parser; None takes those of the text.
        batch: Sentences labelled at once.
        examples: Most examples of one confusion.
        on_progress: Called with the number of labelled sentences so far.

    Returns:
        The scores and confusions.

    Raises:
        CorpusError: The labels of the text are not of the kind that the model predicts.
        StoreError: A language of the text has no model, or `pos_tagger` does not give the parser's parts of speech.
    """
    task, form, rows = exported.task, exported.task.form, _rows_by_language(text)
    if not form.labels_text or form.generates:
        raise StoreError(str(exported.folder), f"task {task.name!r} predicts no labels", "give another model")
    _refuse_other_labels(task, text)
    pos, pos_origin = text.pos, "of the files"
    if pos_tagger is not None and exported.reads_pos:
        exported.check_tagger(pos_tagger)
        pos, pos_origin = pos_tagger.predict(text, (), batch=batch), f"predicted by {pos_tagger.folder}"
    predicted = exported.predict(text, pos, batch=batch, on_progress=on_progress)
    gold = [form.gold(text.sentence(row)) for row in range(len(text.sentences))]
    scored = task.scored_words and [list(map(bool, task.scored_words(labelling))) for labelling in gold]

    def score_rows(some: Sequence[int]) -> ScoresByLabel:
        scored_words = scored and [scored[row] for row in some]
        return form.by_label([gold[row] for row in some], [predicted[row] for row in some], scored_words)

    by_language = {language: score_rows(some) for language, some in rows.items()}
    overall = _only_language(by_language) or score_rows(range(len(gold)))
    return Evaluation(
        str(exported.folder),
        exported.run_ids,
        score_metrics(task.metric, task.other_metrics, gold, predicted, text.languages)["source"],
        by_language,
        overall,
        tuple(form.confusions(gold, predicted, scored, examples=examples)),
        _unknown_labels(overall, exported.known_labels),
        pos_origin if exported.reads_pos else "",
        {} if form.has_student_labels else _reliability(exported, text, rows, batch=batch),
    )


def _reliability(
    exported: LoadedExport, text: LabelledText, rows: Mapping[str, Sequence[int]], *, batch: int
) -> Mapping[str, Calibrated]:
    form, predictions = exported.task.form, Predictions()
    for language, rows_of_language in rows.items():
        count = min(MOST_SENTENCES // len(rows), len(rows_of_language))
        some = [rows_of_language[int(row)] for row in np.linspace(0, len(rows_of_language) - 1, count)]
        sentences = [text.sentences[row][form.words_in_front :] for row in some]
        gold: list[Any] = [form.gold(text.sentence(row)) for row in some]
        predictions.add(exported.model(language), sentences, gold, batch=batch)
    return predictions.reliability()


def _rows_by_language(text: LabelledText) -> dict[str, list[int]]:
    return {
        language: [row for row, name in enumerate(text.languages) if name == language]
        for language in sorted(set(text.languages))
    }


def _only_language(by_language: Mapping[str, ScoresByLabel]) -> ScoresByLabel | None:
    return next(iter(by_language.values())) if len(by_language) == 1 else None


def _check_pos(model: Labeller, text: LabelledText, row: int, pos: Sequence[str] | None) -> None:
    if model.trees is None or not model.needs_pos:
        return
    try:
        model.trees.check_pos(text.sentences[row], pos, tagged=False)
    except ValueError as error:
        hint = "annotate it, or give --pos DIR, an export of a student of task pos"
        raise CorpusError(*text.origins[row], str(error), hint) from None


def _unknown_labels(scores: ScoresByLabel, known_labels: Iterable[str]) -> dict[str, int]:
    return {
        name: row.support
        for name, row in scores.labels.items()
        if row.support and name not in set(known_labels)
    }


def _refuse_other_labels(task: Task, text: LabelledText) -> None:
    file, line = text.origins[0]
    if task.form.reads_heads:
        if not text.heads:
            raise CorpusError(
                file, line, "the file has no trees", "give a file of CoNLL-U with HEAD and DEPREL"
            )
        return
    if text.unit != task.unit:
        problem = f"the file has one label per {text.unit}, and the model (task {task.name}) gives one per {task.unit}"
        raise CorpusError(
            file, line, problem, "give files with such labels, or set the columns: --set corpus.columns…"
        )
    pairs = SEPARATOR in text.sentences[0]
    if pairs != task.reads_pairs:
        forms = ("single texts", "pairs of texts")
        problem = (
            f"the file has {forms[pairs]}, and the model (task {task.name}) labels {forms[task.reads_pairs]}"
        )
        columns = "--set corpus.columns.text=1 --set corpus.columns.second=2 --set corpus.columns.label=4"
        hint = (
            f"set the columns of the texts: --set corpus.source=tsv {columns}"
            if task.reads_pairs
            else "give files with single texts"
        )
        raise CorpusError(file, line, problem, hint)
    # A file with no tag but O fits every form.
    if text.form != task.form and any(label != OUTSIDE for labels in text.labels for label in labels):
        problem = (
            f"the file's tags are {text.form.title}, and the model (task {task.name}) gives {task.form.title}"
        )
        column = "--set corpus.columns.tag=2 (the column of the labels, from 0)"
        hint = f"the tags begin with {_frequent_labels(text.labels)}: give {column}, or --set corpus.scheme=…"
        if text.form.words_in_front or task.form.words_in_front:
            hint = (
                "give other files, or --set corpus.source=… (atis, xsid and multiatis have intents and slots)"
            )
        raise CorpusError(file, line, problem, hint)


def _frequent_labels(labels: Sequence[Sequence[str]]) -> str:
    tags = Counter(chain.from_iterable(labels))
    return ", ".join(label for label, _ in tags.most_common(4))
