"""An exported model on labelled files: the task's score, the figures of every label and language, and its errors.

The score is what a run's test score is: the task's metric of each language, and their mean (over all of them: an export
does not know which languages had no labels).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raykd.corpora.labelled import LabelledText
from raykd.corpora.tags import OUTSIDE, TagSet
from raykd.errors import CorpusError, StoreError
from raykd.metrics import score_languages
from raykd.metrics.by_label import ByLabel, entities_by_label, words_by_label
from raykd.metrics.confusions import Confusion, label_confusions, span_confusions
from raykd.results import Score
from raykd.serving.labeller import CARD, READ_AHEAD, Labeller, LabellerError, load, model_file
from raykd.tasks import TASKS, Task


@dataclass(frozen=True)
class Evaluated:
    """How well one export labels some text."""

    address: str
    run_ids: tuple[str, ...]
    score: Score
    by_language: Mapping[str, ByLabel]
    together: ByLabel
    """All sentences as if they were of one language."""
    confusions: tuple[Confusion, ...]
    """Their examples count the sentences of the text."""
    unknown: Mapping[str, int]
    """Span types, or labels, of the text that the model does not know, with how many there are: it cannot find them."""


class LoadedExport:
    """The models in a folder that `raykd export` wrote: one, or one for each language or for a few."""

    def __init__(self, folder: Path, *, int8: bool = False, threads: int = 1):
        """Raises StoreError where the folder is no export, or holds models of several tasks."""
        self.folder = folder
        file = model_file(int8=int8)
        own = (folder / CARD).is_file()
        places = (
            {"": folder}
            if own
            else {each.parent.name: each.parent for each in sorted(folder.glob(f"*/{CARD}"))}
        )
        try:
            # Without any the folder itself says what it lacks.
            self._models = {
                name: load(place, file=file, threads=threads)
                for name, place in (places or {"": folder}).items()
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
        """The model of a language. Raises StoreError where there is none."""
        names = [name for name in self._models if name == "" or language in name.split("+")]
        if not names:
            languages = ", ".join(sorted(self._models))
            hint = f"name the language of each file: {sorted(self._models)[0]}=FILE"
            raise StoreError(str(self.folder), f"has no model of {language!r}, only of {languages}", hint)
        return self._models[names[0]]

    def label(self, text: LabelledText, *, batch: int, each: Callable[[int], None]) -> list[list[str]]:
        """The labels of every sentence; `each` is called with how many sentences are labelled."""
        found: list[list[str]] = [[] for _ in text.sentences]
        done = 0
        for language in dict.fromkeys(text.languages):
            model = self.model(language)
            rows = [row for row, own in enumerate(text.languages) if own == language]
            for first in range(0, len(rows), READ_AHEAD * batch):
                some = rows[first : first + READ_AHEAD * batch]
                labels = model.label([text.sentences[row] for row in some], batch=batch)
                for row, own in zip(some, labels, strict=True):
                    found[row] = own
                done += len(some)
                each(done)
        return found

    @property
    def known(self) -> set[str]:
        """The span types, or labels, that the models know."""
        sets = (TagSet(model.labels, self.task.scheme) for model in self._models.values())
        return {label for tags in sets for label in tags.labels} | {OUTSIDE}


def evaluate(
    exported: LoadedExport,
    text: LabelledText,
    *,
    batch: int = 32,
    examples: int = 2,
    each: Callable[[int], None] = lambda done: None,
) -> Evaluated:
    """Label `text` and compare; `examples` of each confusion, and `each` as in `LoadedExport.label`.

    Raises:
        CorpusError: the labels of the text are not of the kind that the model predicts.
        StoreError: there is no model of one of its languages.
    """
    task = exported.task
    _refuse_other_labels(task, text)
    predicted = exported.label(text, batch=batch, each=each)
    spans = task.scheme == "bioes"
    count, confuse = (entities_by_label, span_confusions) if spans else (words_by_label, label_confusions)
    by_language = {}
    for language in sorted(set(text.languages)):
        rows = [row for row, own in enumerate(text.languages) if own == language]
        by_language[language] = count([text.labels[row] for row in rows], [predicted[row] for row in rows])
    one = next(iter(by_language.values())) if len(by_language) == 1 else None
    together = one or count(text.labels, predicted)
    return Evaluated(
        str(exported.folder),
        exported.run_ids,
        score_languages(task.metric, text.labels, predicted, text.languages)["source"],
        by_language,
        together,
        tuple(confuse(text.labels, predicted, examples=examples)),
        _unknown(together, exported.known),
    )


def _unknown(found: ByLabel, known: Iterable[str]) -> dict[str, int]:
    return {name: row.support for name, row in found.labels.items() if row.support and name not in set(known)}


def _refuse_other_labels(task: Task, text: LabelledText) -> None:
    file, line = text.origins[0]
    if text.unit != task.unit:
        problem = (
            f"it has one label per {text.unit}, and the model (task {task.name}) gives one per {task.unit}"
        )
        raise CorpusError(
            file, line, problem, "give files with such labels, or set the columns: --set corpus.columns…"
        )
    # Outside alone is the same in every scheme.
    if text.scheme != task.scheme and any(label != OUTSIDE for labels in text.labels for label in labels):
        kinds: Mapping[str, str] = {"bioes": "spans", "flat": "one tag per word"}
        problem = (
            f"its tags are {kinds[text.scheme]}, and the model (task {task.name}) gives {kinds[task.scheme]}"
        )
        column = "--set corpus.columns.tag=2 (the column of the labels, from 0)"
        hint = f"the tags begin with {_some(text.labels)}: give {column}, or --set corpus.scheme=…"
        raise CorpusError(file, line, problem, hint)


def _some(labels: Sequence[Sequence[str]]) -> str:
    tags = Counter(label for own in labels for label in own)
    return ", ".join(label for label, _ in tags.most_common(4))
