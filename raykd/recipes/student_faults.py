"""Faults between a student and the rest of the recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raykd.corpora.vocabulary_config import VocabularyConfig
from raykd.spec import KeyPath
from raykd.students.embeddings import FromTeacher
from raykd.students.pretrained import TEACHER, CheckpointStudent

if TYPE_CHECKING:
    from raykd.recipes.recipe import Recipe


def student_faults(recipe: Recipe, vocabulary: VocabularyConfig) -> list[tuple[KeyPath, str]]:
    """Return (key path, message) for each mismatch between the student and the other sections.

    Args:
        recipe: A recipe whose sections are valid one by one.
        vocabulary: The student's vocabulary, resolved: the teacher's if the student takes it from there.
    """
    faults = _cut_faults(recipe)
    if not recipe.teachers.offers:
        message = "there is no teacher to take it from; write a value for the student"
        return [(("student", name), message) for name in recipe.student.taken_from_teacher]
    if recipe.student.word_dropout and vocabulary.of_checkpoint:
        hint = "word_dropout needs a vocabulary of words or WordPieces built by raykd; omit word_dropout"
        faults.append((("student", "word_dropout"), f"the vocabulary is a checkpoint's: {hint}"))
    return faults + _embedding_faults(recipe, vocabulary)


def _cut_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """Faults of a student that is cut from its teacher."""
    student, teachers = recipe.student, recipe.teachers
    if not isinstance(student, CheckpointStudent) or not teachers.offers:
        return []
    if student.path != TEACHER:
        resolved = student.path == teachers.encoder_path
        given = {"start": student.start, "member": student.member}
        return [
            (("student", name), "is for a student with path: teacher; omit it")
            for name, value in given.items()
            if value is not None and not resolved
        ]
    if not teachers.encoder_path:
        hint = "give teachers a checkpoint (hf_token_classifier, hf_sequence_classifier), or name another path here"
        message = (
            f"the teacher {teachers.kind!r} is no Transformers checkpoint, of which a student is cut; {hint}"
        )
        return [(("student", "path"), message)]
    if recipe.start_from is not None and student.start is not None:
        return [(("student", "start"), "all weights are taken from the run in start_from; omit one of them")]
    if student.start == "pretrained" or not teachers.trained:
        message = "the weights are those of the published checkpoint, which has no members; omit it"
        return [] if student.member is None else [(("student", "member"), message)]
    monolingual = recipe.scoped_student.scope == "language" or len(recipe.corpus.languages) == 1
    if teachers.scope == "language" and not monolingual:
        hint = "set student.scope: language, or student.start: pretrained"
        return [
            (
                ("student", "path"),
                f"each language has another teacher, and there is one student for all; {hint}",
            )
        ]
    return _member_faults(student.member, teachers.count)


def _member_faults(member: int | None, count: int) -> list[tuple[KeyPath, str]]:
    """Faults of the member of an ensemble of which a student is cut."""
    if count == 1:
        message = "there is one teacher, not several whose mean is taken; omit it"
        return [] if member is None else [(("student", "member"), message)]
    if member is not None and member < count:
        return []
    key = "path" if member is None else "member"
    message = f"the teacher is the mean of {count} models, and a student is cut of one of them"
    return [(("student", key), f"{message}; set student.member to a number from 0 to {count - 1}")]


def _embedding_faults(recipe: Recipe, vocabulary: VocabularyConfig) -> list[tuple[KeyPath, str]]:
    """Settings of piece vectors without a source to start from."""
    start, teachers = recipe.student.embeddings, recipe.teachers
    path: KeyPath = ("student", "embeddings")
    if start is not None and recipe.start_from is not None:
        return [(path, "all weights are taken from the run in start_from; omit embeddings or start_from")]
    if not isinstance(start, FromTeacher):
        return []
    faults: list[tuple[KeyPath, str]] = []
    teacher_vocabulary = teachers.tokenizer
    same_path = getattr(vocabulary, "path", None) == getattr(teacher_vocabulary, "path", None)
    if vocabulary.kind != teacher_vocabulary.kind or not same_path:
        message = "the student's pieces are not the teacher's; set student.vocabulary: {kind: teacher}"
        faults.append(((*path, "kind"), message))
    checkpoint = teacher_vocabulary.of_checkpoint
    if start.weights == "pretrained" and not checkpoint:
        message = f"teacher {teachers.kind!r} starts from no checkpoint; set weights: fine_tuned"
        faults.append(((*path, "weights"), message))
    if start.weights == "fine_tuned":
        monolingual = recipe.scoped_student.scope == "language" or len(recipe.corpus.languages) == 1
        pretrained = ", or weights: pretrained" if checkpoint else ""
        if teachers.scope == "language" and not monolingual:
            message = f"each language has another teacher; set student.scope: language{pretrained}"
            faults.append(((*path, "kind"), message))
        if teachers.count > 1:
            message = (
                f"the mean of {teachers.count} teachers has no embeddings; set teachers.count: 1{pretrained}"
            )
            faults.append(((*path, "kind"), message))
    # The width of a checkpoint's vectors is known only when it is read.
    if not checkpoint and (fault := start.fault(recipe.student.embedding_dim or 0, teachers.embedding_dim)):
        faults.append(((*path, "kind"), "; ".join(fault)))
    return faults
