"""The search: Optuna's samplers over the sweep file's tree, each setting drawn from the records alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import optuna
from optuna.distributions import distribution_to_json, json_to_distribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from raykd.figures.table import OBJECTIVES, objective_values
from raykd.figures.trial import Trial
from raykd.identity import PlainObject
from raykd.spec import FloatRange, IntRange, assignments, resolve
from raykd.sweep.records import Record, Suggestion
from raykd.sweep.spec import SearchConfig

# Random settings before TPE models them: few, because a sweep is short; more when there are more objectives.
STARTUP_PER_OBJECTIVE = 3


class Study:
    """Asks a sampler for settings.

    Nothing is remembered between calls: the setting of a trial depends on the seed, its number and the given records.
    So a search that is killed and resumed goes on as without the interruption.
    """

    def __init__(self, tree: PlainObject, search: SearchConfig, starts: Sequence[PlainObject] = ()):
        """Begin a study.

        Args:
            tree: The searchable tree.
            search: Sampler, objectives and seed.
            starts: Values for the first trials; the sampler draws the rest.
        """
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._tree, self._search, self._starts = tree, search, starts
        self._objectives = search.objectives or OBJECTIVES
        self._grid = iter(assignments(tree)) if search.sampler == "grid" else None

    @property
    def exhaustive(self) -> bool:
        """True for a grid, which proposes each setting of the space once and then ends."""
        return self._grid is not None

    @property
    def learns(self) -> bool:
        """True if proposals depend on the outcomes of earlier trials."""
        return self._search.sampler not in ("random", "grid")

    def ask(self, number: int, attempt: int, earlier: Sequence[Record]) -> Suggestion | None:
        """Draw the setting of a trial.

        Args:
            number: Number of the trial.
            attempt: Number of earlier proposals for this trial that were known already.
            earlier: Earlier trials, from which the sampler learns.

        Returns:
            None if a grid is exhausted.
        """
        study = optuna.create_study(
            directions=["maximize" if d == "max" else "minimize" for d in self._objectives.values()],
            sampler=_sampler(self._search, number, attempt),
        )
        study.add_trials([self._frozen(record) for record in earlier if record.trial.state in _STATES])
        if attempt == 0 and number < len(self._starts):
            study.enqueue_trial(dict(self._starts[number]))
        optuna_trial = study.ask()
        tree = next(self._grid, None) if self._grid else resolve(self._tree, _Suggest(optuna_trial))
        if tree is None:
            return None
        distributions = {
            name: distribution_to_json(distribution)
            for name, distribution in optuna_trial.distributions.items()
        }
        # The sampler writes its attributes when the first value is drawn, so they are read only here.
        return Suggestion(tree, optuna_trial.params, distributions, dict(study.trials[-1].system_attrs))

    def _values(self, trial: Trial) -> list[float] | None:
        if trial.state != "COMPLETE":
            return None
        # Optuna refuses a list that is too short.
        values = objective_values(trial, self._objectives)
        return [float(value) for value in values if value is not None]

    def _frozen(self, record: Record) -> FrozenTrial:
        return create_trial(
            state=_STATES[record.trial.state],
            values=self._values(record.trial),
            params=dict(record.params),
            distributions={name: json_to_distribution(d) for name, d in record.distributions.items()},
            system_attrs=dict(record.sampler),
            constraints=dict(record.trial.violations),
        )


_STATES = {"COMPLETE": TrialState.COMPLETE, "PRUNED": TrialState.PRUNED}
"""Final states of trials for the sampler. Failed trials are tried again, and tell the sampler nothing until then."""


class _Suggest:
    """Takes the three kinds of searchable values from an Optuna trial."""

    def __init__(self, trial: optuna.Trial):
        self._trial = trial

    def choice(self, name: str, labels: tuple[str, ...]) -> int:
        return labels.index(self._trial.suggest_categorical(name, labels))

    def integer(self, name: str, values: IntRange) -> int:
        return self._trial.suggest_int(name, values.low, values.high, step=values.step, log=values.log)

    def number(self, name: str, values: FloatRange) -> float:
        return self._trial.suggest_float(name, values.low, values.high, step=values.step, log=values.log)


def _sampler(search: SearchConfig, number: int, attempt: int) -> optuna.samplers.BaseSampler:
    seed = int(np.random.SeedSequence([search.seed, number, attempt]).generate_state(1)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return SAMPLERS[search.sampler](seed, STARTUP_PER_OBJECTIVE * len(search.objectives or OBJECTIVES))


SAMPLERS: Mapping[str, Callable[[int, int], optuna.samplers.BaseSampler]] = MappingProxyType(
    {
        # multivariate + group was best of the cheap samplers on conditional spaces (hypervolume at 20–80 trials).
        "tpe": lambda seed, startup: optuna.samplers.TPESampler(
            seed=seed, multivariate=True, group=True, n_startup_trials=startup
        ),
        "nsga2": lambda seed, startup: optuna.samplers.NSGAIISampler(seed=seed, population_size=12),
        # A Gaussian process models only settings that all trials have; it draws those below a choice at random.
        "gp": lambda seed, startup: optuna.samplers.GPSampler(seed=seed, n_startup_trials=startup),
        "random": lambda seed, startup: optuna.samplers.RandomSampler(seed=seed),
        "grid": lambda seed, startup: optuna.samplers.RandomSampler(seed=seed),
    }
)
"""`search.sampler` → from a seed, and the number of random settings before it models them, Optuna's sampler. A grid
goes through the space by itself."""
