"""The records of a sweep: one file per trial in the store, each written atomically. Resuming needs nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from raykd.errors import StoreError
from raykd.figures.cost_grid import Grid
from raykd.figures.results import RunResult
from raykd.figures.table import OBJECTIVES, Directions
from raykd.figures.trial import Teacher, Trial, with_distinguishing_settings
from raykd.identity import PlainObject
from raykd.pluralise import pluralise
from raykd.recipes.card_config import CardConfig
from raykd.recipes.run import Run, validate_plain
from raykd.redact import redact
from raykd.storage.layout import CORPUS, MODEL, RESULT
from raykd.storage.store import Storage
from raykd.sweep.lease import Lease
from raykd.sweep.status import FILE as STATUS
from raykd.sweep.status import Status

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""The names that a sweep may have: one word of a path."""

MOST_KEYS = 5
"""Most differing keys that an error names."""
COSTS = "costs.json"
"""File with the grid for comparing timed costs."""
TRACKING = "tracking.json"
"""File with the path of the sweep's run on the tracking server."""


Differing = Callable[[PlainObject], Sequence[str]]
"""Receives the tree with which a sweep was started, and returns the dotted keys in which the present file differs."""


@dataclass(frozen=True)
class Record:
    """A trial with the data for resuming the search: its parameters and their distributions."""

    trial: Trial
    resolved: PlainObject
    """The sweep file's tree, every value plain."""
    params: PlainObject = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    """Parameter → Optuna distribution as JSON."""
    sampler: PlainObject = field(default_factory=dict)
    """Notes of the sampler on the trial, such as the generation in an evolutionary search."""
    epochs: Mapping[str, Sequence[PlainObject]] = field(default_factory=dict)
    """Run id → metrics of the epochs, of a trial stopped early; other trials have them in their runs' results."""

    def to_plain(self) -> PlainObject:
        """Return the JSON form; `from_plain` reads it back."""
        return {
            "trial": self.trial.to_plain(), "resolved": dict(self.resolved), "params": dict(self.params),
            "distributions": dict(self.distributions), "sampler": dict(self.sampler),
            **({"epochs": {run_id: list(metrics) for run_id, metrics in self.epochs.items()}} if self.epochs else {}),
        }  # fmt: skip

    @staticmethod
    def from_plain(plain: PlainObject) -> Record:
        """Read the form written by `to_plain`."""
        return Record(
            Trial.from_plain(plain["trial"]), plain["resolved"], plain["params"], plain["distributions"],
            plain["sampler"], plain.get("epochs", {}),
        )  # fmt: skip


@dataclass(frozen=True)
class Suggestion:
    """A setting to try, with the data for its record."""

    tree: PlainObject
    params: PlainObject = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    sampler: PlainObject = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingLabels:
    """Number of training labels of one alternative of the corpus."""

    settings: PlainObject
    """Key path → value, of the settings by which its trials differ from those of other alternatives."""
    labels: Mapping[str, int]
    """Language → number of labels in spans, words or sentences; languages without labels are left out."""


def training_labels(alternatives: Sequence[TrainingLabels], trial: Trial) -> Mapping[str, int]:
    """Return the number of labels in a trial's training text, by language.

    Args:
        alternatives: The alternatives of the corpus.
        trial: The trial.

    Returns:
        An empty mapping if no alternative belongs to the trial.
    """
    matching = [
        alternative for alternative in alternatives if alternative.settings.items() <= trial.settings.items()
    ]
    return max(matching, key=lambda candidate: len(candidate.settings)).labels if matching else {}


class SweepRecords:
    """The folder `sweeps/<name>` of a store."""

    def __init__(self, storage: Storage, name: str):
        self.name, self.folder, self.storage = name, storage.child("sweeps", name), storage
        self.lease: Lease | None = None
        """Lease of the driver; None for readers. Only the driver writes, so it keeps each record that it has read."""
        self._records_by_file: dict[str, Record] | None = None
        self._teachers: list[Teacher] | None = None

    def exists(self) -> bool:
        """Return True if a sweep with the name was started."""
        return self.folder.exists("sweep.json")

    def open(
        self,
        *,
        sweep_id: str,
        text: str,
        resume: bool,
        objectives: Directions = OBJECTIVES,
        differing: Differing = lambda tree: (),
    ) -> None:
        """Start the sweep, or resume it.

        Args:
            sweep_id: Identity of the search.
            text: The resolved sweep file as JSON.
            resume: Allow to go on with an existing sweep.
            objectives: Figures that the sweep searches for, with their directions.
            differing: Names the keys in which an existing sweep's file differs.

        Raises:
            StoreError: as `refuse`.
        """
        if self.exists():
            self.refuse(sweep_id=sweep_id, resume=resume, differing=differing)
        else:
            # A file may leave the objectives out: what is searched for by default depends on its students.
            plain = {"sweep_id": sweep_id, "file": redact(text), "objectives": dict(objectives)}
            self._write("sweep.json", plain)

    def started_as(self, sweep_id: str) -> bool:
        """Return True if the sweep was started with the same search, so that it can be resumed."""
        return self._sweep_id() == sweep_id

    def _sweep_id(self) -> str | None:
        return self.folder.find_json("sweep.json", lambda plain: plain["sweep_id"])

    def refuse(self, *, sweep_id: str, resume: bool, differing: Differing = lambda tree: ()) -> None:
        """Refuse an existing sweep, unless it has the same search and may be resumed.

        Args:
            sweep_id: Identity of the search.
            resume: Allow to go on with an existing sweep.
            differing: Names the keys in which an existing sweep's file differs.

        Raises:
            StoreError: the sweep exists and `resume` is False, or it has another search.
        """
        started = self._sweep_id()
        if started is None:
            return
        if started != sweep_id:
            keys = list(differing(self.tree()))
            # Without a differing key the ids differ only because another version resolves the file otherwise.
            listing = ", ".join(keys[:MOST_KEYS]) + (
                f" and {len(keys) - MOST_KEYS} more" * (len(keys) > MOST_KEYS)
            )
            differ = (
                f"{listing} differ{'s' * (len(keys) == 1)}" if keys else "another version of raykd began it"
            )
            hint = "give this one another name: --set name=…"
            raise StoreError(f"sweep {self.name!r}", f"was started with another search ({differ})", hint)
        if not resume:
            ended = sum(record.trial.state != "RUNNING" for record in self.load())
            raise StoreError(
                f"sweep {self.name!r}", f"exists with {pluralise(ended, 'trial')}",
                "--resume goes on with it, --set name=… starts another",
            )  # fmt: skip

    def tree(self) -> PlainObject:
        """Return the sweep file as it ran: with variants, overrides and searches."""
        return self.folder.read_json("sweep.json", lambda plain: json.loads(plain["file"]))

    @property
    def objectives(self) -> Directions:
        """Figures searched for by the sweep, with their directions."""
        return self.folder.read_json("sweep.json", lambda plain: plain["objectives"])

    @property
    def card(self) -> CardConfig:
        """Statements of the sweep file for model cards."""
        return validate_plain(CardConfig, self.tree().get("card", {}))

    def load(self) -> list[Record]:
        """Return all trials, in the order of their numbers."""
        records = self._records_by_file
        if records is None:
            records = {
                name: self.read(name) for name in self.folder.names("trials/") if name.endswith(".json")
            }
            if self.lease is not None:
                self._records_by_file = records
        return [records[name] for name in sorted(records)]

    def trials(self) -> list[Trial]:
        """Return the trials for display, each with the settings that distinguish it from similar ones."""
        return with_distinguishing_settings([record.trial for record in self.load()])

    def read(self, name: str) -> Record:
        """Return the trial in the file `name`."""
        return self.folder.read_json(name, Record.from_plain)

    def save(self, record: Record) -> None:
        """Write one trial, replacing its earlier record."""
        name, plain = f"trials/{record.trial.number:05d}.json", record.to_plain()
        self._write(name, plain)
        if self._records_by_file is not None:
            # Through JSON, as a later driver will read it: both must see the same record.
            self._records_by_file[name] = Record.from_plain(json.loads(json.dumps(plain)))

    def save_teachers(
        self, teachers: list[Teacher], *, dev_labels: int | None, training: Sequence[TrainingLabels] = ()
    ) -> None:
        """Write the teachers' rows and the numbers of labels.

        Args:
            teachers: Rows with which students are compared.
            dev_labels: Number of labels of dev that a score counts; None if it counts none.
            training: Number of training labels of each alternative of the corpus.
        """
        plain = [teacher.to_plain() for teacher in teachers]
        labels = [asdict(alternative) for alternative in training]
        self._write("teachers.json", {"teachers": plain, "dev_labels": dev_labels, "training": labels})
        self._teachers = None

    def save_file(self, name: str, data: bytes) -> None:
        """Write a file made from the records, such as the page of the front.

        Args:
            name: Name of the file.
            data: Its content.
        """
        self._check()
        self.folder.write(name, data)

    def runs(self, trial: Trial) -> list[tuple[Run, RunResult]]:
        """Return the runs of a trial with their results, in order; runs missing in the store are left out."""
        folders = [self.storage.child("runs", run_id) for run_id in trial.run_ids]
        stored = (
            (folder.find_json(MODEL, Run.from_plain), folder.find_json(RESULT, RunResult.from_plain))
            for folder in folders
        )
        return [(run, result) for run, result in stored if run is not None and result is not None]

    def sentences(self, trial: Trial) -> Mapping[str, int]:
        """Return the sentences of all languages, by part of the trial's corpus.

        The mapping is empty if the store does not have the corpus.
        """
        corpora = [run.corpus_id for run, _ in self.runs(trial)]
        # A student of one language has a run for each, on a corpus of its own.
        total: dict[str, int] = {}
        for corpus_id in dict.fromkeys(corpora):
            folder = self.storage.child("corpora", corpus_id)
            # The manifest alone: a corpus of gigabytes need not come from its bucket to be counted.
            counts = folder.find_json(CORPUS, lambda manifest: manifest["report"]["sentences"])
            if counts is None:
                return {}
            for part, counts_by_language in counts.items():
                total[part] = total.get(part, 0) + sum(counts_by_language.values())
        return total

    def pos_origin(self, trial: Trial) -> str:
        """Origin of the parts of speech in the trial's treebank, in words; empty without a treebank."""
        for run, _ in self.runs(trial):
            folder = self.storage.child("corpora", run.corpus_id)
            pos = folder.find_json(CORPUS, lambda manifest: manifest["report"].get("pos", {}))
            return str((pos or {}).get("origin", ""))
        return ""

    def save_grid(self, grid: Grid) -> None:
        """Write the grid for comparing costs."""
        self._write(COSTS, {"grid": {name: list(edges) for name, edges in grid.items()}})

    def grid(self) -> Grid | None:
        """Return the grid written by `save_grid`; None if there is none."""
        return self.folder.find_json(COSTS, lambda plain: dict(plain["grid"]))

    def save_run(self, place: str) -> None:
        """Write the path of the sweep's run below the URI of the tracking server."""
        self._write(TRACKING, {"run": place})

    def run_place(self) -> str:
        """Return the path written by `save_run`; empty if nothing was tracked."""
        return self.folder.find_json(TRACKING, lambda plain: str(plain["run"])) or ""

    def save_status(self, status: Status) -> None:
        """Write the progress of the sweep."""
        self._write(STATUS, status.to_plain())

    def status(self) -> Status | None:
        """Return the status written last; None if there is none."""
        return self.folder.read_json(STATUS, Status.from_plain) if self.folder.exists(STATUS) else None

    def _write(self, name: str, plain: PlainObject) -> None:
        self._check()
        self.folder.write_json(name, plain)

    def _check(self) -> None:
        if self.lease is not None:
            self.lease.check()

    def teachers(self) -> list[Teacher]:
        """Return the teachers' rows."""
        if self._teachers is not None:
            return self._teachers
        teachers = self.folder.find_json(
            "teachers.json", lambda plain: [Teacher.from_plain(row) for row in plain["teachers"]]
        )
        if self.lease is not None:
            self._teachers = teachers
        return teachers or []

    def training(self) -> list[TrainingLabels]:
        """Return the numbers of training labels, by alternative of the corpus; empty before teachers are trained."""
        alternatives = self.folder.find_json(
            "teachers.json",
            lambda plain: [TrainingLabels(**alternative) for alternative in plain["training"]],
        )
        return alternatives or []

    def dev_labels(self) -> int | None:
        """Return the number of dev labels counted by a score: spans, words or sentences.

        None before teachers are trained, and for a masked language model.
        """
        return self.folder.find_json(
            "teachers.json", lambda plain: None if plain["dev_labels"] is None else int(plain["dev_labels"])
        )


def sweeps_in(storage: Storage) -> list[SweepRecords]:
    """Return the records of all sweeps, by name.

    Args:
        storage: The store.
    """
    pattern = re.compile(r"sweeps/([^/]+)/(sweep\.json|trials/.+)")
    names = {match[1] for name in storage.names("sweeps/") if (match := pattern.fullmatch(name))}
    return [SweepRecords(storage, name) for name in sorted(names)]
