"""How much each searched setting matters to each objective: fANOVA over the complete trials of a sweep."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from raykd.figures.front import candidates
from raykd.figures.table import Directions, objective_values
from raykd.spec import Choice, IntRange, labels, search_of
from raykd.spec.search import Search
from raykd.sweep.records import Record

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

FEWEST = 20
"""Complete trials below which the importance of a setting would be chance."""


@dataclass(frozen=True)
class Importance:
    """The share of an objective's variance over the trials that each setting explains, or why it is not known."""

    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Objective → setting → share (0 … 1, together 1), the largest first."""
    trials: int = 0
    """Of how many trials."""
    missing: str = ""
    """Why there are none: one clause."""


def importance(tree: Mapping[str, Any], records: Sequence[Record], objectives: Directions) -> Importance:
    """The importance of each setting that every complete trial drew from `tree`, the sweep file with its searches.

    fANOVA (Hutter et al. 2014, "An efficient approach for assessing hyperparameter importance"): a random forest of
    fixed seed is fitted to the trials, and its variance divided among the settings. Settings that only some options
    of a choice have are left out.
    """
    able = {trial.number: trial for trial in candidates((record.trial for record in records), objectives)}
    if len(able) < FEWEST:
        return Importance(missing=f"it needs {FEWEST} complete trials, and there are {len(able)}")
    drawn = {
        record.trial.number: dict(_drawn(tree, record.resolved, ()))
        for record in records
        if record.trial.number in able
    }
    common = set.intersection(*(set(own) for own in drawn.values()))
    varied = {
        name
        for name in common
        if len({json.dumps(own[name].value, sort_keys=True) for own in drawn.values()}) > 1
    }
    if len(varied) < 2:
        number = "one setting differs" if varied else "no setting differs"
        return Importance(missing=f"{number} over all trials, so there is nothing to compare")
    shares = {}
    for place, name in enumerate(objectives):
        values = {number: objective_values(trial, objectives)[place] for number, trial in able.items()}
        if len(set(values.values())) > 1:
            shares[name] = _shares(
                [
                    ({name: own[name] for name in sorted(varied)}, float(values[number] or 0.0))
                    for number, own in drawn.items()
                ]
            )
    return Importance(shares, len(able))


@dataclass(frozen=True)
class _Drawn:
    """One value of a trial, and from what it was drawn."""

    value: Any
    """Of a choice the label of the option."""
    search: Search


def _drawn(tree: Any, resolved: Any, name: tuple[str, ...]) -> Iterator[tuple[str, _Drawn]]:
    """What a trial drew, by the dotted path: grids too, of which the sampler has no record."""
    search, dotted = search_of(tree), ".".join(name)
    if isinstance(search, Choice):
        named = labels(search.options)
        for label, option in zip(named, search.options, strict=True):
            if _came_from(option, resolved):
                yield dotted, _Drawn(label, search)
                yield from _drawn(option, resolved, (*name, label))
                return
    elif search is not None:
        yield dotted, _Drawn(resolved, search)
    elif isinstance(tree, dict) and isinstance(resolved, dict):
        for key in tree.keys() & resolved.keys():
            yield from _drawn(tree[key], resolved[key], (*name, str(key)))
    elif isinstance(tree, list) and isinstance(resolved, list):
        for index, (one, other) in enumerate(zip(tree, resolved, strict=False)):
            yield from _drawn(one, other, (*name, str(index)))


def _came_from(option: Any, resolved: Any) -> bool:
    """Whether `resolved` is `option` with its searches decided."""
    search = search_of(option)
    if isinstance(search, Choice):
        return any(_came_from(each, resolved) for each in search.options)
    if search is not None:
        return isinstance(resolved, int | float) and search.low <= resolved <= search.high
    if isinstance(option, dict) and isinstance(resolved, dict):
        return option.keys() == resolved.keys() and all(
            _came_from(option[key], resolved[key]) for key in option
        )
    if isinstance(option, list) and isinstance(resolved, list):
        return len(option) == len(resolved) and all(map(_came_from, option, resolved))
    # 1 == True, and they are two options.
    return type(option) is type(resolved) and option == resolved


def _shares(table: Sequence[tuple[Mapping[str, _Drawn], float]]) -> dict[str, float]:
    import optuna  # takes seconds, and few sweeps are shown that have enough trials
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study()
    study.add_trials(
        [
            optuna.trial.create_trial(
                params={name: own.value for name, own in drawn.items()},
                distributions={name: _distribution(own.search) for name, own in drawn.items()},
                value=value,
            )
            for drawn, value in table
        ]
    )
    found = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
    return {name: float(share) for name, share in found.items()}


def _distribution(search: Search) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(search, Choice):
        return CategoricalDistribution(labels(search.options))
    if isinstance(search, IntRange):
        return IntDistribution(search.low, search.high, step=search.step, log=search.log)
    return FloatDistribution(search.low, search.high, search.log, search.step)
