"""Notes on bf16 settings for a processor without bf16 instructions, several times slower than float32 there."""

from __future__ import annotations

from collections.abc import Iterator

from raykd.precompute.processor import lacks_bf16, processor_name
from raykd.spec import Document, covering_trees
from raykd.sweep.spec import SweepFile, plain_sweep

BF16 = "bf16"


def slow_precision(document: Document) -> list[str]:
    """Return a note on the bf16 settings that this machine's processor would compute slowly.

    Settings that run on GPUs are left out.

    Args:
        document: The sweep file.

    Returns:
        One note, or none if the processor has bf16 or no setting uses it.
    """
    if not lacks_bf16():
        return []
    recipes = [plain_sweep(plain.tree) for plain in covering_trees(document.tree)]
    keys = dict.fromkeys(key for recipe in recipes for key in _keys(recipe))
    if not keys:
        return []
    slow = f"this machine's processor ({processor_name()}) has no bf16, and is several times slower with it than with"
    return [f"{', '.join(keys)}: {slow} float32; set float32, or use GPUs (resources.gpus_per_worker)"]


def _keys(recipe: SweepFile) -> Iterator[str]:
    """Keys of the recipe that request bf16 without a GPU."""
    resources, teachers = recipe.resources, recipe.teachers
    students = resources.for_role("students").gpus_per_worker
    settings = [
        (
            "teachers.precision",
            getattr(teachers, "precision", None),
            resources.precompute_actor.gpus_per_worker,
        ),
        ("training.precision", recipe.training.precision, students),
    ]
    if teachers.trained:
        gpus = resources.for_role("teachers").gpus_per_worker
        settings.insert(0, ("teachers.training.precision", teachers.training.precision, gpus))
    for place, stage in enumerate(recipe.all_stages):
        if stage.training is not None and "precision" in stage.training.model_fields_set:
            settings.append((f"stages.{place}.training.precision", stage.training.precision, students))
    yield from (key for key, precision, gpus in settings if precision == BF16 and not gpus)
