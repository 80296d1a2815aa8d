"""A sweep: alternatives, runs, shapes, transfer sets and records of a sweep file in a store."""

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
    """A valid sweep file. Its corpora are read, and put into the store, at first use; nothing is trained."""

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
        """The alternatives of corpus and teachers, in the store."""
        return self.settings.prepared

    def prepare_again(self) -> None:
        """Forget the alternatives: further answers of an annotator change which texts it has labelled."""
        self.settings = Settings(self.storage, self.document.tree)

    @property
    def preparation(self) -> Preparation:
        """The first alternative with the largest corpus."""
        preparations = [preparation.preparation for preparation in self.preparations.values()]
        return max(
            preparations, key=lambda candidate: sum(part.num_rows for part in candidate.corpus.parts.values())
        )

    @property
    def variants(self) -> list[SweepFile]:
        """Plain recipes with all alternatives of the sweep."""
        return [self.settings.recipe(tree) for trees in self.settings.covering.values() for tree in trees]

    @property
    def first_setting(self) -> Setting:
        """The setting with the first alternative of every search."""
        return self.settings.of(covering_trees(self.document.tree)[0].tree)

    def refuse(self, *, resume: bool) -> None:
        """Raise StoreError as `begin` and `starts` would, before anything is read."""
        _ = self.starts
        self.records.refuse(sweep_id=search_identity(self.document), resume=resume, differing=self._differing)

    @cached_property
    def starts(self) -> Starts:
        """The first settings of the search. Raises StoreError if `search.start_from` names no sweep."""
        return starts_of(self.file.search.start_from, searched_tree(self.document.tree), self.storage)

    @property
    def resumable(self) -> bool:
        """True if the sweep was started with the same search."""
        return self.records.started_as(search_identity(self.document))

    def earlier(self) -> list[Record]:
        """Return the finished trials of the search, complete or stopped early; failed ones are tried again."""
        records = self.records.load() if self.resumable else []
        return [
            record
            for record in records
            if record.trial.role == "search" and record.trial.state not in UNFINISHED
        ]

    def begin(self, lease: Lease, *, resume: bool) -> None:
        """Start the sweep in the store, or resume it.

        Args:
            lease: The lease of the sweep; records are written only while it is held.
            resume: Allow to go on with an existing sweep.

        Raises:
            StoreError: the sweep exists and `resume` is False, or it has another search.
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
        """Number of trials of the search."""
        return planned_trials(self.document.tree, self.file.search, self.file.budget.trials)

    @property
    def most_runs(self) -> int:
        """Largest number of runs of the search."""
        return self.trials * len(self.first_setting.runs)

    @property
    def teachers(self) -> list[tuple[str, Run]]:
        """Names and runs of the teachers."""
        return self._distinct(
            lambda preparation: [(teacher.name, teacher.run) for teacher in preparation.teachers], _id
        )

    @cached_property
    def majority(self) -> dict[str, float]:
        """Dev score of the most frequent label by language; empty for tasks without such labels."""
        corpus = self.preparation.corpus
        return majority_scores(self.file.task_entry, corpus.parts["dev"], corpus.tag_set)

    @property
    def members(self) -> list[tuple[str, Run]]:
        """Names and runs of the trained teachers: those of `teachers`, or the members of an ensemble."""
        return self._distinct(
            lambda preparation: [member for teacher in preparation.teachers for member in teacher.members],
            _id,
        )

    @property
    def teacher_groups(self) -> list[tuple[str, tuple[PlannedTeacher, ...]]]:
        """Title and teachers of the alternatives; alternatives with the same teachers count once."""
        return self._distinct(
            lambda preparation: (
                [(teachers[0].config.title, teachers)] if (teachers := preparation.teachers) else []
            ),
            _ids,
        )

    def _distinct(
        self, named_items: Callable[[Preparation], Iterable[tuple[str, T]]], key: Callable[[T], Hashable]
    ) -> list[tuple[str, T]]:
        """Return the distinct items of all preparations; a name of several items is followed by the differences."""
        distinct: dict[Hashable, tuple[str, T, PlainObject]] = {}
        for prepared in self.preparations.values():
            for name, item in named_items(prepared.preparation):
                # Only settings that all preparations with the item share belong to the item's name.
                _, _, differences = distinct.get(key(item), (name, item, prepared.differences))
                common = {path: v for path, v in prepared.differences.items() if differences.get(path) == v}
                distinct[key(item)] = (name, item, common)
        names = [name for name, _, _ in distinct.values()]
        return [
            (f"{name} ({_equations(common)})" if names.count(name) > 1 else name, item)
            for name, item, common in distinct.values()
        ]

    def shapes(self) -> list[Run]:
        """Return one run for each student shape of the space."""
        return list({shape_key(self.storage, run): run for runs in self.students() for run in runs}.values())

    def students(self) -> list[tuple[Run, ...]]:
        """Runs of the students of the space that differ in shape: one run, or one for each language."""
        section = {"student": self.document.tree["student"]}
        students = [tree["student"] for tree in assignments(section)]
        # A strategy may say whether there is one student for all languages or one for each.
        of_scope = [
            {self.settings.recipe(tree).scoped_student.scope: tree for tree in trees}
            for trees in self.settings.covering.values()
        ]
        trees = [
            {**tree, "student": student}
            for alternatives in of_scope
            for tree in alternatives.values()
            for student in students
        ]
        student_runs = [self.settings.of(tree).seeds[0] for tree in trees]
        return list(
            {tuple(shape_key(self.storage, run) for run in runs): runs for runs in student_runs}.values()
        )

    def models(self) -> list[Run]:
        """Return all teachers (with the members of ensembles), and one run for each student of the space."""
        students = (
            self.settings.of(tree).seeds[0] for trees in self.settings.covering.values() for tree in trees
        )
        teachers = [run for _, run in [*self.members, *self.teachers]]
        return [*teachers, *(run for runs in students for run in runs)]

    def teacher_texts(self) -> dict[str, Text]:
        """Texts labelled by the teachers, by the id of the teacher's run."""
        return {
            teacher.run.id: teacher.text
            for preparation in self.preparations.values()
            for teacher in preparation.preparation.teachers
        }

    @property
    def transfer_id(self) -> str:
        """One name for all transfer sets of the sweep; empty if no objective reads a teacher."""
        ids = [
            teacher.signal_id(need, teacher.text)
            for preparation in self.preparations.values()
            for teacher in preparation.preparation.teachers
            for need in preparation.needs
        ]
        return identity("transfer", ids) if ids else ""

    def cost(self, run: Run) -> Cost:
        """Cost of a run's shape on the node that measures latency; raises RunError if it was not measured."""
        return known_cost(self.storage, run, self.timed_on)

    def transfer(self) -> PrecomputePlan | None:
        """Return the plan of the transfer sets for all trials."""
        return transfer_plan(
            self.storage,
            [
                (teacher, preparation.needs)
                for preparation in self.preparations.values()
                for teacher in preparation.preparation.teachers
            ],
        )


def _id(run: Run) -> str:
    return run.id


def _ids(teachers: Iterable[PlannedTeacher]) -> tuple[str, ...]:
    return tuple(teacher.run.id for teacher in teachers)


def _equations(values: PlainObject) -> str:
    return ", ".join(f"{path}={value}" for path, value in values.items())
