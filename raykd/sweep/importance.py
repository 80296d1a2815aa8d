"""How much each searched setting matters to each objective: fANOVA over the complete trials of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from raykd.figures.front import candidates
from raykd.figures.table import Directions, objective_values
from raykd.identity import PlainObject
from raykd.spec import FloatRange, IntRange, MisfitError, fit_setting, resolve
from raykd.sweep.records import Record
from raykd.sweep.spec import searched_tree
from raykd.sweep.starts import said_of_searched

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


def importance(tree: PlainObject, records: Sequence[Record], objectives: Directions) -> Importance:
    """The importance of each setting that every complete trial drew from `tree`, the sweep file with its searches.

    fANOVA (Hutter et al. 2014, "An efficient approach for assessing hyperparameter importance"): a random forest of
    fixed seed is fitted to the trials, and its variance divided among the settings. Settings that only some options
    of a choice have are left out.
    """
    able = {trial.number: trial for trial in candidates((record.trial for record in records), objectives)}
    if len(able) < FEWEST:
        return Importance(missing=f"it needs {FEWEST} complete trials, and there are {len(able)}")
    space = searched_tree(tree)
    drawn = {
        record.trial.number: _drawn(space, record.resolved)
        for record in records
        if record.trial.number in able
    }
    common = set.intersection(*(set(own) for own in drawn.values()))
    varied = sorted(name for name in common if len({own[name] for own in drawn.values()}) > 1)
    if len(varied) < 2:
        number = "one setting differs" if varied else "no setting differs"
        return Importance(missing=f"{number} over all trials, so there is nothing to compare")
    shares = {}
    for place, name in enumerate(objectives):
        values = {number: objective_values(trial, objectives)[place] for number, trial in able.items()}
        if len(set(values.values())) > 1:
            shares[name] = _shares(
                space, varied, [(own, float(values[number] or 0.0)) for number, own in drawn.items()]
            )
    return Importance(shares, len(able))


def _drawn(space: PlainObject, resolved: PlainObject) -> PlainObject:
    """What a trial drew, by the name of the search."""
    try:
        return fit_setting(space, said_of_searched(resolved, space)).params
    except MisfitError:
        return {}


class _Replayed:
    """Decides each search as a trial did, and keeps from what each value was drawn: grids too, of which the sampler has
    no record.
    """

    def __init__(self, params: PlainObject):
        self._params = params
        self.distributions: dict[str, BaseDistribution] = {}

    def choice(self, name: str, labels: tuple[str, ...]) -> int:
        from optuna.distributions import CategoricalDistribution

        self.distributions[name] = CategoricalDistribution(labels)
        return labels.index(self._params.get(name, labels[0]))

    def integer(self, name: str, values: IntRange) -> int:
        from optuna.distributions import IntDistribution

        self.distributions[name] = IntDistribution(values.low, values.high, step=values.step, log=values.log)
        return self._params.get(name, values.low)

    def number(self, name: str, values: FloatRange) -> float:
        from optuna.distributions import FloatDistribution

        self.distributions[name] = FloatDistribution(values.low, values.high, values.log, values.step)
        return self._params.get(name, values.low)


def _shares(
    space: PlainObject, names: Sequence[str], trials: Sequence[tuple[PlainObject, float]]
) -> dict[str, float]:
    """The shares of settings that all trials have; of each trial what it drew, and its value."""
    import optuna  # takes seconds, and few sweeps are shown that have enough trials
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study, replayed = optuna.create_study(), _Replayed(trials[0][0])
    resolve(space, replayed)
    distributions = {name: replayed.distributions[name] for name in names}
    study.add_trials(
        [
            optuna.trial.create_trial(
                params={name: params[name] for name in names}, distributions=distributions, value=value
            )
            for params, value in trials
        ]
    )
    found = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
    return {name: float(share) for name, share in found.items()}
