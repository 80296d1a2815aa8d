"""An exported model on labelled files: the task's score, the figures of every label and language, and its errors.

The score is what a run's test score is: the task's metric of each language, and their mean (over all of them: an export
does not know which languages had no labels).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raykd.corpora.conversion import TREES
from raykd.corpora.labelled_files import LabelledText
from raykd.corpora.tags import TagSet
from raykd.errors import CorpusError, StoreError
from raykd.figures.results import Score
from raykd.metrics import score_beside
from raykd.metrics.bioes import OUTSIDE
from raykd.metrics.by_label import ByLabel, arcs_by_relation, entities_by_label, words_by_label
from raykd.metrics.confusions import Confusion, arc_confusions, label_confusions, span_confusions
from raykd.serving.labeller import (
    CARD,
    INTENT,
    READ_AHEAD,
    SEPARATOR,
    Arc,
    Labeller,
    LabellerError,
    load,
    model_file,
)
from raykd.tasks import TASKS, LabelTask, ParsingTask, Task
from raykd.tasks.parsing import Parse


@dataclass(frozen=True)
class Evaluated:
    """How well one export labels some text. Of utterances the intent is one span more."""

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
    pos: str = ""
    """Where the parts of speech that a parser read are from, in words; empty where it read none."""


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

    def label(
        self, text: LabelledText, *, batch: int = 32, each: Callable[[int], None] = lambda done: None
    ) -> list[list[str]]:
        """The labels of every sentence, of utterances their intent first; `each` is called with how many sentences are
        labelled."""

        def labelled(model: Labeller, rows: Sequence[int]) -> list[list[str]]:
            sentences = [text.sentences[row] for row in rows]
            if self.task.scheme != "utterance":
                return model.label(sentences, batch=batch)
            found = model.intents_and_slots([words[1:] for words in sentences], batch=batch)
            return [[INTENT + intent, *slots] for intent, slots in found]

        return self._read(text, labelled, READ_AHEAD * batch, each)

    def arcs(
        self,
        text: LabelledText,
        pos: Sequence[Sequence[str] | None],
        *,
        batch: int = 32,
        each: Callable[[int], None] = lambda done: None,
    ) -> list[list[Arc]]:
        """What parsers say of every word, given the parts of speech of every sentence; `each` as of `label`.

        Raises CorpusError where parts of speech that a model reads are missing or unknown to it.
        """

        def parsed(model: Labeller, rows: Sequence[int]) -> list[list[Arc]]:
            for row in rows:
                _check_pos(model, text, row, pos[row])
            return model.arcs([text.sentences[row] for row in rows], [pos[row] for row in rows], batch=batch)

        return self._read(text, parsed, READ_AHEAD * batch, each)

    def _read(
        self,
        text: LabelledText,
        call: Callable[[Labeller, Sequence[int]], Sequence[list[Any]]],
        at_once: int,
        each: Callable[[int], None],
    ) -> list[list[Any]]:
        """What `call` gives of some sentences with the model of their language, of every sentence."""
        found: list[list[Any]] = [[] for _ in text.sentences]
        done = 0
        for language in dict.fromkeys(text.languages):
            model = self.model(language)
            rows = [row for row, own in enumerate(text.languages) if own == language]
            for first in range(0, len(rows), at_once):
                some = rows[first : first + at_once]
                for row, own in zip(some, call(model, some), strict=True):
                    found[row] = own
                done += len(some)
                each(done)
        return found

    def check_tagger(self, tagger: LoadedExport) -> None:
        """Raise StoreError where the models of `tagger` do not give the parts of speech that these parsers read."""
        for model in self._models.values():
            for own in tagger._models.values():
                try:
                    model.check_tagger(own)
                except LabellerError as error:
                    raise StoreError(str(tagger.folder), str(error), "see docs/EXPORT.md") from None

    @property
    def tree_settings(self) -> dict[str, str]:
        """How files of trees are read for these parsers: which part of speech they read, and whether relations have
        subtypes."""
        columns = [model.card["trees"]["pos"] or "upos" for model in self._models.values()]
        subtypes = any(":" in relation for relation in self.known)
        relations = "full" if subtypes else "universal"
        return {"source": "conllu", "tag": "tree", "pos": columns[0], "relations": relations}

    @property
    def reads_pos(self) -> bool:
        """Whether one of them is a parser whose labels name parts of speech."""
        return any(model.needs_pos for model in self._models.values())

    @property
    def known(self) -> set[str]:
        """The span types, labels or relations that the models know."""
        if self.task.structure == "trees":
            return {name for model in self._models.values() if model.trees for name in model.trees.relations}
        sets = (TagSet(model.labels, self.task.scheme) for model in self._models.values())
        return {label for tags in sets for label in tags.labels} | {OUTSIDE}


def evaluate(
    exported: LoadedExport,
    text: LabelledText,
    *,
    pos: LoadedExport | None = None,
    batch: int = 32,
    examples: int = 2,
    each: Callable[[int], None] = lambda done: None,
) -> Evaluated:
    """Label `text` and compare; `examples` of each confusion, and `each` as in `LoadedExport.label`. `pos` gives a
    parser its parts of speech, in the place of those of the text.

    Raises:
        CorpusError: the labels of the text are not of the kind that the model predicts.
        StoreError: there is no model of one of its languages, or `pos` does not give the parser's parts of speech.
    """
    task, rows = exported.task, _rows_of(text)
    if isinstance(task, ParsingTask):
        return _evaluated_trees(task, exported, text, pos, batch=batch, examples=examples, each=each)
    if not isinstance(task, LabelTask):
        raise StoreError(str(exported.folder), f"task {task.name!r} predicts no labels", "give another model")
    _refuse_other_labels(task, text)
    predicted = exported.label(text, batch=batch, each=each)
    spans = task.scheme != "flat"
    count, confuse = (entities_by_label, span_confusions) if spans else (words_by_label, label_confusions)
    gold, own = text.labels, predicted
    if task.scheme == "utterance":
        gold, own = _intents_as_spans(gold), _intents_as_spans(own)
    by_language = {
        language: count([gold[row] for row in some], [own[row] for row in some])
        for language, some in rows.items()
    }
    together = _only(by_language) or count(gold, own)
    return Evaluated(
        str(exported.folder),
        exported.run_ids,
        score_beside(task.metric, task.beside, text.labels, predicted, text.languages)["source"],
        by_language,
        together,
        tuple(confuse(gold, own, examples=examples)),
        _unknown(together, exported.known),
    )


def _evaluated_trees(
    task: ParsingTask,
    exported: LoadedExport,
    text: LabelledText,
    pos: LoadedExport | None,
    *,
    batch: int,
    examples: int,
    each: Callable[[int], None],
) -> Evaluated:
    """The task's score of a parser's trees, and figures and errors by relation over the words that it scores."""
    if not text.heads:
        raise CorpusError(*text.origins[0], "it has no trees", "give a file of CoNLL-U with HEAD and DEPREL")
    given = text.pos
    if pos is not None and exported.reads_pos:
        exported.check_tagger(pos)
        given = pos.label(text, batch=batch)
    found = exported.arcs(text, given, batch=batch, each=each)
    names = sorted({name for own in text.pos if own for name in own})
    relations = TagSet.flat({*chain(*text.labels), *(arc.relation for own in found for arc in own)})
    gold = task.targets(_table(text, names, relations), pos=names, labels=relations)
    parses = [
        Parse(
            np.array([arc.head for arc in own]),
            np.array([relations.index(arc.relation) for arc in own]),
            np.array([arc.repaired for arc in own]),
        )
        for own in found
    ]
    own = [list(zip(*each, strict=True)) for each in zip(text.heads, text.labels, strict=True)]
    predicted = [[(arc.head, arc.relation) for arc in each] for each in found]
    scored = [words.tolist() for words in task.scored(gold)]
    by_language = {
        language: arcs_by_relation(
            [own[row] for row in rows], [predicted[row] for row in rows], [scored[row] for row in rows]
        )
        for language, rows in _rows_of(text).items()
    }
    together = _only(by_language) or arcs_by_relation(own, predicted, scored)
    origin = "of the files" if pos is None else f"predicted by {pos.folder}"
    return Evaluated(
        str(exported.folder),
        exported.run_ids,
        task.score(gold, parses, tag_set=relations, languages=text.languages)["source"],
        by_language,
        together,
        tuple(arc_confusions(own, predicted, scored, examples=examples)),
        _unknown(together, exported.known),
        origin if exported.reads_pos else "",
    )


def _rows_of(text: LabelledText) -> dict[str, list[int]]:
    """Language → its sentences."""
    return {
        language: [row for row, own in enumerate(text.languages) if own == language]
        for language in sorted(set(text.languages))
    }


def _intents_as_spans(labels: Iterable[Sequence[str]]) -> list[list[str]]:
    """The labels of utterances as spans in BIOES tags, with the intent as one of the word in front."""
    return [["S-" + intent, *slots] for intent, *slots in labels]


def _only(by_language: Mapping[str, ByLabel]) -> ByLabel | None:
    """The figures of the one language there is."""
    return next(iter(by_language.values())) if len(by_language) == 1 else None


def _table(text: LabelledText, pos: Sequence[str], relations: TagSet) -> pa.Table:
    """The text as a part of a treebank."""
    number = {name: place for place, name in enumerate(pos)}
    rows = zip(text.sentences, text.labels, text.languages, text.heads, text.pos, strict=True)
    return pa.Table.from_pylist(
        [
            {
                "tokens": words, "tags": relations.encode(tags).tolist(), "language": language, "heads": heads,
                "pos": own and [number[name] for name in own],
            }
            for words, tags, language, heads, own in rows
        ],
        schema=TREES,
    )  # fmt: skip


def _check_pos(model: Labeller, text: LabelledText, row: int, pos: Sequence[str] | None) -> None:
    if model.trees is None or not model.needs_pos:
        return
    try:
        model.trees.check_pos(text.sentences[row], pos, tagged=False)
    except ValueError as error:
        hint = "annotate it, or give --pos DIR, an export of a student of task pos"
        raise CorpusError(*text.origins[row], str(error), hint) from None


def _unknown(found: ByLabel, known: Iterable[str]) -> dict[str, int]:
    return {name: row.support for name, row in found.labels.items() if row.support and name not in set(known)}


def _refuse_other_labels(task: LabelTask, text: LabelledText) -> None:
    file, line = text.origins[0]
    if text.unit != task.unit:
        problem = (
            f"it has one label per {text.unit}, and the model (task {task.name}) gives one per {task.unit}"
        )
        raise CorpusError(
            file, line, problem, "give files with such labels, or set the columns: --set corpus.columns…"
        )
    pairs = SEPARATOR in text.sentences[0]
    if pairs != task.pairs:
        forms = ("single texts", "pairs of texts")
        problem = f"it has {forms[pairs]}, and the model (task {task.name}) labels {forms[task.pairs]}"
        columns = "--set corpus.columns.text=1 --set corpus.columns.second=2 --set corpus.columns.label=4"
        hint = f"say where they are: --set corpus.source=tsv {columns}" if task.pairs else "give others"
        raise CorpusError(file, line, problem, hint)
    # Outside alone is the same in every scheme.
    if text.scheme != task.scheme and any(label != OUTSIDE for labels in text.labels for label in labels):
        kinds: Mapping[str, str] = {
            "bioes": "spans", "flat": "one tag per word", "utterance": "intents and slots",
        }  # fmt: skip
        problem = (
            f"its tags are {kinds[text.scheme]}, and the model (task {task.name}) gives {kinds[task.scheme]}"
        )
        column = "--set corpus.columns.tag=2 (the column of the labels, from 0)"
        hint = f"the tags begin with {_some(text.labels)}: give {column}, or --set corpus.scheme=…"
        if "utterance" in (text.scheme, task.scheme):
            hint = (
                "give other files, or --set corpus.source=… (atis, xsid and multiatis have intents and slots)"
            )
        raise CorpusError(file, line, problem, hint)


def _some(labels: Sequence[Sequence[str]]) -> str:
    tags = Counter(label for own in labels for label in own)
    return ", ".join(label for label, _ in tags.most_common(4))
