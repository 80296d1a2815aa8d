"""Searchable values, anywhere in a plain tree: `{choice: [...]}`, `{int: [low, high]}`, `{float: [...]}`.

A tree stays plain data (dicts, lists, scalars). A mapping with one of these keys is a search. An option of a choice may
be a mapping with further searches: conditional spaces are written in this way.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

from raykd.identity import PlainObject, PlainValue

SEARCH_KEYS = ("choice", "int", "float")
MOST_OPTIONS = 200
"""Most options of a choice."""
MOST_STEPS = 10**9
"""Most steps of a range with `step`."""
_RANGE_KEYS = {"step", "log"}


@dataclass(frozen=True)
class Choice:
    """One of several options; an option may be a subtree with further searches."""

    options: tuple[PlainValue, ...]


@dataclass(frozen=True)
class IntRange:
    """Whole numbers from `low` to `high`, both included, `step` apart; `log`: sampled evenly in the logarithm."""

    low: int
    high: int
    step: int = 1
    log: bool = False


@dataclass(frozen=True)
class FloatRange:
    """Numbers from `low` to `high`; with `step` only low + i·step. Without `step` there is no grid."""

    low: float
    high: float
    step: float | None = None
    log: bool = False


Search = Choice | IntRange | FloatRange


@runtime_checkable
class Suggest(Protocol):
    """Decides every search of a tree: a sampler, or a recorded trial. Names are dotted paths, unique within a tree."""

    def choice(self, name: str, labels: tuple[str, ...], /) -> int:
        """Return the index of the chosen option."""
        ...

    def integer(self, name: str, over: IntRange, /) -> int:
        """Return a whole number of the range."""
        ...

    def number(self, name: str, over: FloatRange, /) -> float:
        """Return a number of the range."""
        ...


def parse_search(value: object) -> Search | None:
    """Return the search described by `value`, None if it is a plain value.

    Raises:
        ValueError: The search is malformed; the message says how to correct it.
    """
    if isinstance(value, Choice | IntRange | FloatRange):
        return value
    if not isinstance(value, dict) or not (words := [word for word in SEARCH_KEYS if word in value]):
        return None
    if len(words) > 1:
        raise ValueError(
            f"a search has one of {', '.join(SEARCH_KEYS)}, got {' and '.join(words)}; keep one of them"
        )
    word = words[0]
    allowed = {word} if word == "choice" else {word, *_RANGE_KEYS}
    if extra_keys := ", ".join(str(key) for key in value if key not in allowed):
        beside = "no other key" if word == "choice" else "only `step` and `log`"
        raise ValueError(f"{beside} may stand beside `{word}`, got {extra_keys}; remove {extra_keys}")
    if word == "choice":
        return _choice(value["choice"])
    return _range(word, value[word], value.get("step"), value.get("log", False))


def has_search(tree: PlainValue) -> bool:
    """True if `tree` contains a search.

    Args:
        tree: A plain tree, in which searches are mappings.
    """
    if parse_search(tree) is not None:
        return True
    return any(has_search(item) for _, item in children(tree))


def children(tree: PlainValue) -> list[tuple[str | int, PlainValue]]:
    """Return the (key, item) pairs of a mapping or list; none for a scalar."""
    if isinstance(tree, dict):
        return list(tree.items())
    return list(enumerate(tree)) if isinstance(tree, list) else []


def rebuild(tree: PlainValue, items: list[PlainValue]) -> PlainValue:
    """Return a mapping or list like `tree` with other items, in the same order."""
    return dict(zip(tree, items, strict=True)) if isinstance(tree, dict) else items


def resolve(tree: PlainObject, suggest: Suggest) -> PlainObject:
    """Return a plain tree: `suggest` replaces every search by one value.

    Names are dotted paths ("student.embedding_dim"). Below an option that is itself a mapping or list the name
    continues with the option's label ("objective.top_wk.k"), so that two options may use the same key.

    Args:
        tree: A tree with searches.
        suggest: Decides each search.

    Raises:
        ValueError: A search is malformed.
    """
    return {key: _resolved(section, suggest, (key,)) for key, section in tree.items()}


def _resolved(tree: PlainValue, suggest: Suggest, name: tuple[str, ...]) -> PlainValue:
    search = parse_search(tree)
    dotted = ".".join(name)
    if isinstance(search, Choice):
        option_names = option_labels(search.options)
        index = suggest.choice(dotted, option_names)
        return _resolved(search.options[index], suggest, (*name, option_names[index]))
    if isinstance(search, IntRange):
        return suggest.integer(dotted, search)
    if isinstance(search, FloatRange):
        return suggest.number(dotted, search)
    if not isinstance(tree, dict | list):
        return tree
    return rebuild(tree, [_resolved(item, suggest, (*name, str(key))) for key, item in children(tree)])


def option_labels(options: tuple[PlainValue, ...]) -> tuple[str, ...]:
    """Return one distinct label per option: scalars as YAML writes them, mappings by their `kind` or `name`.

    If two labels are equal, or a text and a number look the same, all labels are compact canonical JSON.

    Examples:
        >>> option_labels(({"kind": "top_wk", "k": {"int": [1, 10]}}, {"kind": "posterior"}, None, 0.5))
        ('top_wk', 'posterior', 'null', '0.5')
        >>> option_labels((1, "1"))
        ('1', '"1"')
    """
    short = tuple(_label(option) for option in options)
    return short if len(set(short)) == len(short) else tuple(map(_json, options))


def assignments(tree: PlainObject) -> Iterator[PlainObject]:
    """Yield the plain trees of the grid, depth first; the last key of a mapping changes fastest.

    Args:
        tree: A tree with searches.

    Raises:
        ValueError: A `float` has no `step`, so there is no grid; the message gives its path.
    """
    for sections in _products(children(tree), ()):
        yield dict(zip(tree, sections, strict=True))


def _assignments(tree: PlainValue, path: tuple[str, ...]) -> Iterator[PlainValue]:
    search = parse_search(tree)
    if isinstance(search, Choice):
        for option in search.options:
            yield from _assignments(option, path)
    elif search is not None:
        if (values := range_values(search)) is None:
            raise ValueError(
                f"{'.'.join(path)}: a float without step has no grid; add step, or use another sampler"
            )
        yield from values
    elif isinstance(tree, dict | list):
        for items in _products(children(tree), path):
            yield rebuild(tree, items)
    else:
        yield tree


def grid_size(tree: PlainValue) -> int | None:
    """Return the number of `assignments`, or None if it is infinite because a `float` has no step.

    Args:
        tree: A tree with searches.
    """
    search = parse_search(tree)
    if isinstance(search, Choice):
        sizes = [grid_size(option) for option in search.options]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    if search is not None:
        return range_size(search)
    sizes = [grid_size(item) for _, item in children(tree)]
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def range_size(search: IntRange | FloatRange) -> int | None:
    """Return the number of values in a range; None for a `float` without `step`, unless both ends are equal."""
    if isinstance(search, IntRange):
        return (search.high - search.low) // search.step + 1
    if search.low == search.high:
        return 1
    if search.step is None:
        return None
    return int((_decimal(search.high) - _decimal(search.low)) / _decimal(search.step)) + 1


def range_values(search: IntRange | FloatRange) -> Iterator[int] | Iterator[float] | None:
    """Return an iterator over the values of a range, lowest first; None if `range_size` is None."""
    size = range_size(search)
    if size is None:
        return None
    if isinstance(search, IntRange):
        return iter(range(search.low, search.high + 1, search.step))
    # In decimals: 0.1 + 2 · 0.1 must be 0.3, as the user would write it, in every identity computed from it.
    low, step = _decimal(search.low), _decimal(search.step or 0)
    return (float(low + index * step) for index in range(size))


def _decimal(number: float) -> Decimal:
    return Decimal(str(number))


def _products(items: list[tuple[str | int, PlainValue]], path: tuple[str, ...]) -> Iterator[list[PlainValue]]:
    """Yield all combinations of the alternatives of `items`, one at a time: a range may have millions."""
    if not items:
        yield []
        return
    (key, item), rest = items[0], items[1:]
    if not has_search(item):
        # A plain item has one alternative: itself, however large it is.
        for rest_values in _products(rest, path):
            yield [item, *rest_values]
        return
    for value in _assignments(item, (*path, str(key))):
        for rest_values in _products(rest, path):
            yield [value, *rest_values]


def _label(option: PlainValue) -> str:
    if isinstance(option, dict):
        names = (option[key] for key in ("kind", "name") if isinstance(option.get(key), str))
        return next(names, None) or _json(option)
    return option if isinstance(option, str) else _json(option)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _choice(options: object) -> Choice:
    if not isinstance(options, list):
        raise ValueError(f"choice takes a list of options, got {options!r}; write {{choice: [{options}, …]}}")
    if not options:
        raise ValueError("choice has no options; list at least one")
    if len(options) > MOST_OPTIONS:
        raise ValueError(
            f"choice has {len(options):,} options, at most {MOST_OPTIONS} are allowed; search a range"
        )
    text, times = Counter(map(_json, options)).most_common(1)[0]
    if times > 1:
        raise ValueError(f"choice holds {text} {times} times; list each option once")
    return Choice(tuple(options))


def _range(word: str, bounds: Any, step: Any, log: object) -> IntRange | FloatRange:
    kind, allowed = ("a whole number", int) if word == "int" else ("a number", int | float)
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise ValueError(f"{word} takes two numbers, got {_json(bounds)}; write {{{word}: [low, high]}}")
    for name, number in (("low", bounds[0]), ("high", bounds[1]), ("step", step)):
        if not (name == "step" and number is None) and (
            isinstance(number, bool) or not isinstance(number, allowed)
        ):
            raise ValueError(f"{name} of {word} must be {kind}, got {_json(number)}")
    if not isinstance(log, bool):
        raise ValueError(f"log must be true or false, got {_json(log)}")
    low, high = bounds
    if low > high:
        raise ValueError(f"low {low} is above high {high}; write {{{word}: [{high}, {low}]}}")
    if log and low <= 0:
        raise ValueError(f"a log range must start above 0, got low {low}; raise low or remove log")
    if step is not None:
        _check_step(word, low, high, step, log)
    if word == "int":
        return IntRange(low, high, 1 if step is None else step, log)
    return FloatRange(float(low), float(high), None if step is None else float(step), log)


def _check_step(word: str, low: float, high: float, step: float, log: bool) -> None:
    if log:
        raise ValueError("step and log cannot be combined; remove one of them")
    if step <= 0:
        raise ValueError(f"step must be above 0, got {step}; write a positive step")
    if (high - low) / step > MOST_STEPS:
        raise ValueError(
            f"more than {MOST_STEPS:,} steps of {step} from {low} to {high}; write a larger step"
        )
    width, stride = _decimal(high) - _decimal(low), _decimal(step)
    if width % stride:
        below = _decimal(low) + width // stride * stride
        raise ValueError(
            f"high {high} is never reached from {low} in steps of {step}; "
            f"write {{{word}: [{low}, {below}], step: {step}}} or [{low}, {below + stride}]"
        )
