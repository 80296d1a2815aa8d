"""Settings: the plain trees of a sweep, each resolved once to its configuration, teachers and runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from raykd.corpora import Corpus, read_corpus
from raykd.corpora.config import CorpusConfig
from raykd.deploy.pos_models import open_pos_model
from raykd.errors import RunError
from raykd.figures.figure_values import combine_model_costs
from raykd.figures.results import Cost, RunResult, Scores
from raykd.identity import PlainObject
from raykd.precompute.model_cost import find_cost
from raykd.progress import with_progress
from raykd.recipes.run import Run
from raykd.recipes.signal_needs import stored_needs, training_step_needs
from raykd.signals import Need
from raykd.spec import covering_trees
from raykd.storage.store import Storage
from raykd.sweep.outcome import dotted_values
from raykd.sweep.spec import PREPARED, SweepFile, plain_sweep, preparation_trees
from raykd.training.execute import find_result
from raykd.training.prepare import Preparation, ReadCorpus, prepare, share_texts
from raykd.training.student_runs import seed_runs

T = TypeVar("T")


@dataclass(frozen=True)
class Prepared:
    """One alternative of corpus and teachers, computed before the search."""

    preparation: Preparation
    needs: tuple[Need, ...]
    """The stored signals that serve every setting that has them."""
    live: tuple[Need, ...]
    """Signals that teachers compute in the training step, over all settings."""
    differences: PlainObject
    """Dotted key path → value, of the settings that differ between the sweep's alternatives."""


@dataclass(frozen=True)
class Setting:
    """A resolved setting of a sweep: its plain tree, configuration and runs."""

    tree: PlainObject
    recipe: SweepFile
    prepared: Prepared
    seeds: tuple[tuple[Run, ...], ...]
    """Seed by seed, the runs that together are one student: one, or one for each language."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, seed by seed."""
        return tuple(run for runs in self.seeds for run in runs)

    @property
    def run_ids(self) -> tuple[str, ...]:
        """Ids of `runs`."""
        return tuple(run.id for run in self.runs)

    def run(self, run_id: str) -> Run:
        """Return the run with the given id."""
        return self.runs[self.run_ids.index(run_id)]

    def run_name(self, run_id: str) -> str:
        """Name of a run among the runs of the setting: `seed 1`, `en`, `seed 1 en`; empty for a single run."""
        of_one_seed = len(self.seeds[0])
        seed, place = divmod(self.run_ids.index(run_id), of_one_seed)
        names = [f"seed {seed}"] if len(self.seeds) > 1 else []
        if of_one_seed > 1:
            names.append(self.prepared.preparation.corpus.languages[place])
        return " ".join(names)

    def by_seed(self, results: Sequence[T]) -> list[tuple[T, ...]]:
        """Group values of `runs`, given in the same order, as `seeds` is grouped."""
        rest = iter(results)
        return [tuple(next(rest) for _ in runs) for runs in self.seeds]

    def seed_results(self, results: Sequence[RunResult]) -> list[RunResult]:
        """Return one result per seed, from the results of `runs`."""
        return [joined_result(of_seed) for of_seed in self.by_seed(results)]

    def cost(self, storage: Storage, on: PlainObject | None = None) -> Cost:
        """Return the cost of the student on the hardware `on`, by default that of this process; seeds cost the same.

        Raises:
            RunError: the cost was not measured yet.
        """
        return joined_cost([known_cost(storage, run, on) for run in self.seeds[0]])

    def found_results(self, storage: Storage) -> list[RunResult]:
        """Return the results of the finished runs."""
        results = (find_result(storage, run) for run in self.runs)
        return [result for result in results if result is not None]


def joined_result(results: Sequence[RunResult]) -> RunResult:
    """The result of one seed, joined from the runs of one student: one run for each language."""
    if len(results) == 1:
        return results[0]
    longest = max(results, key=lambda result: result.steps)
    return RunResult(
        run_id=" ".join(result.run_id for result in results),
        scores=Scores.over_languages(result.scores for result in results),
        best_epoch=longest.best_epoch,
        epochs=longest.epochs,
        wall_s=sum(result.wall_s for result in results),
        workers=results[0].workers,
        parameters=sum(result.parameters for result in results),
        bytes=sum(result.bytes for result in results),
    )


def joined_cost(costs: Sequence[Cost]) -> Cost:
    """Cost of one student, joined from the costs of its runs."""
    if len(costs) == 1:
        return costs[0]
    return Cost(
        combine_model_costs(costs),
        {"models": [dict(cost.shape) for cost in costs]},
        costs[0].hardware,
        {key: figure for cost in costs for key, figure in cost.shared.items()},
        load=max(cost.load for cost in costs),
        no_export=next((cost.no_export for cost in costs if cost.no_export), ""),
        notes=tuple(dict.fromkeys(note for cost in costs for note in cost.notes)),
    )


def known_cost(storage: Storage, run: Run, on: PlainObject | None = None) -> Cost:
    """Cost of a run's shape on the given hardware, by default on that of this process.

    Raises:
        RunError: the cost was not measured.
    """
    cost = find_cost(storage, run, on)
    if cost is None:
        machine = "this machine" if on is None else on["processor"]
        raise RunError(f"{run.id}: its cost was not measured on {machine}; run raykd plan first")
    return cost


class Settings:
    """Resolves the trees of one sweep, each once. `tree` is the tree of the sweep file, with its searches."""

    def __init__(self, storage: Storage, tree: PlainObject):
        self._storage, self._tree = storage, tree
        self._resolved: dict[str, Setting] = {}
        self._recipes: dict[str, SweepFile] = {}

    def of(self, tree: PlainObject) -> Setting:
        """Return the setting of a plain tree.

        Raises:
            CorpusError: a corpus of the sweep cannot be read; corpora are read at first use.
        """
        name = _text(tree)
        if name not in self._resolved:
            recipe = self.recipe(tree)
            prepared = self.prepared[preparation_key(recipe)]
            seeds = seed_runs(recipe, prepared.preparation, recipe.search.runs_per_setting)
            self._resolved[name] = Setting(tree, recipe, prepared, seeds)
        return self._resolved[name]

    def recipe(self, tree: PlainObject) -> SweepFile:
        """Return the typed form of a plain tree, validated once."""
        name = _text(tree)
        if name not in self._recipes:
            self._recipes[name] = plain_sweep(tree)
        return self._recipes[name]

    @cached_property
    def covering(self) -> dict[str, list[PlainObject]]:
        """`preparation_key` → plain trees with all alternatives of the remaining sections."""
        all_trees = [{**self._tree, **sections} for sections in preparation_trees(self._tree)]
        trees = [[variant.tree for variant in covering_trees(tree)] for tree in all_trees]
        return {preparation_key(self.recipe(first)): [first, *rest] for first, *rest in trees}

    @cached_property
    def prepared(self) -> dict[str, Prepared]:
        """Corpus and teachers of all alternatives, in the store, by `preparation_key`; in the order of the file."""
        recipes = {key: [self.recipe(tree) for tree in trees] for key, trees in self.covering.items()}
        firsts = {key: alternatives[0] for key, alternatives in recipes.items()}
        read = _read_once()
        unshared = [prepare(recipe, self._storage, read) for recipe in with_progress([*firsts.values()])]
        preparations = dict(zip(firsts, share_texts(unshared), strict=True))
        differences = _differences({key: _sections(recipe) for key, recipe in firsts.items()})
        # The baseline may read the teachers' labels.
        with_baselines = {
            key: [*alternatives, *(recipe.on_labels() for recipe in alternatives)]
            for key, alternatives in recipes.items()
        }
        return {
            key: Prepared(
                preparation,
                stored_needs(with_baselines[key], unlabelled=preparation.unlabelled),
                training_step_needs(with_baselines[key], unlabelled=preparation.unlabelled),
                differences[key],
            )
            for key, preparation in preparations.items()
        }


def _read_once() -> ReadCorpus:
    """A reader with a cache: alternatives of different sections share corpora."""
    corpora: dict[str, Corpus] = {}

    def read(config: CorpusConfig) -> Corpus:
        section = _text(config.model_dump(mode="json"))
        if section not in corpora:
            corpora[section] = read_corpus(config, open_pos_model)
        return corpora[section]

    return read


def preparation_key(recipe: SweepFile) -> str:
    """Canonical JSON of the sections for corpus and teachers: equal if both are equal."""
    return _text({"task": recipe.task, **_sections(recipe)})


def _sections(recipe: SweepFile) -> PlainObject:
    return recipe.model_dump(mode="json", include=set(PREPARED))


def _differences(plain: PlainObject) -> dict[str, PlainObject]:
    """Return the values in which several mappings differ: key of the mapping → dotted key path → value."""
    flat = {
        key: dict(item for name, section in sections.items() for item in dotted_values(name, section))
        for key, sections in plain.items()
    }
    paths = dict.fromkeys(path for values in flat.values() for path in values)
    differing = [path for path in paths if len({_text(values.get(path)) for values in flat.values()}) > 1]
    return {key: {path: values[path] for path in differing if path in values} for key, values in flat.items()}


def _text(plain: object) -> str:
    return json.dumps(plain, sort_keys=True)
