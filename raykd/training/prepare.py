"""From a recipe to runs: corpus and vocabularies go into the store, and every id is known before training."""

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
from raykd.teachers import Teacher
from raykd.training.embeddings import embedding_source
from raykd.training.label_sets import store_labels
from raykd.training.model_folder import teacher_signals_id
from raykd.transfer import Text, signal_id

ReadCorpus = Callable[[CorpusConfig], Corpus]
"""From a section `corpus` to the corpus."""


@dataclass(frozen=True)
class PlannedTeacher:
    """A teacher by its identity, trained or not, and the text that its signals are computed for."""

    run: Run
    languages: tuple[str, ...]
    text: Text
    config: Teacher
    """Its configuration: what it offers, its sizes."""

    @property
    def name(self) -> str:
        independent = " independent" if self.run.decoding == "independent" else ""
        return f"{self.config.title} {' '.join(self.languages)}{independent}"

    def signal_id(self, need: Need, text: Text) -> str:
        """The id of one of its signals for `text`."""
        run = self.run
        return signal_id(need, teacher_id=teacher_signals_id(run), text_id=text.id, decoding=run.decoding)

    @property
    def members(self) -> tuple[tuple[str, Run], ...]:
        """Name and run of what is trained: itself, or each seed of an ensemble."""
        kind = f"{self.run.model['kind']} {' '.join(self.languages)}"
        seeds = tuple((f"{kind} seed {m.training['seed']}", m) for m in self.run.members)
        return seeds or ((self.name, self.run),)

    def sizes(self, tags: int, needs: Iterable[Need]) -> Sizes:
        """The sizes that its signals depend on."""
        layers = {need.layer for need in needs if need.layer is not None}
        return Sizes(tags, {layer: self.hidden_size(layer) for layer in layers})

    def hidden_size(self, layer: int) -> int:
        """Components of its hidden states; SignalError where it has no such layer."""
        try:
            return self.config.hidden_size(layer)
        except ValueError as error:
            raise SignalError(f"teacher {self.name}: {error}") from error


@dataclass(frozen=True)
class Preparation:
    """Corpus and teachers of a recipe, in the store."""

    storage: Storage
    corpus: Corpus
    corpus_id: str
    teachers: tuple[PlannedTeacher, ...]
    parts: dict[tuple[str, ...], tuple[Corpus, str]] = field(default_factory=dict, repr=False)
    """Languages → the corpus of these alone, with its id: made once, when first asked for."""
    texts: dict[tuple[str, ...], Text] = field(default_factory=dict, repr=False)

    @property
    def unlabelled(self) -> bool:
        """Whether the corpus has text without labels."""
        return self.corpus.parts["unlabelled"].num_rows > 0

    def corpus_for(self, languages: tuple[str, ...]) -> tuple[Corpus, str]:
        """The corpus of some languages, and its id in the store."""
        if languages not in self.parts:
            self.parts[languages] = restricted_corpus(self.corpus, self.corpus_id, languages, self.storage)
        return self.parts[languages]

    def text_for(self, languages: tuple[str, ...]) -> Text:
        """What students of these languages are trained on."""
        if languages not in self.texts:
            stored = self.parts.get(languages)
            self.texts[languages] = training_text(
                stored[0] if stored else self.corpus.select_languages(languages)
            )
        return self.texts[languages]


def prepare(recipe: Recipe, storage: Storage, read: ReadCorpus = read_corpus) -> Preparation:
    """Find the corpus in the store, or read it and keep it there, and name the teachers. `read` replaces `read_corpus`.

    Raises:
        CorpusError: if the corpus cannot be read, or does not fit the task.
    """
    corpus, name = find_corpus(recipe.corpus, storage, read)
    recipe.task_entry.check(corpus, _place(recipe))
    ready = Preparation(storage, corpus, name, ())
    return replace(ready, teachers=tuple(_teachers(recipe, ready, read)))


def _teachers(recipe: Recipe, ready: Preparation, read: ReadCorpus) -> Iterable[PlannedTeacher]:
    if not recipe.teachers.offers:
        return
    corpus, storage = ready.corpus, ready.storage
    per_language = recipe.teachers.scope == "language" and len(corpus.languages) > 1
    # Without labels a language has no teacher of its own.
    groups = [(language,) for language in corpus.sources] if per_language else [tuple(corpus.languages)]
    trained_on, trained_id = _teacher_corpus(recipe, ready, read)
    for languages in groups:
        if trained_id == ready.corpus_id:
            own, own_id = ready.corpus_for(languages)
        else:
            own, own_id = restricted_corpus(trained_on, trained_id, languages, storage)
        # What is given is named by its weights, not by where it is.
        teacher = recipe.teachers.pinned(_one(languages))
        run = model_run(recipe, teacher, own, own_id, storage)
        yield PlannedTeacher(run, languages, ready.text_for(languages), teacher)


def _teacher_corpus(recipe: Recipe, ready: Preparation, read: ReadCorpus) -> tuple[Corpus, str]:
    """What teachers are trained on, and its id: the students' corpus, unless `teacher_corpus` says otherwise."""
    corpus = ready.corpus
    if not recipe.teachers.trained:
        # What is given is evaluated only, so it is the same whatever text students are trained on.
        none = {part: corpus.parts[part].slice(0, 0) for part in ("train", "unlabelled")}
        evaluated = replace(corpus, parts={**corpus.parts, **none})
        return evaluated, write_corpus(evaluated, ready.storage)
    own = {} if recipe.teacher_corpus is None else as_json(recipe.teacher_corpus)
    own = {name: value for name, value in own.items() if value != "same"}
    if not own:
        return corpus, ready.corpus_id
    config = {**as_json(recipe.corpus), **own, **(_uncapped(recipe) if "cap" in own else {})}
    asked = TypeAdapter(CorpusConfig).validate_json(json.dumps(config))
    other, name = find_corpus(asked, ready.storage, read)
    return _same_tags(other, corpus, recipe), name


def _uncapped(recipe: Recipe) -> PlainObject:
    """What another cap changes beside itself: no class is capped, and the rest that a cap leaves as unlabelled text,
    which teachers do not use, is not asked for: without a cap nothing is left.
    """
    unlabelled = as_json(recipe.corpus).get("unlabelled")
    if isinstance(unlabelled, dict):
        unlabelled = {name: pattern for name, pattern in unlabelled.items() if pattern != REST}
    elif unlabelled == REST:
        unlabelled = None
    named = {"unlabelled": unlabelled} if "unlabelled" in as_json(recipe.corpus) else {}
    return {"cap_per_class": None, **named}


def _same_tags(own: Corpus, corpus: Corpus, recipe: Recipe) -> Corpus:
    if (own.tag_set, own.pos) == (corpus.tag_set, corpus.pos):
        return own
    more = sorted({*own.tag_set.tags, *own.pos} ^ {*corpus.tag_set.tags, *corpus.pos})
    raise CorpusError(
        _place(recipe), None,
        f"the teachers' sentences and the students' have different tags ({', '.join(more)})",
        "raise corpus.cap until every tag occurs, or omit teacher_corpus",
    )  # fmt: skip


def training_text(corpus: Corpus) -> Text:
    """What students are trained on: labelled sentences, then unlabelled ones."""
    parts = [corpus.parts[part]["tokens"] for part in ("train", "unlabelled")]
    return Text.from_tokens(pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type))


def share_texts(preparations: Sequence[Preparation]) -> list[Preparation]:
    """The preparations with one text for each teacher: what any of them needs of it, computed once.

    A teacher that several preparations have is asked about the union of their texts, the largest first; each of them
    then reads its own sentences of it.
    """
    texts: dict[str, list[Text]] = {}
    for teacher in (teacher for each in preparations for teacher in each.teachers):
        texts.setdefault(teacher.run.id, []).append(teacher.text)
    union = {run_id: Text.union(own) for run_id, own in texts.items()}
    return [
        replace(each, teachers=tuple(replace(t, text=union[t.run.id]) for t in each.teachers))
        for each in preparations
    ]


def model_run(recipe: Recipe, config: Teacher | Student, corpus: Corpus, name: str, storage: Storage) -> Run:
    """A run that trains `config` on gold labels of `corpus`: what a teacher is, and the stem of a student's run."""
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
        length = {name: getattr(config, name) for name in Duration.model_fields}
        gold = Stage(objective=Gold(), schedule=ScheduleConfig(**length))
        stages = (resolve_stage(gold, recipe, unlabelled=False),)
    return Run(
        role=role, task=recipe.task, corpus_id=name, vocabulary_id=vocabulary.id, model=as_json(config), stages=stages,
        training=training, sampling_alpha=alpha,
        decoding=recipe.decoding if recipe.task_entry.form.constrained and config.gives_chain else "",
    )  # fmt: skip


def student_runs(recipe: Recipe, preparation: Preparation) -> tuple[Run, ...]:
    """The runs that distil the recipe's student: one, or with `scope: language` one for each language."""
    corpus = preparation.corpus
    alone = recipe.scoped_student.scope == "language" and len(corpus.languages) > 1
    groups = [(language,) for language in corpus.languages] if alone else [tuple(corpus.languages)]
    return tuple(_student_run(recipe, preparation, languages) for languages in groups)


def seed_runs(recipe: Recipe, preparation: Preparation, seeds: int) -> tuple[tuple[Run, ...], ...]:
    """The runs of the recipe's student over so many seeds, `training.seed` and those behind it."""
    if recipe.names_seed:
        return tuple(student_runs(recipe.with_seed_offset(offset), preparation) for offset in range(seeds))
    runs = student_runs(recipe, preparation)
    return tuple(tuple(with_seed_offset(run, offset) for run in runs) for offset in range(seeds))


def _student_run(recipe: Recipe, preparation: Preparation, languages: tuple[str, ...]) -> Run:
    corpus, name = preparation.corpus_for(languages)
    student = _resolved_student(recipe, preparation).pinned(_one(languages))
    stem = model_run(recipe, student, corpus, name, preparation.storage)
    unlabelled = corpus.parts["unlabelled"].num_rows > 0
    if not unlabelled and any(names_text(stage, "unlabelled") for stage in recipe.all_stages):
        raise CorpusError(
            _place(recipe), None,
            f"a stage is trained on unlabelled text, and there is none of {', '.join(languages)}",
            "lower corpus.cap where unlabelled: rest takes what it leaves, or name the text in corpus.unlabelled",
        )  # fmt: skip
    needs = recipe_needs(recipe, unlabelled=unlabelled)
    _check_live(preparation, stem, needs)
    sources = [_source(teacher, preparation, languages, needs) for teacher in preparation.teachers]
    return replace(
        stem,
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
    """Refuse teachers that are to read the student's batches, and cannot.

    Raises:
        SignalError: one of them has not all the layers that are read.
        RunError: one of them has other pieces than the student.
    """
    storage = preparation.storage
    for teacher in preparation.teachers:
        live = live_signals(needs, stores=teacher.config.stores)
        if not live:
            continue
        for layer in {need.layer for need in live if need.layer is not None}:
            teacher.hidden_size(layer)
        own, its = (
            _splitting(open_vocabulary(storage, each.vocabulary_id).pieces) for each in (run, teacher.run)
        )
        if own != its:
            raise RunError(
                f"student: {teacher.name} reads each batch in the training step, and the student's pieces are not its "
                "own; set student.vocabulary: {kind: teacher}, or give both a checkpoint with the same tokenizer"
            )


def _splitting(pieces: Vocabulary) -> object:
    """What decides how a vocabulary splits text, and the numbers of its pieces."""
    return (pieces.definition, pieces.special) if isinstance(pieces, HFVocabulary) else pieces.to_json()


def _resolved_student(recipe: Recipe, preparation: Preparation) -> Student:
    """The student with the teacher's own where it says `teacher`."""
    resolved: dict[str, object] = {}
    if "vocabulary" in recipe.student.taken_from_teacher:
        resolved["vocabulary"] = resolve_vocabulary(recipe)
    if "projection" in recipe.student.taken_from_teacher:
        # All teachers of a recipe have one configuration.
        resolved["projection"] = preparation.teachers[0].hidden_size(-1)
    return recipe.scoped_student.model_copy(update=resolved)


def _start_from(recipe: Recipe, storage: Storage) -> dict[str, str] | None:
    """Where the weights are that training starts from, and their checksum."""
    if recipe.start_from is None:
        return None
    found = find_starting_run(recipe.start_from, storage)
    if found is None:
        hint = "set start_from to the id of a finished run (run-…), or to its folder"
        raise StoreError(recipe.start_from, "is no finished run of this store, and no folder of one", hint)
    folder, result = found
    return {"folder": folder.uri, "weights_sha256": result.weights_sha256}


def _place(recipe: Recipe) -> str:
    """Where the corpus is, as errors call it."""
    return redact(str(getattr(recipe.corpus, "root", recipe.corpus.source)))


def _one(languages: Sequence[str]) -> str | None:
    return languages[0] if len(languages) == 1 else None


def with_seed_offset(run: Run, offset: int) -> Run:
    """The same run with another seed."""
    return replace(run, training={**run.training, "seed": run.training["seed"] + offset})


def recipe_needs(recipe: Recipe, *, unlabelled: bool) -> tuple[Need, ...]:
    """The signals that the recipe's stages read, each once."""
    needs = (need for stage in recipe.all_stages for need in stage_needs(stage, unlabelled=unlabelled))
    return tuple(dict.fromkeys(needs))


def stored_needs(recipes: Sequence[Recipe], *, unlabelled: bool) -> tuple[Need, ...]:
    """The stored signals that serve every stage of `recipes`, which have the same teachers, together."""
    needs = [need for recipe in recipes for need in recipe_needs(recipe, unlabelled=unlabelled)]
    return storable_needs(recipes[0].teachers, needs)


def training_step_needs(recipes: Sequence[Recipe], *, unlabelled: bool) -> tuple[Need, ...]:
    """What the stages of `recipes`, which have the same teachers, are given in the training step, each once."""
    needs = [need for recipe in recipes for need in recipe_needs(recipe, unlabelled=unlabelled)]
    return live_signals(needs, stores=recipes[0].teachers.stores)


def storable_needs(teacher: Teacher, needs: Iterable[Need]) -> tuple[Need, ...]:
    """What must be stored of a teacher, by its configuration, to meet `needs`; the rest it gives in the training
    step.
    """
    return signals_to_store(needs, teacher.offers) if teacher.stores else ()


def _source(
    teacher: PlannedTeacher, preparation: Preparation, languages: tuple[str, ...], needs: Sequence[Need]
) -> Source | None:
    """What a student of `languages` reads of a teacher; None where the teacher covers none of them."""
    covered = tuple(language for language in teacher.languages if language in languages)
    if not covered:
        return None
    own = preparation.text_for(covered)
    stored = storable_needs(teacher.config, needs)
    signals = {need.name: teacher.signal_id(need, own) for need in stored}
    if own.id == teacher.text.id:
        return Source(teacher.run.id, covered, signals)
    folders = {need.name: teacher.signal_id(need, teacher.text) for need in stored}
    return Source(teacher.run.id, covered, signals, text_id=teacher.text.id, stored=folders)


def as_json(config: BaseModel) -> PlainObject:
    """A configuration model as JSON-able data."""
    return config.model_dump(mode="json")
