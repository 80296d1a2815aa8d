"""The runs of a recipe's student: one per language and seed, resolved against the stored corpus and the teachers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.word_pieces import Vocabulary
from raykd.errors import CorpusError, RunError, StoreError
from raykd.needs import live_signals
from raykd.recipes.recipe import Recipe, names_text, resolve_stage, resolve_vocabulary
from raykd.recipes.run import Run, Source, find_starting_run
from raykd.recipes.signal_needs import recipe_needs, storable_needs
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.signals import Need
from raykd.storage.store import Storage
from raykd.students import Student
from raykd.training.embeddings import embedding_source
from raykd.training.label_sets import store_labels
from raykd.training.prepare import (
    PlannedTeacher,
    Preparation,
    as_json,
    corpus_place,
    model_run,
    only_language,
)


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
    corpus, corpus_id = preparation.corpus_for(languages)
    student = _resolved_student(recipe, preparation).pinned(only_language(languages))
    base_run = model_run(recipe, student, corpus, corpus_id, preparation.storage)
    unlabelled = corpus.parts["unlabelled"].num_rows > 0
    if not unlabelled and any(names_text(stage, "unlabelled") for stage in recipe.all_stages):
        raise CorpusError(
            corpus_place(recipe), None,
            f"a stage is trained on unlabelled text, and there is none of {', '.join(languages)}",
            "name the text in corpus.unlabelled, or lower corpus.cap if corpus.unlabelled is `rest`",
        )  # fmt: skip
    needs = recipe_needs(recipe, unlabelled=unlabelled)
    _check_live(preparation, base_run, needs)
    sources = [_source(teacher, preparation, languages, needs) for teacher in preparation.teachers]
    return replace(
        base_run,
        labels_id=store_labels(
            preparation.storage, recipe.task_entry, student.encoding, corpus, corpus_id, corpus_place(recipe)
        ),
        stages=tuple(resolve_stage(stage, recipe, unlabelled=unlabelled) for stage in recipe.all_stages),
        training=as_json(recipe.training),
        sources=tuple(source for source in sources if source is not None) if needs else (),
        start_from=_start_from(recipe, preparation.storage),
        cut_from="" if recipe.start_from else _cut_from(student, preparation, languages),
        embeddings_from=embedding_source(
            student,
            {
                teacher.name: teacher.run
                for teacher in preparation.teachers
                if set(languages) & set(teacher.languages)
            },
        ),
    )


def _check_live(preparation: Preparation, run: Run, needs: Sequence[Need]) -> None:
    """Refuse teachers that cannot read the student's batches in the training step.

    Raises:
        SignalError: a teacher has not all layers that the objectives read.
        RunError: a teacher has other pieces than the student.
    """
    storage = preparation.storage
    for teacher in preparation.teachers:
        live = live_signals(needs, stores=teacher.config.stores)
        if not live:
            continue
        for layer in {need.layer for need in live if need.layer is not None}:
            teacher.hidden_size(layer)  # raises SignalError
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


def _cut_from(student: Student, preparation: Preparation, languages: tuple[str, ...]) -> str:
    """The id of the teacher from whose trained weights a student is cut; empty if there are none."""
    if (member := student.starts_from_member) is None:
        return ""
    # `recipe_faults` refuses students of several languages if each has another teacher.
    teacher = next(teacher for teacher in preparation.teachers if set(languages) & set(teacher.languages))
    if not teacher.config.trained:
        return ""
    return teacher.run.members[member].id if teacher.run.members else teacher.run.id


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


def with_seed_offset(run: Run, offset: int) -> Run:
    """Return the run with `offset` added to the seed."""
    return replace(run, training={**run.training, "seed": run.training["seed"] + offset})
