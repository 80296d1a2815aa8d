"""Preparation: from a recipe to runs. Corpus and vocabularies are stored, and all ids are known before training."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
from pydantic import BaseModel, TypeAdapter

from raykd.corpora.config import CorpusConfig
from raykd.corpora.corpus import Corpus, read_corpus, write_corpus
from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.source import REST
from raykd.corpora.stored_sources import find_corpus, restricted_corpus
from raykd.corpora.word_pieces import Vocabulary
from raykd.errors import CorpusError, RunError, SignalError, StoreError
from raykd.identity import PlainObject
from raykd.layers.stage_schedule import Duration, ScheduleConfig
from raykd.needs import live_signals, signals_to_store
from raykd.objectives import Gold
from raykd.recipes.recipe import Recipe, Stage, names_text, resolve_stage, resolve_vocabulary, stage_needs
from raykd.recipes.run import Run, Source, find_starting_run
from raykd.recipes.stored_vocabulary import open_vocabulary, store_vocabulary
from raykd.redact import redact
from raykd.signals import Need, Sizes
from raykd.storage.store import Storage
from raykd.students import Student
from raykd.teachers import AnnotatorTeacher, Teacher
from raykd.training.answer_reader import AnswerSurvey, answered_corpus, store_given_answers, survey_answers
from raykd.training.embeddings import embedding_source
from raykd.training.label_sets import store_labels
from raykd.training.model_folder import teacher_signals_id
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
        seeds = tuple((f"{kind} seed {m.training['seed']}", m) for m in self.run.members)
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
        survey: Counts of the answers, where the teacher is an annotator.
    """

    storage: Storage
    corpus: Corpus
    corpus_id: str
    teachers: tuple[PlannedTeacher, ...]
    parts: dict[tuple[str, ...], tuple[Corpus, str]] = field(default_factory=dict, repr=False)
    """Languages → the corpus restricted to them, with its id; made when it is first needed."""
    texts: dict[tuple[str, ...], Text] = field(default_factory=dict, repr=False)
    survey: AnswerSurvey | None = None

    @property
    def unlabelled(self) -> bool:
        """True if the corpus has unlabelled text."""
        return self.corpus.parts["unlabelled"].num_rows > 0

    def corpus_for(self, languages: tuple[str, ...]) -> tuple[Corpus, str]:
        """Return the corpus restricted to some languages, and its id in the store."""
        if languages not in self.parts:
            self.parts[languages] = restricted_corpus(self.corpus, self.corpus_id, languages, self.storage)
        return self.parts[languages]

    def text_for(self, languages: tuple[str, ...]) -> Text:
        """Return the training text of students of some languages."""
        if languages not in self.texts:
            stored = self.parts.get(languages)
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
        The corpus, its id and the teachers.

    Raises:
        CorpusError: the corpus cannot be read, or does not fit the task.
    """
    corpus, name = find_corpus(recipe.corpus, storage, read)
    recipe.task_entry.check(corpus, _place(recipe))
    survey = None
    if isinstance(recipe.teachers, AnnotatorTeacher):
        annotator = recipe.teachers.pinned()
        store_given_answers(storage, annotator)
        survey = survey_answers(storage, annotator, corpus)
        corpus, name = answered_corpus(corpus, survey, storage)
    preparation = Preparation(storage, corpus, name, (), survey=survey)
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
        teacher = recipe.teachers.pinned(_one(languages))
        run = model_run(recipe, teacher, training_corpus, training_id, storage)
        samples = preparation.survey.samples if preparation.survey else 0
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
    teacher_corpus, name = find_corpus(config, preparation.storage, read)
    _check_same_tags(teacher_corpus, corpus, recipe)
    return teacher_corpus, name


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
        _place(recipe), None,
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


def model_run(recipe: Recipe, config: Teacher | Student, corpus: Corpus, name: str, storage: Storage) -> Run:
    """Return a run on the gold labels of a corpus: a teacher's run, or the base of a student's.

    Args:
        recipe: the recipe.
        config: of the model, pinned.
        corpus: the corpus.
        name: id of the corpus.
        storage: the store, which gets the vocabulary.
    """
    # Sampling of languages has no effect where there is only one.
    alpha = recipe.corpus.sampling_alpha if len(corpus.languages) > 1 else 1.0
    vocabulary = store_vocabulary(
        storage, config.tokenizer, corpus, name, sampling_alpha=alpha,  # type: ignore[arg-type]  # resolved
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
        role=role, task=recipe.task, corpus_id=name, vocabulary_id=vocabulary.id, model=as_json(config), stages=stages,
        training=training, sampling_alpha=alpha,
        decoding=recipe.decoding if recipe.task_entry.form.constrained and config.gives_chain else "",
    )  # fmt: skip


def student_runs(recipe: Recipe, preparation: Preparation) -> tuple[Run, ...]:
    """Return the runs of the recipe's student: one, or one per language with `scope: language`.

    Args:
        recipe: the recipe.
        preparation: of the recipe.
    """
    corpus = preparation.corpus
    monolingual = recipe.scoped_student.scope == "language" and len(corpus.languages) > 1
    groups = [(language,) for language in corpus.languages] if monolingual else [tuple(corpus.languages)]
    return tuple(_student_run(recipe, preparation, languages) for languages in groups)


def seed_runs(recipe: Recipe, preparation: Preparation, seeds: int) -> tuple[tuple[Run, ...], ...]:
    """Return the runs of the recipe's student for several seeds: `training.seed` and the numbers after it.

    Args:
        recipe: the recipe.
        preparation: of the recipe.
        seeds: number of seeds.

    Returns:
        For each seed the runs of `student_runs`.
    """
    if recipe.names_seed:
        return tuple(student_runs(recipe.with_seed_offset(offset), preparation) for offset in range(seeds))
    runs = student_runs(recipe, preparation)
    return tuple(tuple(with_seed_offset(run, offset) for run in runs) for offset in range(seeds))


def _student_run(recipe: Recipe, preparation: Preparation, languages: tuple[str, ...]) -> Run:
    corpus, name = preparation.corpus_for(languages)
    student = _resolved_student(recipe, preparation).pinned(_one(languages))
    base_run = model_run(recipe, student, corpus, name, preparation.storage)
    unlabelled = corpus.parts["unlabelled"].num_rows > 0
    if not unlabelled and any(names_text(stage, "unlabelled") for stage in recipe.all_stages):
        raise CorpusError(
            _place(recipe), None,
            f"a stage is trained on unlabelled text, and there is none of {', '.join(languages)}",
            "lower corpus.cap where unlabelled: rest takes what it leaves, or name the text in corpus.unlabelled",
        )  # fmt: skip
    needs = recipe_needs(recipe, unlabelled=unlabelled)
    _check_live(preparation, base_run, needs)
    sources = [_source(teacher, preparation, languages, needs) for teacher in preparation.teachers]
    return replace(
        base_run,
        labels_id=store_labels(
            preparation.storage, recipe.task_entry, student.encoding, corpus, name, _place(recipe)
        ),
        stages=tuple(resolve_stage(stage, recipe, unlabelled=unlabelled) for stage in recipe.all_stages),
        training=as_json(recipe.training),
        sources=tuple(source for source in sources if source is not None) if needs else (),
        start_from=_start_from(recipe, preparation.storage),
        embeddings_from=embedding_source(
            student, {t.name: t.run for t in preparation.teachers if set(languages) & set(t.languages)}
        ),
    )


def _check_live(preparation: Preparation, run: Run, needs: Sequence[Need]) -> None:
    """Refuse teachers unable to read the student's batches in the training step.

    Raises:
        SignalError: a teacher lacks a layer that is read.
        RunError: a teacher has other pieces than the student.
    """
    storage = preparation.storage
    for teacher in preparation.teachers:
        live = live_signals(needs, stores=teacher.config.stores)
        if not live:
            continue
        for layer in {need.layer for need in live if need.layer is not None}:
            teacher.hidden_size(layer)
        student_pieces, teacher_pieces = (
            _tokenization(open_vocabulary(storage, model.vocabulary_id).pieces)
            for model in (run, teacher.run)
        )
        if student_pieces != teacher_pieces:
            raise RunError(
                f"student: {teacher.name} reads each batch in the training step, and the student has other pieces than "
                "the teacher; set student.vocabulary: {kind: teacher}, or use checkpoints with the same tokenizer"
            )


def _tokenization(pieces: Vocabulary) -> object:
    """The definition of a vocabulary's splitting of text, and the numbers of the pieces."""
    return (pieces.definition, pieces.special) if isinstance(pieces, HFVocabulary) else pieces.to_json()


def _resolved_student(recipe: Recipe, preparation: Preparation) -> Student:
    """The student with the teacher's values in place of `teacher`."""
    resolved: dict[str, object] = {}
    if "vocabulary" in recipe.student.taken_from_teacher:
        resolved["vocabulary"] = resolve_vocabulary(recipe)
    if "projection" in recipe.student.taken_from_teacher:
        # All teachers of a recipe have one configuration.
        resolved["projection"] = preparation.teachers[0].hidden_size(-1)
    return recipe.scoped_student.model_copy(update=resolved)


def _start_from(recipe: Recipe, storage: Storage) -> dict[str, str] | None:
    """The folder and the checksum of the initial weights."""
    if recipe.start_from is None:
        return None
    start = find_starting_run(recipe.start_from, storage)
    if start is None:
        hint = "set start_from to the id of a finished run (run-…), or to its folder"
        raise StoreError(recipe.start_from, "is no finished run of this store, and no folder of one", hint)
    folder, result = start
    return {"folder": folder.uri, "weights_sha256": result.weights_sha256}


def _place(recipe: Recipe) -> str:
    """The corpus, as errors call it."""
    return redact(str(getattr(recipe.corpus, "root", recipe.corpus.source)))


def _one(languages: Sequence[str]) -> str | None:
    return languages[0] if len(languages) == 1 else None


def with_seed_offset(run: Run, offset: int) -> Run:
    """Return the run with `offset` added to the seed."""
    return replace(run, training={**run.training, "seed": run.training["seed"] + offset})


def recipe_needs(recipe: Recipe, *, unlabelled: bool) -> tuple[Need, ...]:
    """Return the signals read by the recipe's stages, each once.

    Args:
        recipe: the recipe.
        unlabelled: true if the corpus has unlabelled text.
    """
    needs = (need for stage in recipe.all_stages for need in stage_needs(stage, unlabelled=unlabelled))
    return tuple(dict.fromkeys(needs))


def stored_needs(recipes: Sequence[Recipe], *, unlabelled: bool) -> tuple[Need, ...]:
    """Return the stored signals for all stages of several recipes together.

    Args:
        recipes: recipes with the same teachers.
        unlabelled: true if the corpus has unlabelled text.
    """
    needs = [need for recipe in recipes for need in recipe_needs(recipe, unlabelled=unlabelled)]
    return storable_needs(recipes[0].teachers, needs)


def training_step_needs(recipes: Sequence[Recipe], *, unlabelled: bool) -> tuple[Need, ...]:
    """Return the signals computed by teachers in the training steps of several recipes, each once.

    Args:
        recipes: recipes with the same teachers.
        unlabelled: true if the corpus has unlabelled text.
    """
    needs = [need for recipe in recipes for need in recipe_needs(recipe, unlabelled=unlabelled)]
    return live_signals(needs, stores=recipes[0].teachers.stores)


def storable_needs(teacher: Teacher, needs: Iterable[Need]) -> tuple[Need, ...]:
    """Return the signals of a teacher to store for some needs; the rest is computed in the training step.

    Args:
        teacher: its configuration.
        needs: the signals that objectives read.
    """
    return signals_to_store(needs, teacher.offers) if teacher.stores else ()


def _source(
    teacher: PlannedTeacher, preparation: Preparation, languages: tuple[str, ...], needs: Sequence[Need]
) -> Source | None:
    """The teacher's signals for a student of `languages`; None if the teacher covers none of them."""
    covered = tuple(language for language in teacher.languages if language in languages)
    if not covered:
        return None
    student_text = preparation.text_for(covered)
    stored = storable_needs(teacher.config, needs)
    signals = {need.name: teacher.signal_id(need, student_text) for need in stored}
    if student_text.id == teacher.text.id:
        return Source(teacher.run.id, covered, signals)
    stored_ids = {need.name: teacher.signal_id(need, teacher.text) for need in stored}
    return Source(teacher.run.id, covered, signals, text_id=teacher.text.id, stored=stored_ids)


def as_json(config: BaseModel) -> PlainObject:
    """Return a configuration model as plain data."""
    return config.model_dump(mode="json")
