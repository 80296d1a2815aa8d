"""The signals read by the stages of recipes: those stored for training, and those computed in the training step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raykd.needs import live_signals, signals_to_store
from raykd.recipes.recipe import Recipe, stage_needs
from raykd.signals import Need
from raykd.teachers import Teacher


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
