"""The phase `annotate`: ask the annotators of a sweep about the texts that have no answer yet."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from raykd.cluster.listener import Listener
from raykd.cluster.topology import Group, Topology
from raykd.corpora.answers import AnswerError, AskedText
from raykd.corpora.answers.labellings import UnmappedError
from raykd.corpora.answers.stored_answer import StoredAnswer
from raykd.errors import MissingError, PlacementError, RunError
from raykd.pluralise import pluralise
from raykd.precompute.asking import Asking
from raykd.storage.layout import ANSWERS
from raykd.sweep.lease import hold_lease
from raykd.sweep.named_files import source_folders
from raykd.sweep.sweep import Sweep
from raykd.teachers import AskedAnnotator
from raykd.teachers.asked_annotator import AnnotatorSource
from raykd.training.answer_reader import AnswerReader
from raykd.training.prepare import Preparation
from raykd.transfer.answer_store import (
    annotator_description,
    batch_names,
    describe_annotator,
    write_answers,
)

PHASE = "annotate"
FEWEST_JUDGED = 50
"""Answers after which too many unusable ones end the asking; `survey_answers` judges them all at the end."""


@dataclass
class Question:
    """The texts about which one annotator is to be asked.

    Attributes:
        annotator: Its configuration.
        preparation: An alternative of the sweep with this teacher.
        texts: Key → text.
        counts: Part → number of sentences to ask about.
    """

    annotator: AskedAnnotator
    preparation: Preparation
    texts: dict[bytes, AskedText] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def questions(sweep: Sweep) -> list[Question]:
    """Return the annotators that a sweep asks, with the texts that have no answer yet.

    Args:
        sweep: The sweep.
    """
    by_annotator: dict[str, Question] = {}
    preparations = [prepared.preparation for prepared in sweep.preparations.values()]
    for preparation, survey in ((one, survey) for one in preparations for survey in one.surveys):
        annotator = survey.annotator
        if isinstance(annotator, AskedAnnotator):
            annotator_id = annotator.pinned().answers_id
            question = by_annotator.setdefault(annotator_id, Question(annotator, preparation))
            question.texts |= survey.to_ask
            for part, counts in survey.counts.items():
                question.counts[part] = max(question.counts[part], counts["to ask"])
    return list(by_annotator.values())


def source_warnings(sweep: Sweep) -> Iterator[str]:
    """Yield a warning for each annotator whose file has changed since it was first asked.

    Args:
        sweep: The sweep.
    """
    for question in questions(sweep):
        annotator_id = question.annotator.pinned().answers_id
        described = annotator_description(sweep.storage, annotator_id)
        try:
            source = question.annotator.find_source(source_folders(sweep.document))
        except MissingError:  # an error only where it is needed: `refuse_unaskable`
            continue
        if described and described.get("source_sha256") != source.sha256:
            yield (
                f"{source.path} has changed since {question.annotator.title} was first asked: its stored answers are "
                "kept; to ask again, change teachers.version"
            )


def refuse_unaskable(sweep: Sweep) -> None:
    """Check, before Ray starts, that the annotators of a sweep can be asked.

    Args:
        sweep: The sweep.

    Raises:
        MissingError: The code of an annotator is not found.
        RunError: A key is not set.
    """
    for question in questions(sweep):
        if question.texts:
            question.annotator.find_source(source_folders(sweep.document))
            _keys(question.annotator)


def ask_annotators(sweep: Sweep, cluster: Topology, listener: Listener) -> None:
    """Ask the annotators of a sweep about all texts without an answer, and prepare the sweep again.

    Args:
        sweep: The sweep.
        cluster: The cluster.
        listener: Shows the progress.

    Raises:
        PlacementError: An actor does not fit on the cluster.
        RunError: An annotator fails, or too many of its answers cannot be used.
        StoreError: Another command asks the same annotator, or the store fails.
    """
    open_questions = [question for question in questions(sweep) if question.texts]
    if not open_questions:
        return
    for question in open_questions:
        _ask(sweep, question, cluster, listener)
    sweep.prepare_again()
    with_answers = sum(len(question.texts) for question in open_questions)
    listener.end(PHASE, f"{pluralise(with_answers, 'text')} asked about")


def _ask(sweep: Sweep, question: Question, cluster: Topology, listener: Listener) -> None:
    annotator = question.annotator
    source, keys = annotator.find_source(source_folders(sweep.document)), _keys(annotator)
    actors = _fitting_actors(annotator, cluster, listener)
    storage, annotator_id = sweep.storage, annotator.pinned().answers_id
    about = pluralise(len(question.texts), "text")
    listener.note(f"asks {annotator.title} ({source.path}) about {about}")
    listener.begin(PHASE, len(question.texts))
    with hold_lease(storage.child(ANSWERS, annotator_id), verb="sweep", note=listener.note):
        _describe(sweep, annotator, source)
        keeper = _Keeper(sweep, question, listener)
        asking = Asking(annotator, source, keys=keys, actors=actors, on_answers=keeper.keep)
        try:
            asking.ask(list(keeper.texts.values()))
        finally:
            _describe(sweep, annotator, source)


def _keys(annotator: AskedAnnotator) -> Mapping[str, str]:
    if lacking := [name for name in annotator.keys if name not in os.environ]:
        raise RunError(
            f"teachers.keys: {', '.join(lacking)} is not set; set it in the shell that starts raykd"
        )
    return {name: os.environ[name] for name in annotator.keys}


def _fitting_actors(annotator: AskedAnnotator, cluster: Topology, listener: Listener) -> int:
    group = Group({"CPU": annotator.cpus, "GPU": annotator.gpus})
    if not group.total:
        return annotator.concurrency
    fits = cluster.fits(group)
    if fits < 1:
        raise PlacementError(
            f"teachers.cpus, teachers.gpus: an actor that asks takes {group}; no node has so much"
        )
    if fits < annotator.concurrency:
        listener.note(
            f"{pluralise(fits, 'actor')} of teachers.concurrency: {annotator.concurrency} fit, with {group} each"
        )
    return min(fits, annotator.concurrency)


def _describe(sweep: Sweep, annotator: AskedAnnotator, source: AnnotatorSource) -> None:
    """Note what is asked, and the source of the first answers."""
    annotator_id = annotator.pinned().answers_id
    described = annotator_description(sweep.storage, annotator_id)
    noted = described.get("source_sha256", source.sha256)
    asking = {"kind": annotator.kind, **annotator.asking, "source": source.path, "source_sha256": noted}
    describe_annotator(sweep.storage, annotator_id, asking)


class _Keeper:
    """Stores answers as they come, and judges them."""

    def __init__(self, sweep: Sweep, question: Question, listener: Listener):
        annotator, corpus = question.annotator.pinned(), question.preparation.corpus
        self._annotator, self._listener = question.annotator, listener
        self._storage, self._id = sweep.storage, annotator.answers_id
        self._reader = AnswerReader(sweep.storage, annotator, corpus.tag_set, corpus.unit)
        # Another command may have asked since the corpus was read.
        self.texts = {
            key: text for key, text in question.texts.items() if self._reader.find_by_key(key) is None
        }
        self._number = len(batch_names(sweep.storage, self._id))
        self._kept = 0
        self._unusable = list[str]()
        self._unmapped = set[str]()

    def keep(self, answers: Sequence[StoredAnswer]) -> None:
        """Store answers in one object.

        Args:
            answers: Answers of one batch.

        Raises:
            RunError: Too many answers cannot be used.
        """
        write_answers(self._storage, self._id, self._number, answers)
        self._number, self._kept = self._number + 1, self._kept + len(answers)
        for stored in answers:
            self._judge(stored)
        unusable = f", {len(self._unusable):,} unusable" if self._unusable else ""
        self._listener.advance(PHASE, len(answers), detail=f"{self._kept:,} answers{unusable}")
        allowed = self._annotator.most_unusable
        if len(self._unusable) > allowed * max(self._kept, FEWEST_JUDGED):
            raise RunError(
                f"{len(self._unusable):,} of {self._kept:,} answers cannot be used, more than "
                f"teachers.most_unusable: {allowed}. {'; '.join(self._unusable[:3])}"
            )

    def _judge(self, stored: StoredAnswer) -> None:
        try:
            self._reader.parse(self.texts[stored.key].words, stored)
        except UnmappedError as error:
            if error.label not in self._unmapped:
                self._unmapped.add(error.label)
                self._listener.warn(
                    f"the annotator's label {error.label} is none of the corpus: name it in teachers.labels, which "
                    "asks nothing again"
                )
        except AnswerError as error:
            self._unusable.append(f"{stored.origin}: {error}")
