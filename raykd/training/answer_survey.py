"""A survey of an annotator's answers to the texts of a corpus, and the corpus of the texts with a usable one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from heapq import nsmallest
from itertools import islice

import numpy as np
import pyarrow as pa

from raykd.corpora.answers import AnswerError, AskedText, text_key
from raykd.corpora.answers.labellings import NOTES, UnmappedError
from raykd.corpora.answers.stored_answer import StoredAnswer
from raykd.corpora.corpus import Corpus, write_corpus
from raykd.errors import CorpusError, RunError
from raykd.pluralise import pluralise
from raykd.progress import with_progress
from raykd.storage.store import Storage
from raykd.teachers import AnnotationsTeacher, AnnotatorTeacher, AskedAnnotator
from raykd.training.answer_reader import AnswerReader, sentence_words
from raykd.transfer.answer_store import batch_names, describe_annotator, has_all_answers, write_answers

BATCH = 5000
"""Answers of a file that are stored in one object."""
MOST_EXAMPLES = 3
TRAINING = ("train", "unlabelled")
"""Parts whose sentences are training text: they need an answer."""


@dataclass
class AnswerSurvey:
    """Counts of an annotator's answers to the texts of a corpus.

    Attributes:
        annotator: The annotator, as it was written.
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

    annotator: AnnotatorTeacher
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

    def messages(self, *, others: bool = False) -> list[str]:
        """Return sentences on the answers that cannot be used, or were changed.

        Args:
            others: True if other annotators label the sentences that lack an answer.
        """
        without = ", labelled by the others alone" if others else " left out"
        scored = "" if others else ": the teacher is scored without them"
        messages = list[str]()
        for kind, words in (("unusable", "an unusable answer"), ("unanswered", "no answer")):
            if count := self.total(kind, *TRAINING):
                problem = f"{pluralise(count, 'training sentence')} with {words}{without}"
                messages.append(problem + (f" ({self._reasons_text()})" if kind == "unusable" else ""))
            if count := self.total(kind, "dev", "test"):
                messages.append(f"{pluralise(count, 'sentence')} of dev and test with {words}{scored}")
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
        CorpusError: A file of answers cannot be read; labels of the annotator are none of the corpus, or `labels` names
            some that are none.
        RunError: More answers are unusable than `most_unusable` allows, or the training text has none.
    """
    pinned = teacher.pinned()
    if isinstance(pinned, AnnotationsTeacher):
        store_given_answers(storage, pinned)
    reader = AnswerReader(storage, pinned, corpus.tag_set, corpus.unit)
    if faults := reader.name_faults():
        raise CorpusError("teachers.labels", None, "; ".join(faults), "correct the names")
    is_asked = isinstance(teacher, AskedAnnotator)
    if not is_asked:
        reader = _with_documents(storage, pinned, corpus, reader)
    first_keys = (
        _first_keys(corpus, teacher.texts, teacher.texts_seed) if is_asked and teacher.texts else None
    )
    survey, keys = AnswerSurvey(teacher, doubled=reader.doubled, samples=reader.samples), set[bytes]()
    for part, table in corpus.parts.items():
        survey.usable[part] = np.zeros(table.num_rows, bool)
        survey.counts[part] = Counter(answered=0, unusable=0, unanswered=0)
        for row, text in enumerate(_texts(table)):
            keys.add(key := text.key)
            stored = reader.find_by_key(key)
            if first_keys is not None and part in TRAINING and key not in first_keys:
                kind = "beyond"
            elif stored is not None:
                kind = _survey_answer(reader, text.words, stored, survey)
            elif is_asked:
                kind, survey.to_ask[key] = "to ask", text
            else:
                kind = "unanswered"
            survey.counts[part][kind] += 1
            survey.usable[part][row] = kind in ("answered", "to ask")
    if not is_asked:  # an annotator that is asked has answers about texts of other corpora
        survey.left_over = reader.left_over(keys)
    _refuse(teacher, corpus, survey)
    return survey


def _first_keys(corpus: Corpus, texts: int, seed: int) -> set[bytes]:
    """Return the first keys of the training text, in an order that depends on the seed and on each text alone."""
    keys = {text_key(words) for part in TRAINING for words in sentence_words(corpus.parts[part])}
    return {*nsmallest(texts, keys, key=lambda key: sha256(f"{seed} ".encode() + key).digest())}


def _survey_answer(
    reader: AnswerReader, words: Sequence[str], stored: StoredAnswer, survey: AnswerSurvey
) -> str:
    """Count the answer about one sentence; return its kind."""
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


def survey_messages(surveys: Sequence[AnswerSurvey]) -> list[str]:
    """Return sentences on the answers of a teacher's annotators that cannot be used, or were changed.

    Args:
        surveys: One of each annotator, of the same corpus.
    """
    if len(surveys) <= 1:
        return [message for survey in surveys for message in survey.messages()]
    messages = [
        f"{survey.annotator.title} (member {number}): {message}"
        for number, survey in enumerate(surveys, start=1)
        for message in survey.messages(others=True)
    ]
    usable = usable_by_any(surveys)
    if left_out := sum(int((~usable[part]).sum()) for part in TRAINING):
        messages.append(f"{pluralise(left_out, 'training sentence')} without a usable answer left out")
    return messages


def usable_by_any(surveys: Sequence[AnswerSurvey]) -> Mapping[str, np.ndarray]:
    """Return for each part the mask of the sentences with a usable answer of any annotator, bool [N].

    Args:
        surveys: One of each annotator, of the same corpus.
    """
    return {part: np.any([survey.usable[part] for survey in surveys], axis=0) for part in surveys[0].usable}


def answered_corpus(corpus: Corpus, usable: Mapping[str, np.ndarray], storage: Storage) -> tuple[Corpus, str]:
    """Return the corpus whose training text has usable answers, and its id; dev and test stay whole.

    Args:
        corpus: The corpus.
        usable: Part → True for the sentences with a usable answer [N].
        storage: The store.
    """
    answered = corpus.select_rows({part: usable[part] for part in TRAINING})
    return answered, write_corpus(answered, storage)


def _with_documents(
    storage: Storage, teacher: AnnotatorTeacher, corpus: Corpus, reader: AnswerReader
) -> AnswerReader:
    """Cut answers about whole documents to the sentences of the corpus, and store where each sentence begins."""
    pieces = list(
        reader.cut_documents(words for table in corpus.parts.values() for words in sentence_words(table))
    )
    if not pieces:
        return reader
    write_answers(storage, teacher.answers_id, len(batch_names(storage, teacher.answers_id)), pieces)
    return AnswerReader(storage, teacher, corpus.tag_set, corpus.unit)


def _texts(table: pa.Table) -> Iterator[AskedText]:
    """Texts of the sentences, with the raw text of a source that has it."""
    columns = ["tokens", "language", *(["text"] if "text" in table.column_names else [])]
    for batch in with_progress(table.select(columns).to_batches()):
        for row in batch.to_pylist():
            words = tuple(row["tokens"])
            yield AskedText(words, row.get("text") or " ".join(words), row["language"])
