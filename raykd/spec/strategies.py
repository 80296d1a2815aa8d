"""Named strategies: `strategies` holds them by name, and `strategy: NAME` stands for the one of that name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from raykd.identity import PlainObject, PlainValue
from raykd.spec.messages import no_such_message
from raykd.spec.places import KeyPath

STRATEGIES = "strategies"
STRATEGY = "strategy"


@dataclass(frozen=True)
class ResolvedStrategies:
    """A tree with strategies in the place of their names.

    Attributes:
        tree: The tree, without its section `strategies`.
        origins: Key path of each replaced name → key path at which the strategy was written.
        unused: Strategies that the tree does not name.
        faults: (key path, message).
    """

    tree: PlainObject
    origins: Mapping[KeyPath, KeyPath] = field(default_factory=dict)
    unused: PlainObject = field(default_factory=dict)
    faults: tuple[tuple[KeyPath, str], ...] = ()


def resolve_strategies(tree: PlainObject) -> ResolvedStrategies:
    """Replace names of strategies by the strategies, and leave out the section `strategies`.

    `strategy` may be a name, or a choice in which some options are names. A strategy in the place of its name also
    holds the name, under `name`. With faults the names stay.
    """
    section = tree.get(STRATEGIES)
    plain = {key: value for key, value in tree.items() if key != STRATEGIES}
    if STRATEGIES in tree and not isinstance(section, dict):
        message = f"must be a mapping, got {section!r}; write `{STRATEGIES}: {{NAME: {{stages: […]}}}}`"
        return ResolvedStrategies(plain, faults=(((STRATEGIES,), message),))
    strategies = section or {}
    faults = tuple(_malformed(strategies))
    if faults:
        return ResolvedStrategies(plain, faults=faults)
    values = {name: {"name": name, **value} for name, value in strategies.items()}
    names = dict(_names(tree.get(STRATEGY)))
    unknown = tuple(
        (path, _unknown(name, list(strategies))) for path, name in names.items() if name not in strategies
    )
    if unknown:
        return ResolvedStrategies(plain, faults=unknown)
    if (STRATEGY,) in names:
        plain[STRATEGY] = values[names[STRATEGY,]]
    elif names:
        options = tree[STRATEGY]["choice"]
        plain[STRATEGY] = {
            **tree[STRATEGY],
            "choice": [values[option] if isinstance(option, str) else option for option in options],
        }
    origins = {path: (STRATEGIES, name) for path, name in names.items()}
    unused = {name: value for name, value in values.items() if name not in names.values()}
    return ResolvedStrategies(plain, origins, unused)


def _names(strategy: PlainValue) -> Iterator[tuple[KeyPath, str]]:
    """Yield key path and name of the strategies given by name."""
    if isinstance(strategy, str):
        yield (STRATEGY,), strategy
    options = strategy.get("choice") if isinstance(strategy, dict) else None
    for index, option in enumerate(options if isinstance(options, list) else ()):
        if isinstance(option, str):
            yield (STRATEGY, "choice", index), option


def _malformed(strategies: PlainObject) -> Iterator[tuple[KeyPath, str]]:
    for name, value in strategies.items():
        if not isinstance(value, dict):
            yield (STRATEGIES, name), f"must be a mapping, got {value!r}; write `{name}: {{stages: […]}}`"
        elif "name" in value:
            yield (STRATEGIES, name, "name"), f"its name is its key, {name!r}; remove `name`"


def _unknown(name: str, names: list[str]) -> str:
    if not names:
        return f"no strategy {name!r}: the file has no `{STRATEGIES}`; extend a file that has them, or write `stages`"
    return no_such_message("strategy", name, names)
