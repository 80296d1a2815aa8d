"""The variant `small`: check that everything which takes time is smaller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from raykd.layers.stage_schedule import Duration, with_default_end
from raykd.spec import Document, covering_trees
from raykd.sweep.spec import plain_sweep, planned_trials

AMOUNTS = frozenset(
    # Sentences, lengths of training, runs, sizes of models, time.
    (
        "cap", "cap_per_class", "unlabelled_cap", "dev_cap", "test_cap", "train", "dev", "test", "unlabelled",
        *Duration.model_fields,
        "runs_per_setting", "seeds", "count",
        "embedding_dim", "hidden_dim", "layers", "character_dim", "character_hidden", "arc_dim", "relation_dim",
        "pair_dim", "iterations", "size", "minutes", "hours", "gpu_hours",
    )
)  # fmt: skip
"""Settings with longer training or computation for larger values."""
LANGUAGES = "corpus.languages"


def larger_settings(whole: Document, small: Document) -> list[str]:
    """List the settings that are larger in the variant `small` than in the file without it.

    The largest value of a searched setting counts, and the largest of a mapping from languages. Settings that only one
    of the two has are not compared.

    Args:
        whole: The valid file without the variant.
        small: The valid file with it.

    Returns:
        A phrase for each setting: `search.runs_per_setting: 2, without it 1`.
    """
    amounts, limits = _amounts(small), _amounts(whole)
    return [
        f"{name}: {amount:g}, without it {limits[name]:g}"
        for name, amount in amounts.items()
        if amount > limits.get(name, amount)
    ]


def _amounts(document: Document) -> dict[str, float]:
    """The largest value of each amount by dotted key path, defaults filled in."""
    amounts: dict[str, float] = {}
    for plain in covering_trees(document.tree):
        sweep = plain_sweep(plain.tree)
        trials = planned_trials(document.tree, sweep.search, sweep.budget.trials)
        counts = [("trials", trials), (LANGUAGES, len(sweep.corpus.languages))]
        for name, value in [*counts, *_amounts_in(sweep.model_dump(mode="json"), "")]:
            amounts[name] = max(value, amounts[name]) if name in amounts else value
    return amounts


def _amounts_in(value: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        return
    if value.keys() >= Duration.model_fields.keys():
        value = with_default_end(dict(value))
    for key, inner in value.items():
        name = f"{path}.{key}".lstrip(".")
        numbers = list(inner.values()) if isinstance(inner, Mapping) else [inner]
        if key in AMOUNTS and numbers and all(isinstance(number, int | float) for number in numbers):
            yield name, max(numbers)
        else:
            yield from _amounts_in(inner, name)
