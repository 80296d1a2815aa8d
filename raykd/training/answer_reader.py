"""Stored answers of annotators: reading and counting them, and the corpus of the texts with a usable answer."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from heapq import nsmallest
from itertools import chain, islice
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raykd.corpora.answers import (
    Answer,
    AnswerError,
    AskedText,
    read_answer,
    record_text,
    text_key,
    visible_text,
)
from raykd.corpora.answers.labellings import NOTES, UnmappedError
from raykd.corpora.answers.stored_answer import StoredAnswer
from raykd.corpora.corpus import Corpus, write_corpus
from raykd.corpora.sentence import Unit
from raykd.errors import CorpusError, RunError
from raykd.forms import TagSet
from raykd.layers.answered_text import AnsweredText, EncodedAnswer, encode_answer
from raykd.pluralise import pluralise
from raykd.progress import with_progress
from raykd.recipes.run import Run, validate_plain
from raykd.storage.store import Storage
from raykd.tasks import find_task
from raykd.teachers import AnnotationsTeacher, AnnotatorTeacher, AskedAnnotator, TeacherConfig
from raykd.training.data import Part, sentence_languages
from raykd.transfer.answer_store import (
    batch_names,
    describe_annotator,
    has_all_answers,
    open_answers,
    write_answers,
)

if TYPE_CHECKING:
    from raykd.corpora.encoded_text import EncodedText

BATCH = 5000
"""Answers of a file that are stored in one object."""
MOST_EXAMPLES = 3
TRAINING = ("train", "unlabelled")
"""Parts whose sentences are training text: they need an answer."""
_END_OF_SPAN = re.compile(r'(?<!\\)"[ES]-[^"]*":')
"""A key of a distribution that is a tag of BIOES, and none of IOB2."""
FEWEST_VISIBLE = 8
"""Visible characters by which sentences of a document are looked for."""


class AnswerReader:
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
    def samples(self) -> int:
        """Largest number of labellings that any text may have, at least 1."""
        return max(1, self._answers.samples)

    def find(self, words: Sequence[str]) -> StoredAnswer | None:
        """Return the stored answer about a sentence; None where there is none."""
        return self._answers.find(text_key(words))

    @property
    def doubled(self) -> Sequence[str]:
        """Places of further answers to a text that say something else than the first, which counts."""
        return self._answers.doubled

    def read(self, words: Sequence[str], stored: StoredAnswer) -> tuple[Answer, EncodedAnswer]:
        """Read an answer: as the annotator wrote it, and in the numbers of tags.

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

    def find_usable(self, words: Sequence[str]) -> EncodedAnswer | None:
        """Return the usable answer about a sentence, in the numbers of tags; None where there is none."""
        stored = self.find(words)
        try:
            return None if stored is None else self.read(words, stored)[1]
        except AnswerError:
            return None

    def find_draws(self, words: Sequence[str]) -> tuple[EncodedAnswer, int] | None:
        """Return the usable labellings of a sentence, with the number of samples that they were merged from.

        Args:
            words: Words of the sentence.

        Returns:
            None where there is no usable labelling.
        """
        stored = self.find(words)
        try:
            read = None if stored is None else self.read(words, stored)
        except AnswerError:
            return None
        if stored is None or read is None or not read[1].paths:
            return None
        return read[1], stored.samples - len(read[0].unusable)

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


def answer_reader(storage: Storage, run: Run, tag_set: TagSet) -> AnswerReader | None:
    """Return the reader of the answers of a run's annotator; None for a run of a model.

    Args:
        storage: The store.
        run: The run.
        tag_set: Tags of its corpus.
    """
    if run.role != "teacher":
        return None
    teacher = validate_plain(TeacherConfig, run.model)
    if not isinstance(teacher, AnnotatorTeacher):
        return None
    return AnswerReader(storage, teacher, tag_set, find_task(run.task).unit)


@dataclass
class AnswerSurvey:
    """Counts of an annotator's answers to the texts of a corpus.

    Attributes:
        usable: Part → mask of the sentences with a usable answer, or still to be asked about, bool [N].
        counts: Part → answered, unusable and unanswered sentences; of an annotator that is asked, also those to ask
            about, and those beyond `texts`.
        notes: Kind of note → number.
        reasons: Reason why answers are unusable → number.
        unmapped: Label that is none of the corpus → number of answers with it.
        examples: Kind of note, reason or label → an example.
        to_ask: Key → text about which the annotator is still to be asked.
        doubled: Places of further answers to a text that say something else; the first counts.
        left_over: Stored answers about no text of the corpus.
        samples: Largest number of labellings of a text.
    """

    usable: dict[str, np.ndarray] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    unmapped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    to_ask: dict[bytes, AskedText] = field(default_factory=dict)
    doubled: Sequence[str] = ()
    left_over: int = 0
    samples: int = 0

    def total(self, kind: str, *parts: str) -> int:
        """Return the number of sentences of a kind in some parts, or in all."""
        return sum(counts[kind] for part, counts in self.counts.items() if not parts or part in parts)

    def messages(self) -> list[str]:
        """Return sentences on the answers that cannot be used, or were changed."""
        messages = list[str]()
        for kind, words in (("unusable", "an unusable answer"), ("unanswered", "no answer")):
            if count := self.total(kind, *TRAINING):
                problem = f"{pluralise(count, 'training sentence')} with {words} left out"
                messages.append(problem + (f" ({self._reasons_text()})" if kind == "unusable" else ""))
            if count := self.total(kind, "dev", "test"):
                messages.append(
                    f"{pluralise(count, 'sentence')} of dev and test with {words}: the teacher is scored without them"
                )
        if count := self.reasons["sample"]:
            messages.append(f"{pluralise(count, 'unusable sample')} dropped ({self.examples['sample']})")
        messages += [f"{count:,} {NOTES[kind]} ({self.examples[kind]})" for kind, count in self.notes.items()]
        if self.doubled:
            texts = pluralise(len(self.doubled), "further answer")
            messages.append(f"{texts} to texts that have another one, left out ({self.doubled[0]})")
        if self.left_over:
            messages.append(f"{pluralise(self.left_over, 'answer')} to texts that are not in the corpus")
        return messages

    def _reasons_text(self) -> str:
        reasons = [(reason, count) for reason, count in self.reasons.most_common() if reason != "sample"]
        return "; ".join(f"{count} × {reason}" for reason, count in reasons[:MOST_EXAMPLES])


def store_given_answers(storage: Storage, teacher: AnnotationsTeacher) -> None:
    """Store the answers that an annotator has in files, once.

    Args:
        storage: The store.
        teacher: The annotator, pinned.

    Raises:
        CorpusError: A file cannot be read.
    """
    if has_all_answers(storage, teacher.answers_id):
        return
    answers = (
        StoredAnswer(text_key(raw.text), raw.answer, origin=raw.origin, samples=raw.samples)
        for raw in teacher.given_answers()
    )
    for number, batch in enumerate(iter(lambda: list(islice(answers, BATCH)), [])):
        write_answers(storage, teacher.answers_id, number, batch)
    describe_annotator(storage, teacher.answers_id, teacher.description)


def survey_answers(storage: Storage, teacher: AnnotatorTeacher, corpus: Corpus) -> AnswerSurvey:
    """Read the answers to all sentences of a corpus, and count what cannot be used.

    Args:
        storage: The store.
        teacher: The annotator.
        corpus: The corpus.

    Raises:
        CorpusError: Labels of the annotator are none of the corpus; `teachers.labels` names labels that are none.
        RunError: More answers are unusable than `most_unusable` allows, or the training text has none.
    """
    pinned = teacher.pinned()
    reader = AnswerReader(storage, pinned, corpus.tag_set, corpus.unit)
    if faults := reader.name_faults():
        raise CorpusError("teachers.labels", None, "; ".join(faults), "correct the names")
    is_asked = isinstance(teacher, AskedAnnotator)
    if not is_asked:
        reader = _with_documents(storage, pinned, corpus, reader)
    wanted = _wanted_keys(corpus, teacher.texts, teacher.texts_seed) if is_asked and teacher.texts else None
    survey, keys = AnswerSurvey(doubled=reader.doubled, samples=reader.samples), set[bytes]()
    for part, table in corpus.parts.items():
        survey.usable[part] = np.zeros(table.num_rows, bool)
        survey.counts[part] = Counter(answered=0, unusable=0, unanswered=0)
        for row, asked in enumerate(_asked_texts(table)):
            keys.add(key := asked.key)
            if wanted is not None and part in TRAINING and key not in wanted:
                kind = "beyond"
            elif is_asked and reader.find(asked.words) is None:
                kind, survey.to_ask[key] = "to ask", asked
            else:
                kind = _survey_sentence(reader, asked.words, survey)
            survey.counts[part][kind] += 1
            survey.usable[part][row] = kind in ("answered", "to ask")
    if not is_asked:  # an annotator that is asked has answers about texts of other corpora
        survey.left_over = reader.left_over(keys)
    _refuse(teacher, corpus, survey)
    return survey


def _wanted_keys(corpus: Corpus, texts: int, seed: int) -> set[bytes]:
    """Return the first keys of the training text, in an order that depends on the seed and on each text alone."""
    keys = {text_key(words) for part in TRAINING for words in _sentences(corpus.parts[part])}
    return {*nsmallest(texts, keys, key=lambda key: sha256(f"{seed} ".encode() + key).digest())}


def _survey_sentence(reader: AnswerReader, words: Sequence[str], survey: AnswerSurvey) -> str:
    """Count one sentence; return its kind."""
    stored = reader.find(words)
    if stored is None:
        return "unanswered"
    try:
        answer, _ = reader.read(words, stored)
    except UnmappedError as error:
        survey.unmapped[error.label] += 1
        survey.examples.setdefault(error.label, stored.origin)
        return "unusable"
    except AnswerError as error:
        survey.reasons[str(error)] += 1
        survey.examples.setdefault(str(error), stored.origin)
        return "unusable"
    survey.notes.update(answer.notes)
    for kind, example in answer.examples.items():
        survey.examples.setdefault(kind, example)
    if answer.unusable:
        survey.reasons["sample"] += len(answer.unusable)
        survey.examples.setdefault("sample", f"{stored.origin}: {answer.unusable[0]}")
    return "answered"


def _refuse(teacher: AnnotatorTeacher, corpus: Corpus, survey: AnswerSurvey) -> None:
    if survey.unmapped:
        labels = ", ".join(f"{label} ({count:,})" for label, count in survey.unmapped.most_common())
        first = survey.unmapped.most_common(1)[0][0]
        raise CorpusError(
            survey.examples[first], None,
            f"the annotator has labels that are none of the corpus: {labels}",
            f'name them in teachers.labels ({{{first}: {corpus.tag_set.labels[0]}}}; "*": O leaves all others out); '
            f"the corpus has {', '.join(corpus.tag_set.labels)}",
        )  # fmt: skip
    answered, unusable = survey.total("answered"), survey.total("unusable")
    if unusable > teacher.most_unusable * (answered + unusable):
        reasons = [reason for reason, _ in survey.reasons.most_common() if reason != "sample"][:MOST_EXAMPLES]
        examples = "; ".join(f"{survey.examples[reason]}: {reason}" for reason in reasons)
        raise RunError(
            f"{unusable:,} of {answered + unusable:,} answers cannot be used, more than teachers.most_unusable: "
            f"{teacher.most_unusable}. {examples}"
        )
    if not survey.to_ask and not survey.total("answered", *TRAINING):
        raise RunError(
            "the annotator has no answer to any text of train and unlabelled; texts must have the same visible "
            "characters: compare the first of its texts with the first of the corpus"
        )


def answered_corpus(corpus: Corpus, survey: AnswerSurvey, storage: Storage) -> tuple[Corpus, str]:
    """Return the corpus whose training text has usable answers, and its id; dev and test stay whole.

    Args:
        corpus: The corpus.
        survey: Of its answers.
        storage: The store.
    """
    masks = {part: survey.usable[part] for part in TRAINING}
    answered = corpus.select_rows(masks)
    return answered, write_corpus(answered, storage)


def _with_documents(
    storage: Storage, teacher: AnnotatorTeacher, corpus: Corpus, reader: AnswerReader
) -> AnswerReader:
    """Cut answers about whole documents to the sentences of the corpus, and store where each sentence begins."""
    pieces = list(
        reader.cut_documents(words for table in corpus.parts.values() for words in _sentences(table))
    )
    if not pieces:
        return reader
    write_answers(storage, teacher.answers_id, len(batch_names(storage, teacher.answers_id)), pieces)
    return AnswerReader(storage, teacher, corpus.tag_set, corpus.unit)


def _asked_texts(table: pa.Table) -> Iterator[AskedText]:
    """Texts of the sentences, with the raw text of a source that has it."""
    columns = ["tokens", "language", *(["text"] if "text" in table.column_names else [])]
    for batch in with_progress(table.select(columns).to_batches()):
        for row in batch.to_pylist():
            words = tuple(row["tokens"])
            yield AskedText(words, row.get("text") or " ".join(words), row["language"])


def _sentences(table: pa.Table) -> Iterator[Sequence[str]]:
    """Words of the sentences, one block of the table in memory at a time."""
    for batch in with_progress(table.select(["tokens"]).to_batches()):
        yield from batch["tokens"].to_pylist()


def answered_part(corpus: Corpus, run: Run, part: str, reader: AnswerReader) -> Part:
    """Return the sentences of a part that have a usable answer, with their gold labels.

    Args:
        corpus: The corpus.
        run: Run of the annotator.
        part: Name of the part.
        reader: Of its answers.
    """
    form, table = find_task(run.task).form, corpus.parts[part]
    answers = [reader.find_usable(words) for words in _sentences(table)]
    answered = table.filter(pa.array([answer is not None for answer in answers], pa.bool_()))
    lengths = pc.call_function("list_value_length", [answered["tokens"]]).to_pylist()
    usable = [answer for answer in answers if answer is not None]
    text = AnsweredText(lengths, usable, samples=reader.samples)
    labels = form.targets(answered.select(form.columns), pos=corpus.pos, labels=corpus.tag_set)
    # Its batches hold answers in place of pieces, and only the annotator's model reads them.
    return Part(form, cast("EncodedText", text), labels, sentence_languages(answered))
