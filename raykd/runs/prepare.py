"""From a recipe to runs: corpus and vocabularies go into the store, and every id is known before training."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, TypeAdapter

from raykd.corpora.config import CorpusConfig
from raykd.corpora.corpus import Corpus, read_corpus, write_corpus
from raykd.corpora.source import REST
from raykd.errors import CorpusError
from raykd.runs.recipe import TASKS, Recipe, resolved_vocabulary
from raykd.runs.run import Run, Source
from raykd.runs.vocabularies import store_vocabulary
from raykd.signals import Need, to_store
from raykd.storage import Storage
from raykd.transfer import Text, signal_ids


@dataclass(frozen=True)
class PlannedTeacher:
    """A teacher by its identity, trained or not, and the text it is to speak about."""

    run: Run
    languages: tuple[str, ...]
    text: Text
    offers: tuple[str, ...]
    title: str

    @property
    def name(self) -> str:
        return f"{self.title} {' '.join(self.languages)}"

    @property
    def members(self) -> tuple[tuple[str, Run], ...]:
        """Name and run of what is trained: itself, or each seed of an ensemble."""
        kind = f"{self.run.model['kind']} {' '.join(self.languages)}"
        seeds = tuple((f"{kind} seed {m.training['seed']}", m) for m in self.run.members)
        return seeds or ((self.name, self.run),)


@dataclass(frozen=True)
class Preparation:
    """Corpus and teachers of a recipe, in the store."""

    storage: Storage
    corpus: Corpus
    corpus_id: str
    teachers: tuple[PlannedTeacher, ...]


def prepare(recipe: Recipe, storage: Storage) -> Preparation:
    """Read the corpus, keep it in the store, and name the teachers.

    Raises:
        CorpusError: if the corpus cannot be read, or does not fit the task.
    """
    corpus = read_corpus(recipe.corpus)
    scheme = TASKS[recipe.task].scheme
    if corpus.tag_set.scheme != scheme:
        raise CorpusError(
            str(getattr(recipe.corpus, "root", recipe.corpus.source)), None,
            f"its tags are {corpus.tag_set.scheme}, task {recipe.task!r} wants {scheme}",
            "set corpus.scheme, or another task",
        )  # fmt: skip
    name = write_corpus(corpus, storage)
    return Preparation(storage, corpus, name, tuple(_teachers(recipe, corpus, name, storage)))


def _teachers(recipe: Recipe, corpus: Corpus, name: str, storage: Storage) -> Iterable[PlannedTeacher]:
    per_language = recipe.teachers.scope == "language" and len(corpus.languages) > 1
    # What is given is named by its weights, not by where it lies.
    teacher = recipe.teachers.pinned()
    # Without labels there is no teacher of one's own.
    groups = [(language,) for language in corpus.sources] if per_language else [tuple(corpus.languages)]
    schooling = _schooling(recipe, corpus)
    for languages in groups:
        own = schooling.restricted(languages) if per_language else schooling
        own_id = name if own is corpus else write_corpus(own, storage)
        run = model_run("teacher", recipe, teacher, own, own_id, storage)
        text = training_text(corpus.restricted(languages) if per_language else corpus)
        yield PlannedTeacher(run, languages, text, recipe.teachers.offers, recipe.teachers.title)


def _schooling(recipe: Recipe, corpus: Corpus) -> Corpus:
    """What teachers are trained on: the students' corpus, unless `teacher_corpus` says otherwise."""
    if recipe.teacher_corpus is None:
        return corpus
    changed = {**plain(recipe.corpus), "cap": plain(recipe.teacher_corpus)["cap"]}
    # What the cap leaves; unlabelled text teaches nobody, and without a cap nothing is left.
    if isinstance(unlabelled := changed.get("unlabelled"), dict):
        changed["unlabelled"] = {name: pattern for name, pattern in unlabelled.items() if pattern != REST}
    elif unlabelled == REST:
        changed["unlabelled"] = None
    return _same_tags(
        read_corpus(TypeAdapter(CorpusConfig).validate_json(json.dumps(changed))), corpus, recipe
    )


def _same_tags(taught: Corpus, corpus: Corpus, recipe: Recipe) -> Corpus:
    if taught.tag_set == corpus.tag_set:
        return taught
    more = sorted(set(taught.tag_set.tags) ^ set(corpus.tag_set.tags))
    raise CorpusError(
        str(getattr(recipe.corpus, "root", recipe.corpus.source)), None,
        f"the teachers' sentences and the students' have different tags ({', '.join(more)})",
        "raise corpus.cap until every tag occurs, or leave teacher_corpus out",
    )  # fmt: skip


def training_text(corpus: Corpus) -> Text:
    """What students train on: labelled sentences, then unlabelled ones."""
    parts = [corpus.parts[part]["tokens"] for part in ("train", "unlabelled")]
    return Text.of(pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type))


def model_run(role: Any, recipe: Recipe, config: Any, corpus: Corpus, name: str, storage: Storage) -> Run:
    """A run that trains `config` on gold tags of `corpus`: what a teacher is, and the stem of a student's run."""
    vocabulary = store_vocabulary(
        storage, config.vocabulary, corpus, name,
        characters=config.reads_characters, contextual=config.contextual,
    )  # fmt: skip
    training = plain(config.training) if role == "teacher" else {}
    # Sampling of languages says nothing where there is only one.
    alpha = recipe.corpus.sampling_alpha if len(corpus.languages) > 1 else 1.0
    schedule = {"epochs": config.epochs} if role == "teacher" else {}
    return Run(
        role=role, task=recipe.task, corpus_id=name, vocabulary_id=vocabulary.id, model=plain(config),
        objective={"kind": "gold"}, schedule=schedule, training=training, sampling_alpha=alpha,
    )  # fmt: skip


def student_run(recipe: Recipe, preparation: Preparation) -> Run:
    """The run that distils the recipe's student."""
    corpus = preparation.corpus
    student = recipe.student.model_copy(update={"vocabulary": resolved_vocabulary(recipe)})
    stem = model_run("student", recipe, student, corpus, preparation.corpus_id, preparation.storage)
    needs = tuple(recipe.objective.needs)
    unlabelled = bool(needs) and corpus.parts["unlabelled"].num_rows > 0
    if unlabelled:
        # Top-1 pseudo-labels stand in for gold tags on unlabelled text.
        needs = (*needs, Need("kbest", 1))
    return replace(
        stem, objective=plain(recipe.objective), schedule=plain(recipe.schedule), training=plain(recipe.training),
        sources=tuple(_source(teacher, needs) for teacher in preparation.teachers) if needs else (),
        unlabelled=unlabelled,
    )  # fmt: skip


def gold_run(run: Run) -> Run:
    """The same student without a teacher."""
    return replace(run, objective={"kind": "gold"}, sources=(), unlabelled=False)


def with_seed(run: Run, offset: int) -> Run:
    """The same run with another seed."""
    return replace(run, training={**run.training, "seed": run.training["seed"] + offset})


def transfer_needs(recipes: Sequence[Recipe], corpus: Corpus) -> tuple[Need, ...]:
    """The stored signals that serve every objective of `recipes`, which have the same teachers, together."""
    needs = [need for recipe in recipes for need in recipe.objective.needs]
    if needs and corpus.parts["unlabelled"].num_rows > 0:
        needs.append(Need("kbest", 1))
    return to_store(needs, recipes[0].teachers.offers)


def _source(teacher: PlannedTeacher, needs: Sequence[Need]) -> Source:
    ids = signal_ids(teacher.run.id, teacher.text.id)
    return Source(
        teacher.run.id,
        teacher.languages,
        {need.signal: ids[need.signal] for need in to_store(needs, teacher.offers)},
    )


def plain(config: BaseModel) -> dict[str, Any]:
    """A configuration model as JSON-able data."""
    return config.model_dump(mode="json")
