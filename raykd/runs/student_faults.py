"""What of a student does not fit the other sections of its recipe."""

from __future__ import annotations

from typing import Any

from raykd.corpora.vocabulary import VocabularyConfig
from raykd.spec import KeyPath


def student_faults(recipe: Any, vocabulary: VocabularyConfig) -> list[tuple[KeyPath, str]]:
    """(path, message) for each mismatch in a `Recipe`; `vocabulary` is the student's own, or its teacher's where it
    says so."""
    faults: list[tuple[KeyPath, str]] = []
    if recipe.student.word_dropout and vocabulary.kind == "pretrained":
        hint = "only words and WordPieces of raykd's own have its unknown piece; omit word_dropout"
        faults.append((("student", "word_dropout"), f"the vocabulary is a checkpoint's: {hint}"))
    return faults + _group_faults(recipe)


def _group_faults(recipe: Any) -> list[tuple[KeyPath, str]]:
    """Stages that train the projection of a student that has none."""
    if recipe.student.projection is not None:
        return []
    message = "the student has no projection; set student.projection, or omit it here"
    return [
        (("stages", place, "layers"), message)
        for place, stage in enumerate(recipe.all_stages)
        if "projection" in stage.layers
    ]
