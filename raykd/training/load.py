"""Loading a finished run's folder as a model for labelling text (`raykd.load`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import torch

from raykd.corpora.sentence import check_pair
from raykd.errors import StoreError
from raykd.forms import TREE, Labels, labels_from
from raykd.forms.steps import bracket_text, tree_from_steps
from raykd.forms.targets import best_labels
from raykd.forms.utterance_marks import INTENT, UTTERANCE
from raykd.identity import PlainObject
from raykd.layers.model import Model
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import StoredVocabulary, stored_vocabulary_from_json
from raykd.storage.sealed_json import SEAL
from raykd.storage.store import Storage
from raykd.tasks import TASKS, Task, find_task
from raykd.training.evaluate import Decode, Labelling, predict
from raykd.training.model_folder import (
    LABELS,
    MODEL,
    RESULT,
    VOCABULARY,
    WEIGHTS,
    file_address,
    is_trained,
    model_config,
    trained_model,
)
from raykd.training.worker import Worker

COPY = "copy the whole folder of the run again"


class Tagger:
    """A trained model with vocabulary and labels, made by `raykd.load`.

    Args:
        model: moved to `device`.
        vocabulary: of the model.
        tag_set: labels of the model.
        task: of the model.
        device: on which the model computes.
    """

    def __init__(
        self,
        model: Model,
        *,
        vocabulary: StoredVocabulary,
        tag_set: Labels,
        task: Task,
        device: torch.device,
    ):
        self.model, self.vocabulary = model.to(device), vocabulary
        self.tag_set, self.task, self.device = tag_set, task, device

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels of the model."""
        return self.tag_set.tags

    def label(self, sentences: Iterable[Iterable[str]]) -> list[list[str]]:
        """Return the best labels of sentences: one label per word, or a single one in tasks of whole sentences.

        A student that parses gives the labels that encode its trees; call `parse` for heads and relations. A model of
        utterances gives the slots.

        Args:
            sentences: any number of lists of words; they are read in batches of similar length. A pair of texts is the
                words of both, with a tab as a word between them.

        Raises:
            TypeError: a sentence is a string, not a list of words; a word is no string; or the model has no labels
                because it is a parser, a language model or generates trees.
            ValueError: a sentence has no words, or is no pair in a task of pairs.
        """
        if (problem := self.task.form.no_labels_reason(self.tag_set)) is not None:
            raise TypeError(problem)
        labelled = self._labels(_read_once(sentences))
        return [labels[self.task.form.words_in_front :] for labels in labelled]

    def intents_and_slots(self, sentences: Iterable[Iterable[str]]) -> list[tuple[str, list[str]]]:
        """Return the intents of utterances, and the slots of their words in BIOES tags.

        Args:
            sentences: utterances, as lists of words.

        Raises:
            TypeError: the model is of a task without intents.
            ValueError: as for `label`.
        """
        self._refuse("intents_and_slots", "predicts no intents", alternative="label")
        labelled = self._labels(_read_once(sentences))
        return [(intent.removeprefix(INTENT), slots) for intent, *slots in labelled]

    def parse(
        self, sentences: Iterable[Iterable[str]], pos: Iterable[Iterable[str]] | None = None
    ) -> list[list[tuple[int, str]]]:
        """Return the trees of sentences: head and relation of every word.

        Args:
            sentences: lists of words.
            pos: parts of speech, one for every word, for a student whose labels refer to them.

        Returns:
            For every word its head (0 for the root, h for the h-th word) and its relation.

        Raises:
            TypeError: the model is of a task without trees.
            ValueError: parts of speech are missing or unknown; or as for `label`.
        """
        self._refuse("parse", "predicts no trees of heads", alternative=(*self.task.form.calls, "label")[0])
        words = _read_once(sentences)
        column = TREE.unlabelled_column(words, None if pos is None else _read_once(pos), self.tag_set)
        parses = self._predict(words, partial(TREE.best_labellings, column))
        relations = TREE.relation_names(self.tag_set)
        return [
            [
                (int(head), relations[number])
                for head, number in zip(parse.heads_T, parse.relations_T, strict=True)
            ]
            for parse in parses
        ]

    def trees(self, sentences: Iterable[Iterable[str]]) -> list[str | None]:
        """Return the trees of intents and slots of sentences, as `[IN:GET_WEATHER [SL:LOCATION rome ] ]`.

        Args:
            sentences: lists of words.

        Returns:
            For each sentence its tree; None if the generated steps are no tree.

        Raises:
            TypeError: the model is of a task without such trees.
            ValueError: as for `label`.
        """
        self._refuse("trees", "generates no trees of intents and slots", alternative="label")
        listed = _read_once(sentences)
        return [
            bracket_text(steps, [UTTERANCE, *words]) if tree_from_steps(steps, 1 + len(words)) else None
            for steps, words in zip(self._labels(listed), listed, strict=True)
        ]

    def _refuse(self, call: str, problem: str, *, alternative: str) -> None:
        """Raise TypeError if the task does not support a call; suggest another one."""
        if call not in self.task.form.calls:
            raise TypeError(f"task {self.task.name!r} {problem}; call {alternative}")

    def _labels(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The best labels of sentences, including those of words that the task puts in front."""
        paths = self._predict(sentences, lambda output, rows: best_labels(output))
        return [self.tag_set.decode(path) for path in paths]

    def _predict(self, sentences: Sequence[Sequence[str]], decode: Decode[Labelling]) -> list[Labelling]:
        if self.task.reads_pairs:
            for sentence in sentences:
                check_pair(sentence)
        if self.task.form.words_in_front:
            sentences = [[UTTERANCE, *words] if words else [] for words in sentences]
        text = self.vocabulary.encode(sentences)
        return predict(self.model, text, decode, worker=Worker(device=self.device))


def _read_once(sentences: Iterable[Iterable[str]]) -> list[list[str]]:
    """The sentences as lists; raises TypeError if a sentence is a string, or a word is no string."""
    listed = []
    for sentence in sentences:
        if isinstance(sentence, str):
            problem = f"a sentence is a list of words, got the string {sentence[:40]!r}"
            raise TypeError(f'{problem}; write [["Ada", "lives"]], a list of sentences')
        words = list(sentence)
        if no_strings := [word for word in words if not isinstance(word, str)]:
            raise TypeError(f"a word is a string, got {no_strings[0]!r} in {str(words)[:60]}")
        listed.append(words)
    return listed


def load_tagger(folder: str | Path, *, device: str = "cpu") -> Tagger:
    """Load the model in the folder of a finished run; see `raykd.load`.

    Args:
        folder: path or URI of the run's folder.
        device: on which the model computes.

    Raises:
        StoreError: a file is missing or damaged, or the folder belongs to an ensemble.
    """
    storage = Storage(str(folder))
    _check_files(storage, (MODEL, VOCABULARY, LABELS))
    run = storage.read_json(MODEL, _parse_run, edited=True, hint=COPY)
    if run.members:
        names = ", ".join(member.id for member in run.members)
        hint = "load one of them: each has a folder of its own beside this one"
        raise StoreError(storage.address, f"is an ensemble, the mean of {names}", hint)
    if is_trained(run):
        _check_files(storage, (WEIGHTS, RESULT))
    vocabulary = storage.read_json(
        VOCABULARY, partial(stored_vocabulary_from_json, run.vocabulary_id), hint=COPY
    )
    tag_set = storage.read_json(LABELS, labels_from, hint=COPY)
    model = _model(storage, run, vocabulary, tag_set)
    task = TASKS[find_task(run.task).with_gold]  # labelled files that it is evaluated on have gold labels
    return Tagger(model, vocabulary=vocabulary, tag_set=tag_set, task=task, device=torch.device(device))


def _model(folder: Storage, run: Run, vocabulary: StoredVocabulary, tag_set: Labels) -> Model:
    try:
        return trained_model(folder, run, vocabulary, tag_set)
    except StoreError as error:
        if error.name.startswith(file_address(folder, "")):
            raise
        hint = "the model reads this checkpoint, which is not part of its folder: "
        hint += f"set its path in {file_address(folder, MODEL)} to where the same files are now, and remove "
        hint += f"the line {SEAL!r} there"
        raise StoreError(error.name, error.problem, hint) from error


def _parse_run(plain: PlainObject) -> Run:
    run = Run.from_plain(plain)
    try:
        find_task(run.task)
    except KeyError:
        raise ValueError(f"unknown task {run.task!r} ({', '.join(TASKS)})") from None
    model_config(run)  # raises for the configuration of another version
    return run


def _check_files(folder: Storage, names: Sequence[str]) -> None:
    """Raise StoreError if the folder is not a run's; the hint names the folders of runs below it."""
    missing = [name for name in names if not folder.exists(name)]
    if not missing:
        return
    files = folder.names()
    run_folders = sorted({name.rpartition("/")[0] for name in files if name.endswith(f"/{MODEL}")})
    problem = f"is not the folder of a finished run: it has no {', '.join(missing)}"
    hint = f"{COPY}, or correct the address" if files else "correct the address"
    if run_folders:
        more = ", …" if len(run_folders) > 5 else ""
        hint = f"load a folder below it: {', '.join(run_folders[:5])}{more}"
    raise StoreError(folder.address, problem, hint)
