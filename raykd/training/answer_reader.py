"""Reading the stored answers of annotators, as the output of a teacher."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa
from typing_extensions import override

from raykd.corpora.answers import (
    Answer,
    AnswerError,
    read_answer,
    record_text,
    text_key,
    visible_text,
)
from raykd.corpora.answers.stored_answer import StoredAnswer
from raykd.corpora.sentence import Unit
from raykd.errors import RunError
from raykd.forms import TagSet
from raykd.layers.answered_text import AnsweredText, EncodedAnswer, encode_answer
from raykd.progress import with_progress
from raykd.storage.store import Storage
from raykd.teachers import AnnotatorTeacher
from raykd.transfer.answer_store import open_answers

_END_OF_SPAN = re.compile(r'(?<!\\)"[ES]-[^"]*":')
"""A key of a distribution that is a tag of BIOES, and none of IOB2."""
FEWEST_VISIBLE = 8
"""Visible characters by which sentences of a document are looked for."""


class Answers(ABC):
    """The answers of a teacher, by the words of a sentence."""

    @property
    @abstractmethod
    def samples(self) -> int:
        """Largest number of labellings that any text may have, at least 1."""

    @abstractmethod
    def find_usable(self, words: Sequence[str]) -> EncodedAnswer | None:
        """Return the usable answer about a sentence, in the numbers of tags; None where there is none."""

    @abstractmethod
    def find_draws(self, words: Sequence[str]) -> tuple[EncodedAnswer, int] | None:
        """Return the usable labellings of a sentence, with the number of samples that they were merged from.

        Args:
            words: Words of the sentence.

        Returns:
            None where there is no usable labelling.
        """

    def encode(self, sentences: Sequence[Sequence[str]]) -> AnsweredText:
        """Return the answers about sentences, all of which have a usable one.

        Args:
            sentences: Lists of words.

        Raises:
            RunError: A sentence has no usable answer.
        """
        answers = list[EncodedAnswer]()
        for words in sentences:
            if (answer := self.find_usable(words)) is None:
                raise RunError(f"the annotator has no usable answer to {' '.join(words)[:60]!r}")
            answers.append(answer)
        return AnsweredText([len(words) for words in sentences], answers, samples=self.samples)


class AnswerReader(Answers):
    """Reads the stored answers of one annotator, by the words of a sentence."""

    def __init__(self, storage: Storage, teacher: AnnotatorTeacher, tag_set: TagSet, unit: Unit):
        self._answers = open_answers(storage, teacher.answers_id)
        self._reading, self._tag_set = teacher.reading(tag_set, unit), tag_set
        self._offers_probabilities = teacher.answers == "probabilities"
        # One scheme for all answers: those with short spans alone would look like IOB2.
        self._bioes = self._offers_probabilities and any(
            _END_OF_SPAN.search(stored.answer) for stored in self._answers
        )

    @property
    @override
    def samples(self) -> int:
        return max(1, self._answers.samples)

    def find(self, words: Sequence[str]) -> StoredAnswer | None:
        """Return the stored answer about a sentence; None where there is none."""
        return self.find_by_key(text_key(words))

    def find_by_key(self, key: bytes) -> StoredAnswer | None:
        """Return the stored answer about the text with a key; None where there is none."""
        return self._answers.find(key)

    @property
    def doubled(self) -> Sequence[str]:
        """Places of further answers to a text that say something else than the first, which counts."""
        return self._answers.doubled

    def parse(self, words: Sequence[str], stored: StoredAnswer) -> Answer:
        """Read an answer as the annotator wrote it, with the labels of the corpus, but for those of probabilities.

        Args:
            words: Words of the sentence.
            stored: Its stored answer.

        Raises:
            UnmappedError: A label is none of the corpus.
            AnswerError: It cannot be used.
        """
        if stored.problem:
            raise AnswerError(stored.problem)
        answer = read_answer(json.loads(stored.answer), words, self._reading, start=stored.start)
        if (answer.probabilities is not None) != self._offers_probabilities:
            form = "probabilities" if answer.probabilities is not None else "labellings"
            raise AnswerError(f"it has {form}; correct teachers.answers")
        return answer

    def read(self, words: Sequence[str], stored: StoredAnswer) -> tuple[Answer, EncodedAnswer]:
        """Read an answer: as the annotator wrote it, and in the numbers of tags.

        Args:
            words: Words of the sentence.
            stored: Its stored answer.

        Raises:
            UnmappedError: A label is none of the corpus.
            AnswerError: It cannot be used.
        """
        answer = self.parse(words, stored)
        return answer, encode_answer(answer, self._tag_set, self._reading.names, bioes=self._bioes)

    def name_faults(self) -> list[str]:
        """Return the names in `labels` that are none of the corpus, as sentences."""
        return self._reading.names.faults()

    def left_over(self, keys: Collection[bytes]) -> int:
        """Return the number of stored answers about texts that are not among those with `keys`."""
        documents = {stored.document for stored in self._answers}
        return sum(stored.key not in keys and stored.key not in documents for stored in self._answers)

    def cut_documents(self, sentences: Iterable[Sequence[str]]) -> Iterator[StoredAnswer]:
        """Yield the places of unanswered sentences in answers about whole documents.

        A sentence of fewer than `FEWEST_VISIBLE` characters is found only where a document begins, or a sentence ends.

        Args:
            sentences: Lists of words.
        """
        unanswered, keys = dict[str, bytes](), set[bytes]()
        for words in sentences:
            keys.add(key := text_key(words))
            if key not in self._answers:
                unanswered[visible_text("".join(words))] = key
        documents = [
            stored
            for stored in self._answers
            if not stored.document and not stored.problem and stored.key not in keys
        ]
        if not unanswered or not documents:
            return
        by_beginning = dict[str, list[str]]()
        for text in sorted(unanswered, key=len, reverse=True):
            by_beginning.setdefault(text[:FEWEST_VISIBLE], []).append(text)
        for stored in documents:
            document = visible_text(record_text(json.loads(stored.answer)))
            start, follows = 0, True
            while start < len(document):
                # The longest first: from a whole beginning down to one character.
                shortest = 1 if follows else FEWEST_VISIBLE
                beginnings = (document[start : start + n] for n in range(FEWEST_VISIBLE, shortest - 1, -1))
                candidates = chain.from_iterable(by_beginning.get(beginning, ()) for beginning in beginnings)
                text = next((text for text in candidates if document.startswith(text, start)), None)
                follows = text is not None
                if text is None:
                    start += 1
                    continue
                if key := unanswered.pop(text, None):
                    yield StoredAnswer(key, "", start=start, document=stored.key)
                start += len(text)

    @override
    def find_usable(self, words: Sequence[str]) -> EncodedAnswer | None:
        stored = self.find(words)
        try:
            return None if stored is None else self.read(words, stored)[1]
        except AnswerError:
            return None

    @override
    def find_draws(self, words: Sequence[str]) -> tuple[EncodedAnswer, int] | None:
        stored = self.find(words)
        try:
            read = None if stored is None else self.read(words, stored)
        except AnswerError:
            return None
        if stored is None or read is None or not read[1].paths:
            return None
        return read[1], stored.samples - len(read[0].unusable)


def sentence_words(table: pa.Table) -> Iterator[Sequence[str]]:
    """Yield the words of the sentences of a corpus part, one block of the table in memory at a time.

    Args:
        table: The part.
    """
    for batch in with_progress(table.select(["tokens"]).to_batches()):
        yield from batch["tokens"].to_pylist()
