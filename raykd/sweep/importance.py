"""The importance of searched settings for the objectives: fANOVA over the complete trials of a sweep."""

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
from raykd.sweep.starts import values_of_searched_keys

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

FEWEST = 20
"""Complete trials needed: with fewer, the importance of a setting would be chance."""


@dataclass(frozen=True)
class Importance:
    """The importance of settings: shares of the objectives' variance over the trials.

    Attributes:
        shares: Objective → setting → share (0 … 1, together 1), the largest first.
        trials: Number of trials.
        missing: Reason why there are no shares, as one clause.
    """

    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    trials: int = 0
    missing: str = ""


def compute_importance(tree: PlainObject, records: Sequence[Record], objectives: Directions) -> Importance:
    """Compute the importance of the settings common to all complete trials.

    fANOVA (Hutter et al. 2014, "An efficient approach for assessing hyperparameter importance"): a random forest with a
    fixed seed is fitted to the trials, and its variance divided among the settings. Settings that only some options of
    a choice have are left out.

    Args:
        tree: The sweep file with its searches.
        records: Records of all trials.
        objectives: Name of a figure → "max" or "min".
    """
    complete = {trial.number: trial for trial in candidates((record.trial for record in records), objectives)}
    if len(complete) < FEWEST:
        return Importance(missing=f"it needs {FEWEST} complete trials, and there are {len(complete)}")
    space = searched_tree(tree)
    drawn = {
        record.trial.number: _drawn_values(space, record.resolved)
        for record in records
        if record.trial.number in complete
    }
    common = set.intersection(*(set(params) for params in drawn.values()))
    varied = sorted(name for name in common if len({params[name] for params in drawn.values()}) > 1)
    if len(varied) < 2:
        number = "one setting differs" if varied else "no setting differs"
        return Importance(missing=f"{number} over all trials, so there is nothing to compare")
    shares = {}
    for place, name in enumerate(objectives):
        values = {number: objective_values(trial, objectives)[place] for number, trial in complete.items()}
        if len(set(values.values())) > 1:
            shares[name] = _shares(
                space, varied, [(params, float(values[number] or 0.0)) for number, params in drawn.items()]
            )
    return Importance(shares, len(complete))


def _drawn_values(space: PlainObject, resolved: PlainObject) -> PlainObject:
    """Return name of the search → the trial's value."""
    try:
        return fit_setting(space, values_of_searched_keys(resolved, space)).params
    except MisfitError:
        return {}


class _ReplayedTrial:
    """Repeats a trial's decisions in a search, and notes the distributions; for grids the sampler has none."""

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
    """Return the shares of settings common to all trials; a trial is (name → value, value of the objective)."""
    import optuna  # takes seconds, and few sweeps that are shown have enough trials
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study, replayed = optuna.create_study(), _ReplayedTrial(trials[0][0])
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
    importances = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
    return {name: float(share) for name, share in importances.items()}
