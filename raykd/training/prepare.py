"""Preparation of a recipe: its corpus and vocabularies are stored, its teachers planned, all ids known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
from pydantic import BaseModel, TypeAdapter

from raykd.corpora.config import CorpusConfig
from raykd.corpora.corpus import Corpus, read_corpus, write_corpus
from raykd.corpora.source import REST
from raykd.corpora.stored_sources import find_corpus, restricted_corpus
from raykd.errors import CorpusError, SignalError
from raykd.identity import PlainObject
from raykd.layers.stage_schedule import Duration, ScheduleConfig
from raykd.objectives import Gold
from raykd.recipes.recipe import Recipe, Stage, resolve_stage
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import store_vocabulary
from raykd.redact import redact
from raykd.signals import Need, Sizes
from raykd.storage.store import Storage
from raykd.students import Student
from raykd.teachers import AnswerTeacher, Teacher
from raykd.training.answer_survey import (
    AnswerSurvey,
    answered_corpus,
    survey_answers,
    usable_by_any,
)
from raykd.training.model_folder import teacher_signals_id
from raykd.training.teacher_answers import open_answers_of
from raykd.training.teacher_labels import labelled_by_teacher, labels_of_config
from raykd.transfer import Text, signal_id

ReadCorpus = Callable[[CorpusConfig], Corpus]
"""Reads the corpus of a section `corpus`."""


@dataclass(frozen=True)
class PlannedTeacher:
    """A teacher, trained or not yet, and the text of the signals."""

    run: Run
    languages: tuple[str, ...]
    text: Text
    config: Teacher
    """Configuration of the teacher: its offers, its sizes."""
    samples: int = 0
    """Largest number of labellings of a text, for an annotator."""

    @property
    def name(self) -> str:
        """The teacher's name in messages: kind, languages, and how it decodes if not as usual."""
        independent = " independent" if self.run.decoding == "independent" else ""
        return f"{self.config.title} {' '.join(self.languages)}{independent}"

    def signal_id(self, need: Need, text: Text) -> str:
        """Return the id of one of the teacher's signals for a text.

        Args:
            need: the signal.
            text: the text.
        """
        run = self.run
        return signal_id(need, teacher_id=teacher_signals_id(run), text_id=text.id, decoding=run.decoding)

    @property
    def members(self) -> tuple[tuple[str, Run], ...]:
        """Names and runs of the models to train: the teacher itself, or each seed of an ensemble."""
        kind = f"{self.run.model['kind']} {' '.join(self.languages)}"
        seeds = tuple((f"{kind} seed {member.training['seed']}", member) for member in self.run.members)
        return seeds or ((self.name, self.run),)

    def sizes(self, tags: int, needs: Iterable[Need]) -> Sizes:
        """Return the sizes that decide the shapes of the teacher's signals.

        Args:
            tags: number of the teacher's labels.
            needs: the signals; their layers decide which hidden sizes are included.
        """
        layers = {need.layer for need in needs if need.layer is not None}
        return Sizes(tags, {layer: self.hidden_size(layer) for layer in layers}, samples=self.samples)

    def hidden_size(self, layer: int) -> int:
        """Return the number of components of a layer's hidden states.

        Raises:
            SignalError: the teacher has no such layer.
        """
        try:
            return self.config.hidden_size(layer)
        except ValueError as error:
            raise SignalError(f"teacher {self.name}: {error}") from error


@dataclass(frozen=True)
class Preparation:
    """Corpus and teachers of a recipe, in the store.

    Attributes:
        texts: Languages → the text on which students of these languages are trained.
        surveys: Counts of the answers of each annotator.
    """

    storage: Storage
    corpus: Corpus
    corpus_id: str
    teachers: tuple[PlannedTeacher, ...]
    corpora: dict[tuple[str, ...], tuple[Corpus, str]] = field(default_factory=dict, repr=False)
    """Languages → the corpus restricted to them, with its id; made when it is first needed."""
    texts: dict[tuple[str, ...], Text] = field(default_factory=dict, repr=False)
    surveys: tuple[AnswerSurvey, ...] = ()

    @property
    def unlabelled(self) -> bool:
        """True if the corpus has unlabelled text."""
        return self.corpus.parts["unlabelled"].num_rows > 0

    def corpus_for(self, languages: tuple[str, ...]) -> tuple[Corpus, str]:
        """Return the corpus restricted to some languages, and its id in the store."""
        if languages not in self.corpora:
            self.corpora[languages] = restricted_corpus(self.corpus, self.corpus_id, languages, self.storage)
        return self.corpora[languages]

    def text_for(self, languages: tuple[str, ...]) -> Text:
        """Return the training text of students of some languages."""
        if languages not in self.texts:
            # Not `corpus_for`: the text alone does not need the restricted corpus in the store.
            stored = self.corpora.get(languages)
            self.texts[languages] = training_text(
                stored[0] if stored else self.corpus.select_languages(languages)
            )
        return self.texts[languages]


def prepare(recipe: Recipe, storage: Storage, read: ReadCorpus = read_corpus) -> Preparation:
    """Find the corpus of a recipe in the store, or read and store it, and plan the teachers.

    Args:
        recipe: the recipe.
        storage: the store.
        read: reads the corpus if it is not stored; tests and `plan` replace it.

    Returns:
        The corpus, its id and the teachers; no teachers if the recipe's teachers offer no signals.

    Raises:
        CorpusError: the corpus cannot be read, or does not fit the task.
    """
    corpus, corpus_id = find_corpus(recipe.corpus, storage, read)
    if labels := recipe.corpus.annotator_labels:
        corpus = labels_of_config(corpus, labels, recipe.task_entry)
    recipe.task_entry.check(corpus, corpus_place(recipe))
    surveys: tuple[AnswerSurvey, ...] = ()
    if isinstance(recipe.teachers, AnswerTeacher):
        surveys = tuple(
            survey_answers(storage, annotator, corpus) for annotator in recipe.teachers.annotators
        )
        usable = usable_by_any(surveys)
        if recipe.corpus.annotator_labels:
            answers = open_answers_of(storage, recipe.teachers.pinned(), corpus.tag_set, corpus.unit)
            corpus = labelled_by_teacher(corpus, usable, answers)
            corpus_id = write_corpus(corpus, storage)
        else:
            corpus, corpus_id = answered_corpus(corpus, usable, storage)
    preparation = Preparation(storage, corpus, corpus_id, (), surveys=surveys)
    return replace(preparation, teachers=tuple(_teachers(recipe, preparation, read)))


def _teachers(recipe: Recipe, preparation: Preparation, read: ReadCorpus) -> Iterable[PlannedTeacher]:
    if not recipe.teachers.offers:
        return
    corpus, storage = preparation.corpus, preparation.storage
    per_language = recipe.teachers.scope == "language" and len(corpus.languages) > 1
    # A language without labels has no monolingual teacher, so only source languages count.
    groups = [(language,) for language in corpus.sources] if per_language else [tuple(corpus.languages)]
    full_corpus, full_id = _teacher_corpus(recipe, preparation, read)
    for languages in groups:
        if full_id == preparation.corpus_id:
            training_corpus, training_id = preparation.corpus_for(languages)
        else:
            training_corpus, training_id = restricted_corpus(full_corpus, full_id, languages, storage)
        # A given teacher is identified by its weights, not by its path.
        teacher = recipe.teachers.pinned(only_language(languages))
        run = model_run(recipe, teacher, training_corpus, training_id, storage)
        samples = max((survey.samples for survey in preparation.surveys), default=0)
        yield PlannedTeacher(run, languages, preparation.text_for(languages), teacher, samples)


def _teacher_corpus(recipe: Recipe, preparation: Preparation, read: ReadCorpus) -> tuple[Corpus, str]:
    """The training corpus of teachers, and its id: the students' corpus, unless `teacher_corpus` differs."""
    corpus = preparation.corpus
    if not recipe.teachers.trained:
        # A given teacher is only evaluated. Without training text in its corpus, its id does not depend on that text.
        empty = {part: corpus.parts[part].slice(0, 0) for part in ("train", "unlabelled")}
        evaluated = replace(corpus, parts={**corpus.parts, **empty})
        return evaluated, write_corpus(evaluated, preparation.storage)
    overrides = {} if recipe.teacher_corpus is None else as_json(recipe.teacher_corpus)
    overrides = {name: value for name, value in overrides.items() if value != "same"}
    if not overrides:
        return corpus, preparation.corpus_id
    settings = {**as_json(recipe.corpus), **overrides, **(_uncapped(recipe) if "cap" in overrides else {})}
    config = TypeAdapter(CorpusConfig).validate_json(json.dumps(settings))
    teacher_corpus, teacher_corpus_id = find_corpus(config, preparation.storage, read)
    _check_same_tags(teacher_corpus, corpus, recipe)
    return teacher_corpus, teacher_corpus_id


def _uncapped(recipe: Recipe) -> PlainObject:
    """Settings of a corpus without the students' cap: no class is capped, and no text is left unlabelled."""
    unlabelled = as_json(recipe.corpus).get("unlabelled")
    if isinstance(unlabelled, dict):
        unlabelled = {name: pattern for name, pattern in unlabelled.items() if pattern != REST}
    elif unlabelled == REST:
        unlabelled = None
    text = {"unlabelled": unlabelled} if "unlabelled" in as_json(recipe.corpus) else {}
    return {"cap_per_class": None, **text}


def _check_same_tags(teacher_corpus: Corpus, corpus: Corpus, recipe: Recipe) -> None:
    if (teacher_corpus.tag_set, teacher_corpus.pos) == (corpus.tag_set, corpus.pos):
        return
    differing = sorted(
        {*teacher_corpus.tag_set.tags, *teacher_corpus.pos} ^ {*corpus.tag_set.tags, *corpus.pos}
    )
    raise CorpusError(
        corpus_place(recipe), None,
        f"the teachers' sentences and the students' have different tags ({', '.join(differing)})",
        "raise corpus.cap until every tag occurs, or omit teacher_corpus",
    )  # fmt: skip


def training_text(corpus: Corpus) -> Text:
    """Return the training text of students: labelled sentences, then unlabelled ones."""
    parts = [corpus.parts[part]["tokens"] for part in ("train", "unlabelled")]
    return Text.from_tokens(
        pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    )


def share_texts(preparations: Sequence[Preparation]) -> list[Preparation]:
    """Return the preparations with one shared text per teacher, so that signals are computed only once.

    A teacher of several preparations labels the union of their texts, the largest first. Each preparation then reads
    the signals of its own sentences.

    Args:
        preparations: of recipes that may share teachers.
    """
    texts: dict[str, list[Text]] = {}
    for teacher in (teacher for preparation in preparations for teacher in preparation.teachers):
        texts.setdefault(teacher.run.id, []).append(teacher.text)
    unions = {run_id: Text.union(texts_of_teacher) for run_id, texts_of_teacher in texts.items()}
    return [
        replace(
            preparation,
            teachers=tuple(replace(teacher, text=unions[teacher.run.id]) for teacher in preparation.teachers),
        )
        for preparation in preparations
    ]


def model_run(
    recipe: Recipe, config: Teacher | Student, corpus: Corpus, corpus_id: str, storage: Storage
) -> Run:
    """Return the run of a teacher on gold labels, or a student's run without stages and settings of training.

    Args:
        recipe: the recipe.
        config: of the model, with the checksums of the files that it reads (`pinned`).
        corpus: the corpus.
        corpus_id: of the corpus.
        storage: the store, which gets the vocabulary.
    """
    # Sampling of languages has no effect where there is only one.
    alpha = recipe.corpus.sampling_alpha if len(corpus.languages) > 1 else 1.0
    vocabulary = store_vocabulary(
        storage, config.tokenizer, corpus, corpus_id, sampling_alpha=alpha,  # type: ignore[arg-type]  # resolved
        characters=config.reads_characters, contextual=config.contextual,
    )  # fmt: skip
    role: Literal["teacher", "student"] = "student"
    stages: tuple[PlainObject, ...] = ()
    training: PlainObject = {}
    if isinstance(config, Teacher):
        role, training = "teacher", as_json(config.training)
        if not config.gives_answers:
            length = {name: getattr(config, name) for name in Duration.model_fields}
            gold = Stage(objective=Gold(), schedule=ScheduleConfig(**length))
            stages = (resolve_stage(gold, recipe, unlabelled=False),)
    return Run(
        role=role, task=recipe.task_entry.name, corpus_id=corpus_id, vocabulary_id=vocabulary.id, model=as_json(config),
        stages=stages, training=training, sampling_alpha=alpha,
        decoding=recipe.decoding if recipe.task_entry.form.constrained and config.gives_chain else "",
    )  # fmt: skip


def corpus_place(recipe: Recipe) -> str:
    """Return the folder of the recipe's corpus, or its source if it has no folder, for messages."""
    return redact(str(getattr(recipe.corpus, "root", recipe.corpus.source)))


def only_language(languages: Sequence[str]) -> str | None:
    """Return the language of a monolingual model; None if there are several."""
    return languages[0] if len(languages) == 1 else None


def as_json(config: BaseModel) -> PlainObject:
    """Return a configuration model as plain data."""
    return config.model_dump(mode="json")
