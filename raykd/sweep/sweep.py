"""A sweep: what its file means for a store. Its alternatives, runs, shapes, transfer sets and records."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import TypeVar

from raykd.cluster.nodes import Nodes
from raykd.figures.results import Cost
from raykd.figures.trial import UNFINISHED
from raykd.identity import PlainObject, identity
from raykd.precompute.model_cost import shape_key
from raykd.precompute.plan import PrecomputePlan
from raykd.precompute.transfer import transfer_plan
from raykd.recipes.resources import worker_resources
from raykd.recipes.run import Run
from raykd.spec import Document, assignments, covering_trees
from raykd.storage.store import Storage
from raykd.sweep.lease import Lease
from raykd.sweep.records import Record, SweepRecords
from raykd.sweep.settings import Prepared, Setting, Settings, known_cost
from raykd.sweep.spec import (
    SweepFile,
    differing_keys,
    plain_sweep,
    planned_trials,
    search_identity,
    searched_tree,
)
from raykd.sweep.starts import Starts, starts_of
from raykd.sweep.sweep_faults import check_sweep
from raykd.tasks.majority import majority_scores
from raykd.training.prepare import PlannedTeacher, Preparation
from raykd.transfer import Text

T = TypeVar("T")


class Sweep:
    """A valid sweep file. Its corpora are read, and put into the store, when first asked for; nothing is trained."""

    def __init__(self, document: Document):
        check_sweep(document)
        self.document = document
        self.file = plain_sweep(covering_trees(document.tree)[0].tree)
        self.storage = Storage(self.file.store)
        self.records = SweepRecords(self.storage, self.file.name)
        self.settings = Settings(self.storage, document.tree)
        resources = self.file.resources
        roles = (resources.for_role("teachers"), resources.for_role("students"), resources.precompute_actor)
        self.nodes = Nodes(self.storage, gpus=any(worker_resources(role).get("GPU") for role in roles))
        self.timed_on: PlainObject | None = None
        """The hardware on which latency was measured; None until it is known."""

    @property
    def preparations(self) -> dict[str, Prepared]:
        """Every alternative of corpus and teachers, in the store."""
        return self.settings.prepared

    @property
    def preparation(self) -> Preparation:
        """The alternative with the largest corpus; the first of them."""
        every = [each.preparation for each in self.preparations.values()]
        return max(every, key=lambda one: sum(part.num_rows for part in one.corpus.parts.values()))

    @property
    def variants(self) -> list[SweepFile]:
        """Plain recipes in which every alternative of the sweep occurs."""
        return [self.settings.recipe(tree) for trees in self.settings.covering.values() for tree in trees]

    @property
    def first_setting(self) -> Setting:
        """The setting with the first alternative of every search."""
        return self.settings.of(covering_trees(self.document.tree)[0].tree)

    def refuse(self, *, resume: bool) -> None:
        """Raises StoreError as `begin` would, before anything is read, and as `starts` does."""
        _ = self.starts
        self.records.refuse(sweep_id=search_identity(self.document), resume=resume, differing=self._differing)

    @cached_property
    def starts(self) -> Starts:
        """What the search tries first. Raises StoreError where `search.start_from` names no sweep."""
        return starts_of(self.file.search.start_from, searched_tree(self.document.tree), self.storage)

    @property
    def resumable(self) -> bool:
        """Whether `--resume` goes on with a sweep of this name: one was started, and it searches the same."""
        return self.records.started_as(search_identity(self.document))

    def earlier(self) -> list[Record]:
        """The trials of the search that need not be made again."""
        records = self.records.load() if self.resumable else []
        return [
            each for each in records if each.trial.role == "search" and each.trial.state not in UNFINISHED
        ]

    def begin(self, lease: Lease, *, resume: bool) -> None:
        """Start the sweep in the store, or resume it; only with the `lease` are its records written.

        Raises:
            StoreError: a sweep of this name exists and `resume` is not set, or it searches something else.
        """
        self.records.lease = lease
        text = json.dumps(self.document.tree)
        self.records.open(
            sweep_id=search_identity(self.document), text=text, resume=resume,
            objectives=self.file.objectives, differing=self._differing,
        )  # fmt: skip

    def _differing(self, stored: PlainObject) -> list[str]:
        return differing_keys(self.document.tree, stored)

    @property
    def trials(self) -> int:
        """How many trials the search makes."""
        return planned_trials(self.document.tree, self.file.search, self.file.budget.trials)

    @property
    def most_runs(self) -> int:
        """How many runs the trials of the search have together."""
        return self.trials * len(self.first_setting.runs)

    @property
    def teachers(self) -> list[tuple[str, Run]]:
        """Name and run of each teacher."""
        return self._distinct(lambda one: [(each.name, each.run) for each in one.teachers], _id)

    @cached_property
    def majority(self) -> dict[str, float]:
        """Language → dev score of its most frequent label; empty of tasks without such labels."""
        corpus = self.preparation.corpus
        return majority_scores(self.file.task_entry, corpus.parts["dev"], corpus.tag_set)

    @property
    def members(self) -> list[tuple[str, Run]]:
        """Name and run of each teacher that is trained: those of `teachers`, or the members of an ensemble."""
        return self._distinct(lambda one: [member for each in one.teachers for member in each.members], _id)

    @property
    def teacher_groups(self) -> list[tuple[str, tuple[PlannedTeacher, ...]]]:
        """Title and teachers of the alternatives; those that have the same teachers count once."""
        return self._distinct(lambda one: [(own[0].config.title, own)] if (own := one.teachers) else [], _ids)

    def _distinct(
        self, named: Callable[[Preparation], Iterable[tuple[str, T]]], key: Callable[[T], Hashable]
    ) -> list[tuple[str, T]]:
        """The items of all preparations by name, each once; a name of several items says what distinguishes them."""
        found: dict[Hashable, tuple[str, T, PlainObject]] = {}
        for prepared in self.preparations.values():
            for name, item in named(prepared.preparation):
                # Only what all preparations with this item have in common belongs to its name.
                _, _, others = found.get(key(item), (name, item, prepared.differences))
                common = {path: v for path, v in prepared.differences.items() if others.get(path) == v}
                found[key(item)] = (name, item, common)
        names = [name for name, _, _ in found.values()]
        return [
            (f"{name} ({_equations(common)})" if names.count(name) > 1 else name, item)
            for name, item, common in found.values()
        ]

    def shapes(self) -> list[Run]:
        """One run for each student shape of the space."""
        return list({shape_key(self.storage, run): run for own in self.students() for run in own}.values())

    def students(self) -> list[tuple[Run, ...]]:
        """The runs of each student of the space that differ in shape: one, or one for each language."""
        section = {"student": self.document.tree["student"]}
        students = [tree["student"] for tree in assignments(section)]
        # A strategy may say whether there is one student for all languages or one for each.
        of_scope = [
            {self.settings.recipe(tree).scoped_student.scope: tree for tree in trees}
            for trees in self.settings.covering.values()
        ]
        trees = [{**tree, "student": each} for own in of_scope for tree in own.values() for each in students]
        every = [self.settings.of(tree).seeds[0] for tree in trees]
        return list({tuple(shape_key(self.storage, run) for run in own): own for own in every}.values())

    def models(self) -> list[Run]:
        """Every teacher (with the members of ensembles), and one run for each student of the space."""
        students = (
            self.settings.of(tree).seeds[0] for trees in self.settings.covering.values() for tree in trees
        )
        teachers = [run for _, run in [*self.members, *self.teachers]]
        return [*teachers, *(run for runs in students for run in runs)]

    def teacher_texts(self) -> dict[str, Text]:
        """The text that each teacher labels, by the id of its run."""
        return {
            teacher.run.id: teacher.text
            for each in self.preparations.values()
            for teacher in each.preparation.teachers
        }

    @property
    def transfer_id(self) -> str:
        """One name for all transfer sets of the sweep; empty when no objective reads a teacher."""
        ids = [
            teacher.signal_id(need, teacher.text)
            for each in self.preparations.values()
            for teacher in each.preparation.teachers
            for need in each.needs
        ]
        return identity("transfer", ids) if ids else ""

    def cost(self, run: Run) -> Cost:
        """What a run's shape costs where latency is measured; RunError where that was not done."""
        return known_cost(self.storage, run, self.timed_on)

    def transfer(self) -> PrecomputePlan | None:
        """The plan of the transfer sets that serve every trial."""
        return transfer_plan(
            self.storage,
            [
                (teacher, each.needs)
                for each in self.preparations.values()
                for teacher in each.preparation.teachers
            ],
        )


def _id(run: Run) -> str:
    return run.id


def _ids(teachers: Iterable[PlannedTeacher]) -> tuple[str, ...]:
    return tuple(teacher.run.id for teacher in teachers)


def _equations(values: PlainObject) -> str:
    return ", ".join(f"{path}={value}" for path, value in values.items())
