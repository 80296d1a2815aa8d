"""What of a student does not fit the other sections of its recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raykd.corpora.vocabulary import VocabularyConfig
from raykd.spec import KeyPath
from raykd.students.embeddings import OfTeacher

if TYPE_CHECKING:
    from raykd.recipes.recipe import Recipe


def student_faults(recipe: Recipe, vocabulary: VocabularyConfig) -> list[tuple[KeyPath, str]]:
    """(path, message) for each mismatch in a `Recipe`; `vocabulary` is the student's own, or its teacher's where it
    says so.
    """
    faults: list[tuple[KeyPath, str]] = []
    if not recipe.teachers.offers:
        message = "there is no teacher whose it could be; write the student's own"
        return [(("student", name), message) for name in recipe.student.taken_from_teacher]
    if recipe.student.word_dropout and vocabulary.of_checkpoint:
        hint = "only words and WordPieces of raykd's own have its unknown piece; omit word_dropout"
        faults.append((("student", "word_dropout"), f"the vocabulary is a checkpoint's: {hint}"))
    return faults + _embedding_faults(recipe, vocabulary)


def _embedding_faults(recipe: Recipe, vocabulary: VocabularyConfig) -> list[tuple[KeyPath, str]]:
    """Vectors that a student's cannot start from."""
    start, teachers = recipe.student.embeddings, recipe.teachers
    path: KeyPath = ("student", "embeddings")
    if start is not None and recipe.start_from is not None:
        return [(path, "all weights are those of the run in start_from; omit one of them")]
    if not isinstance(start, OfTeacher):
        return []
    faults: list[tuple[KeyPath, str]] = []
    own, given = vocabulary, teachers.tokenizer
    if own.kind != given.kind or getattr(own, "path", None) != getattr(given, "path", None):
        message = "the student's pieces are not the teacher's; set student.vocabulary: {kind: teacher}"
        faults.append(((*path, "kind"), message))
    checkpoint = given.of_checkpoint
    if start.weights == "pretrained" and not checkpoint:
        message = f"teacher {teachers.kind!r} starts from no checkpoint; set weights: fine_tuned"
        faults.append(((*path, "weights"), message))
    if start.weights == "fine_tuned":
        alone = recipe.scoped_student.scope == "language" or len(recipe.corpus.languages) == 1
        pretrained = ", or weights: pretrained" if checkpoint else ""
        if teachers.scope == "language" and not alone:
            message = f"each language has a teacher of its own; set student.scope: language{pretrained}"
            faults.append(((*path, "kind"), message))
        if teachers.count > 1:
            message = f"the mean of {teachers.count} teachers has none; set teachers.count: 1{pretrained}"
            faults.append(((*path, "kind"), message))
    # How wide a checkpoint's are is known when it is read.
    if not checkpoint and (fault := start.fault(recipe.student.embedding_dim or 0, teachers.embedding_dim)):
        faults.append(((*path, "kind"), "; ".join(fault)))
    return faults
