"""Settings that are written down by dotted key path, as the choices of a space that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raykd.identity import PlainObject, PlainValue
from raykd.spec.search import Choice, FloatRange, IntRange, children, option_labels, range_size, parse_search


@dataclass(frozen=True)
class Fit:
    """What a setting decides of a space, whole or in part."""

    params: PlainObject
    """Name of a search, as `resolve` calls it → the label of the option, or the number."""
    used: frozenset[str]
    """The key paths that it has a place for."""


class MisfitError(ValueError):
    """Why a setting is not in the space."""


def flatten_tree(tree: PlainValue, path: tuple[str, ...] = ()) -> PlainObject:
    """Dotted key path → scalar, of all that a plain tree says."""
    items = children(tree)
    if not items and isinstance(tree, dict | list):
        return {}
    if not items:
        return {".".join(path): tree}
    return {
        key: value for name, item in items for key, value in flatten_tree(item, (*path, str(name))).items()
    }


def searched_paths(tree: PlainValue, path: tuple[str, ...] = ()) -> list[str]:
    """The dotted key paths at which a tree searches, each the outermost."""
    if parse_search(tree) is not None:
        return [".".join(path)]
    return [found for key, item in children(tree) for found in searched_paths(item, (*path, str(key)))]


def fit_setting(
    tree: PlainValue, setting: PlainObject, name: tuple[str, ...] = (), path: tuple[str, ...] = ()
) -> Fit:
    """What `setting`, dotted key path → scalar, decides of the space `tree`, which stands at `path`, and of which names
    begin with `name`; what it leaves out stays open.

    Of several options that agree with it, the one that has a place for more of it is chosen.

    Raises:
        MisfitError: a value of it is not in the space.
    """
    search, key = parse_search(tree), ".".join(path)
    if isinstance(search, Choice):
        return _option(search, setting, name, path)
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
    parts = [fit_setting(item, setting, (*name, str(own)), (*path, str(own))) for own, item in children(tree)]
    return Fit(
        {own: value for part in parts for own, value in part.params.items()},
        frozenset().union(*(part.used for part in parts)),
    )


def _option(search: Choice, setting: PlainObject, name: tuple[str, ...], path: tuple[str, ...]) -> Fit:
    key, named = ".".join(path), option_labels(search.options)
    if not any(own == key or own.startswith(f"{key}.") for own in setting):
        return Fit({}, frozenset())
    found: list[tuple[str, Fit]] = []
    for label, option in zip(named, search.options, strict=True):
        try:
            fit = fit_setting(option, setting, (*name, label), path)
        except MisfitError:
            continue
        # An option that is a mapping may be said by its name, as `strategy: D1` says one of the strategies.
        if children(option) and key in setting:
            if setting[key] != label:
                continue
            fit = Fit(fit.params, fit.used | {key})
        if fit.used:
            found.append((label, fit))
    if not found:
        said = ", ".join(f"{own}={value!r}" for own, value in setting.items() if own.startswith(key))
        raise MisfitError(f"{key}: no option has {said}; options are {', '.join(named)}")
    label, fit = max(found, key=lambda each: len(each[1].used))
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
