"""Finding a setting in a search space: the options and numbers that lead to the setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raykd.identity import PlainObject, PlainValue
from raykd.spec.search import Choice, FloatRange, IntRange, children, option_labels, parse_search, range_size


@dataclass(frozen=True)
class Fit:
    """The decisions of a setting in a search space, all of them or some.

    Attributes:
        params: Name of a search, as in `resolve` → label of the option, or the number.
        used: Dotted key paths of the setting's values that the space has too.
    """

    params: PlainObject
    used: frozenset[str]


class MisfitError(ValueError):
    """A value of a setting is not in the search space; the message names the key."""


def flatten_tree(tree: PlainValue, path: tuple[str, ...] = ()) -> PlainObject:
    """Return dotted key path → scalar, for all scalars of a plain tree.

    Args:
        tree: A plain tree without searches.
        path: Keys that lead to `tree`; they begin every key path.

    Examples:
        >>> flatten_tree({"student": {"kind": "bilstm", "layers": [1, 2]}})
        {'student.kind': 'bilstm', 'student.layers.0': 1, 'student.layers.1': 2}
    """
    items = children(tree)
    if not items and isinstance(tree, dict | list):
        return {}
    if not items:
        return {".".join(path): tree}
    return {
        key: value for name, item in items for key, value in flatten_tree(item, (*path, str(name))).items()
    }


def searched_paths(tree: PlainValue, path: tuple[str, ...] = ()) -> list[str]:
    """Return the dotted key paths of a tree's searches; of nested searches, only the outermost.

    Args:
        tree: A tree with searches.
        path: Keys that lead to `tree`; they begin every key path.
    """
    if parse_search(tree) is not None:
        return [".".join(path)]
    return [inner for key, item in children(tree) for inner in searched_paths(item, (*path, str(key)))]


def fit_setting(
    tree: PlainValue, setting: PlainObject, name: tuple[str, ...] = (), path: tuple[str, ...] = ()
) -> Fit:
    """Find the decisions in the space `tree` for `setting`.

    Searches that the setting does not mention stay undecided. Of several options that agree with the setting, the one
    with more of its values is chosen.

    Args:
        tree: The search space.
        setting: Dotted key path → scalar.
        name: First parts of the names of searches in `tree`.
        path: Keys that lead to `tree`.

    Raises:
        MisfitError: A value of the setting is not in the space.
    """
    search, key = parse_search(tree), ".".join(path)
    if isinstance(search, Choice):
        return _fit_choice(search, setting, name, path)
    if search is not None:
        if key not in setting:
            return Fit({}, frozenset())
        _refuse_outside(search, setting[key], key)
        return Fit({".".join(name): setting[key]}, frozenset({key}))
    if not children(tree):
        if key not in setting:
            return Fit({}, frozenset())
        if setting[key] != tree:
            raise MisfitError(f"{key}: {setting[key]!r} is not in the space, which has {tree!r}")
        return Fit({}, frozenset({key}))
    parts = [
        fit_setting(item, setting, (*name, str(child_key)), (*path, str(child_key)))
        for child_key, item in children(tree)
    ]
    return Fit(
        {param: value for part in parts for param, value in part.params.items()},
        frozenset().union(*(part.used for part in parts)),
    )


def _fit_choice(search: Choice, setting: PlainObject, name: tuple[str, ...], path: tuple[str, ...]) -> Fit:
    key, option_names = ".".join(path), option_labels(search.options)
    values_below = {
        setting_key: value
        for setting_key, value in setting.items()
        if setting_key == key or setting_key.startswith(f"{key}.")
    }
    if not values_below:
        return Fit({}, frozenset())
    fits: list[tuple[str, Fit]] = []
    for label, option in zip(option_names, search.options, strict=True):
        try:
            fit = fit_setting(option, setting, (*name, label), path)
        except MisfitError:
            continue
        # An option that is a mapping may be given by its name, as `strategy: D1` gives one of the strategies.
        if children(option) and key in setting:
            if setting[key] != label:
                continue
            fit = Fit(fit.params, fit.used | {key})
        if fit.used:
            fits.append((label, fit))
    if not fits:
        mismatch = ", ".join(f"{setting_key}={value!r}" for setting_key, value in values_below.items())
        raise MisfitError(f"{key}: no option has {mismatch}; options are {', '.join(option_names)}")
    label, fit = max(fits, key=lambda labelled_fit: len(labelled_fit[1].used))
    return Fit({".".join(name): label, **fit.params}, fit.used)


def _refuse_outside(search: IntRange | FloatRange, value: Any, key: str) -> None:
    number = isinstance(value, int if isinstance(search, IntRange) else int | float)
    if not number or isinstance(value, bool) or not search.low <= value <= search.high:
        raise MisfitError(f"{key}: {value!r} is not in the space, from {search.low} to {search.high}")
    steps = (value - search.low) / search.step if search.step and range_size(search) != 1 else 0.0
    if abs(steps - round(steps)) > 1e-6:
        raise MisfitError(
            f"{key}: {value!r} is not in the space, from {search.low} in steps of {search.step}"
        )
