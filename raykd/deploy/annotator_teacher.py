"""An annotator as the teacher of a cascade: a function, a pipeline or a service that is asked as texts come.

Shapes: T labels of a sentence, Y tags.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from raykd.corpora.answers import AnswerError, AskedText, answer_json, read_answer
from raykd.corpora.sentence import Unit
from raykd.errors import ExportError
from raykd.forms import TagSet, labels_from
from raykd.layers.answered_text import EncodedAnswer, encode_answer
from raykd.recipes.run import Run, validate_plain
from raykd.serving.labeller import TEACHER, Answer, Ask, Chain, best_path
from raykd.serving.labeller.lattice import legal_chain
from raykd.storage.layout import LABELS
from raykd.storage.store import Storage
from raykd.teachers import AskedAnnotator, TeacherConfig
from raykd.training.label_sets import legal_as_json
from raykd.training.model_folder import model_config
from raykd.training.teacher_answers import open_answers_of
from raykd.transfer.answer_store import annotator_description


def asked_annotator(run: Run) -> AskedAnnotator:
    """Return the annotator of a run; raise ExportError if it cannot be asked about new texts."""
    annotator = model_config(run)
    if not isinstance(annotator, AskedAnnotator):
        problem = f"teacher {annotator.kind} has stored answers and cannot be asked about new texts"
        raise ExportError(f"{problem}; name another teacher with --teacher")
    return annotator


def source_files(annotator: AskedAnnotator, store: Storage) -> Mapping[str, bytes]:
    """Return the Python file of an annotator, by its name; empty for what is installed.

    Args:
        annotator: The annotator.
        store: Store whose description of the annotator says where the file was.

    Raises:
        MissingError: The file is not found.
    """
    described = annotator_description(store, annotator.pinned().answers_id).get("source", "")
    source = annotator.find_source([Path.cwd(), Path(described).parent])
    return {Path(source.path).name: source.content.encode()} if source.content else {}


def stored_answers(annotator: AskedAnnotator, store: Storage, tag_set: TagSet, unit: Unit) -> Ask:
    """Return the stored answers of an annotator as those of a teacher: nothing is asked.

    Args:
        annotator: The annotator.
        store: The store.
        tag_set: Tags of the corpus.
        unit: Unit that has one label.
    """
    answers, decoding = open_answers_of(store, annotator.pinned(), tag_set, unit), _legal(tag_set)

    def ask(sentences: Sequence[Sequence[str]], batch: int) -> list[Answer | None]:
        found = (answers.find_usable(words) for words in sentences)
        return [None if encoded is None else _answer(encoded, tag_set, decoding) for encoded in found]

    return ask


def open_annotator(folder: Path, card: Mapping[str, Any]) -> Ask:
    """Return the annotator of a cascade, which is opened when it is first asked.

    Args:
        folder: Folder of the cascade.
        card: Content of its `export.json`.
    """
    return AnnotatorTeacher(folder, card).ask


class AnnotatorTeacher:
    """Asks an annotator about sentences as they come.

    Args:
        folder: Folder of the cascade.
        card: Content of its `export.json`.
    """

    def __init__(self, folder: Path, card: Mapping[str, Any]):
        annotator = validate_plain(TeacherConfig, card["cascade"]["annotator"])
        assert isinstance(annotator, AskedAnnotator)
        self._annotator, self._folder = annotator, folder / TEACHER
        labels = json.loads((folder / LABELS).read_text(encoding="utf-8"))
        self._tag_set: Any = labels_from({name: value for name, value in labels.items() if name != "legal"})
        self._reading = annotator.reading(self._tag_set, card["unit"])
        languages = card.get("languages") or [""]
        self._language = languages[0] if len(languages) == 1 else ""
        self._decoding = _legal(self._tag_set)

    @cached_property
    def _label(self) -> Any:
        return self._annotator.open(self._annotator.find_source([self._folder, Path.cwd()]))

    def ask(self, sentences: Sequence[Sequence[str]], batch: int) -> list[Answer | None]:
        """Return the answers about sentences; None for one that cannot be used.

        Args:
            sentences: Words of each sentence.
            batch: Has no effect: the annotator has a batch size of its own.
        """
        answers: list[Answer | None] = []
        size = self._annotator.batch_size
        for first in range(0, len(sentences), size):
            some = sentences[first : first + size]
            texts = [AskedText(tuple(words), " ".join(words), self._language) for words in some]
            answers += [
                self._read(text, value) for text, value in zip(texts, self._label(texts), strict=True)
            ]
        return answers

    def _read(self, text: AskedText, value: Any) -> Answer | None:
        try:
            record = json.loads(answer_json(value, text, self._annotator.answers))
            answer = read_answer(record, text.words, self._reading)
            encoded = encode_answer(answer, self._tag_set, self._reading.names, bioes=False)
        except AnswerError:
            return None
        return _answer(encoded, self._tag_set, self._decoding)


def _legal(tag_set: TagSet) -> Chain | None:
    legal = tag_set.legal()
    return None if legal is None else legal_chain(legal_as_json(legal), len(tag_set))


def _answer(encoded: EncodedAnswer, tag_set: TagSet, decoding: Chain | None) -> Answer:
    """Return the best labelling and the logarithms of the probabilities of tags."""
    scores_TY = encoded.log_marginals(len(tag_set)).numpy()
    return Answer(tuple(tag_set.tags), best_path(scores_TY, decoding), scores_TY, decoding, 1.0)
