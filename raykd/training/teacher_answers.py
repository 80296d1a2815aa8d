"""The answers of a teacher: of one annotator, or of several, combined by their token marginals.

Shapes: T labels of a sentence, Y tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc
import torch
from typing_extensions import override

from raykd.corpora.corpus import Corpus
from raykd.corpora.sentence import Unit
from raykd.forms import TagSet
from raykd.layers.answered_text import AnsweredText, EncodedAnswer
from raykd.recipes.run import Run, validate_plain
from raykd.storage.layout import MODEL
from raykd.storage.store import Storage
from raykd.tasks import find_task
from raykd.teachers import AnswerTeacher, CombinedTeacher, TeacherConfig
from raykd.training.answer_reader import AnswerReader, Answers, sentence_words
from raykd.training.data import Part, sentence_languages

if TYPE_CHECKING:
    from raykd.corpora.encoded_text import EncodedText


class CombinedReader(Answers):
    """Reads the answers of several annotators as one distribution over the tags of each word.

    Members without a usable answer about a sentence are left out, and the weights of the others renormalised.

    Args:
        members: Readers of the members' answers.
        shares: Their weights, all positive.
        tags: Number of tags Y.
    """

    def __init__(self, members: Sequence[AnswerReader], shares: Sequence[float], tags: int):
        self._members, self._shares, self._tags = members, shares, tags

    @property
    @override
    def samples(self) -> int:
        return 1

    @override
    def find_usable(self, words: Sequence[str]) -> EncodedAnswer | None:
        answers = [member.find_usable(words) for member in self._members]
        weighted = [
            log(share) + answer.log_marginals(self._tags)
            for share, answer in zip(self._shares, answers, strict=True)
            if answer is not None
        ]
        if not weighted:
            return None
        mean_TY = torch.logsumexp(torch.stack(weighted), 0)
        return EncodedAnswer((), (), torch.log_softmax(mean_TY, -1))

    @override
    def find_draws(self, words: Sequence[str]) -> None:
        """Return None: a fresh answer of one member would be compared with answers of others."""


def open_answers_of(storage: Storage, teacher: AnswerTeacher, tag_set: TagSet, unit: Unit) -> Answers:
    """Return the reader of a teacher's answers.

    Args:
        storage: The store.
        teacher: The teacher, pinned.
        tag_set: Tags of the corpus.
        unit: Unit that has one label.
    """
    readers = [AnswerReader(storage, annotator, tag_set, unit) for annotator in teacher.annotators]
    if isinstance(teacher, CombinedTeacher):
        return CombinedReader(readers, teacher.shares, len(tag_set))
    return readers[0]


def answer_reader(storage: Storage, run: Run, tag_set: TagSet) -> Answers | None:
    """Return the reader of the answers of a run's teacher; None for a run of a model.

    Args:
        storage: The store.
        run: The run.
        tag_set: Tags of its corpus.
    """
    if run.role != "teacher":
        return None
    teacher = validate_plain(TeacherConfig, run.model)
    if not isinstance(teacher, AnswerTeacher):
        return None
    return open_answers_of(storage, teacher, tag_set, find_task(run.task).unit)


def taught_by(storage: Storage, run: Run, tag_set: TagSet) -> Answers | None:
    """Return the reader of the answers that a student learnt from; None for one that no annotator taught.

    Args:
        storage: The store.
        run: The student's run.
        tag_set: Tags of its corpus.
    """
    if not run.sources:
        return None
    first = run.sources[0]  # an annotator is the only teacher of its students
    teacher = storage.read_json(f"teachers/{first.teacher_id}/{MODEL}", Run.from_plain)
    return answer_reader(storage, teacher, tag_set)


def answered_part(corpus: Corpus, run: Run, part: str, reader: Answers) -> Part:
    """Return the sentences of a part that have a usable answer, with their gold labels.

    Args:
        corpus: The corpus.
        run: Run of the annotator.
        part: Name of the part.
        reader: Of its answers.
    """
    form, table = find_task(run.task).form, corpus.parts[part]
    answers = [reader.find_usable(words) for words in sentence_words(table)]
    answered = table.filter(pa.array([answer is not None for answer in answers], pa.bool_()))
    lengths = pc.call_function("list_value_length", [answered["tokens"]]).to_pylist()
    usable = [answer for answer in answers if answer is not None]
    text = AnsweredText(lengths, usable, samples=reader.samples)
    labels = form.targets(answered.select(form.columns), pos=corpus.pos, labels=corpus.tag_set)
    # Its batches hold answers in place of pieces, and only the annotator's model reads them.
    return Part(form, cast("EncodedText", text), labels, sentence_languages(answered))
