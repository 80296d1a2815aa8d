"""Faults between sections of a recipe, which no section can see alone, each with its key path.

Each rule compares two statements: one section says what it offers, the other what it requires.
"""

from __future__ import annotations

from raykd.layers.optimisation import TrainingConfig
from raykd.layers.stage_schedule import Duration, with_default_end
from raykd.recipes.recipe import Recipe, resolve_vocabulary
from raykd.recipes.resources import RunRole
from raykd.recipes.stage_faults import endless_schedule_faults, stage_faults
from raykd.recipes.student_faults import student_faults
from raykd.recipes.task_faults import task_faults
from raykd.spec import KeyPath


def recipe_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """Return (key path, message) for each mismatch between sections.

    Args:
        recipe: A recipe whose sections are valid one by one.
    """
    faults: list[tuple[KeyPath, str]] = []
    stages_path: KeyPath = ("strategy", "stages") if recipe.strategy is not None else ("stages",)
    for index, stage in enumerate(recipe.all_stages):
        stage_path: KeyPath = () if recipe.objective is not None else (*stages_path, index)
        faults += stage_faults(recipe, stage, stage_path)
    faults += task_faults(recipe)
    faults += _teacher_corpus_faults(recipe)
    faults += _language_faults(recipe)
    if recipe.teachers.trained:
        duration = with_default_end(recipe.teachers.model_dump(include=set(Duration.model_fields)))
        training = recipe.teachers.training.model_dump(mode="json")
        faults += [
            (("teachers",), message) for message in endless_schedule_faults(duration, training, "teachers")
        ]
    faults += student_faults(recipe, resolve_vocabulary(recipe))
    return faults + _precision_faults(recipe)


def _precision_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    trained: tuple[tuple[KeyPath, TrainingConfig, RunRole], ...] = (
        (("training",), recipe.training, "students"),
        (("teachers", "training"), recipe.teachers.training, "teachers"),
    )
    message = "'fp16' needs a GPU: set resources.gpus_per_worker, or use bf16 or float32"
    return [
        ((*path, "precision"), message)
        for path, training, role in trained
        if training.precision == "fp16" and not recipe.resources.for_role(role).gpus_per_worker
    ]


def _language_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    faults: list[tuple[KeyPath, str]] = []
    unlabelled = recipe.corpus.unlabelled_languages
    if recipe.teachers.scope == "language" and unlabelled:
        problem = f"no teacher can be trained for {', '.join(unlabelled)} without labels"
        hint = "set teachers.scope: all, or remove them from corpus.unlabelled_languages"
        faults.append((("teachers", "scope"), f"{problem}; {hint}"))
    targets = (*unlabelled, *recipe.corpus.zero_shot_languages)
    if recipe.scoped_student.scope == "language" and targets:
        problem = f"no student can be selected for {', '.join(targets)} without labels"
        section = "strategy" if recipe.strategy is not None and recipe.strategy.scope else "student"
        faults.append(((section, "scope"), f"{problem}; set student.scope: all"))
    return faults


def _teacher_corpus_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    teacher_corpus, faults = recipe.teacher_corpus, []
    if teacher_corpus is None:
        return []
    if not recipe.teachers.trained:
        faults.append((("teacher_corpus",), "the teacher is taken as it is; omit teacher_corpus"))
    if recipe.corpus.split is not None and teacher_corpus.cap != "same":
        # Another cap would draw other sentences for dev and test: the teacher would train on some of the student's.
        hint = "name dev and test instead of corpus.split, which draws them from the capped sentences"
        faults.append((("teacher_corpus", "cap"), hint))
    return faults
