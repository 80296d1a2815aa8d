"""The records of a sweep: one file per trial in the store, each written in one piece. Resuming needs nothing else."""

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
"""Of those in which a sweep is another one, so many are named."""
COSTS = "costs.json"
"""The grid on which the sweep compares what is timed."""
TRACKING = "tracking.json"
"""Where the sweep's run is on its tracking server."""


Differing = Callable[[PlainObject], Sequence[str]]
"""Names the keys in which the tree of a sweep file is another than the one that a sweep was started with."""


@dataclass(frozen=True)
class Record:
    """A trial with what the search needs to go on: its parameters and what they were drawn from."""

    trial: Trial
    resolved: PlainObject
    """The sweep file's tree, every value plain."""
    params: PlainObject = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    """Parameter → Optuna distribution as JSON."""
    sampler: PlainObject = field(default_factory=dict)
    """What the sampler noted of it: the generation of an evolutionary one."""
    epochs: Mapping[str, Sequence[PlainObject]] = field(default_factory=dict)
    """Of a trial that was stopped early, run → the metrics of its epochs; others have them in their runs' results."""

    def to_plain(self) -> PlainObject:
        return {
            "trial": self.trial.to_plain(), "resolved": dict(self.resolved), "params": dict(self.params),
            "distributions": dict(self.distributions), "sampler": dict(self.sampler),
            **({"epochs": {run_id: list(own) for run_id, own in self.epochs.items()}} if self.epochs else {}),
        }  # fmt: skip

    @staticmethod
    def from_plain(plain: PlainObject) -> Record:
        return Record(
            Trial.from_plain(plain["trial"]), plain["resolved"], plain["params"], plain["distributions"],
            plain["sampler"], plain.get("epochs", {}),
        )  # fmt: skip


@dataclass(frozen=True)
class Suggestion:
    """A setting that is to be tried, with what its record will hold."""

    tree: PlainObject
    params: PlainObject = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    sampler: PlainObject = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingLabels:
    """How many labels one alternative of the corpus has to train on."""

    settings: PlainObject
    """Key path → value, of what distinguishes its trials from those of the other alternatives."""
    labels: Mapping[str, int]
    """By language, those without any left out: spans, words or sentences."""


def training_labels(alternatives: Sequence[TrainingLabels], trial: Trial) -> Mapping[str, int]:
    """Language → how many labels the trial's training text has, of all `alternatives`; empty where none is its own."""
    own = [each for each in alternatives if each.settings.items() <= trial.settings.items()]
    return max(own, key=lambda each: len(each.settings)).labels if own else {}


class SweepRecords:
    """The folder `sweeps/<name>` of a store."""

    def __init__(self, storage: Storage, name: str):
        self.name, self.folder, self.storage = name, storage.child("sweeps", name), storage
        self.lease: Lease | None = None
        """Of the driver that writes here; readers have none. It alone writes, so it reads each record once."""
        self._kept: dict[str, Record] | None = None
        self._teachers: list[Teacher] | None = None

    def exists(self) -> bool:
        """Whether a sweep of this name was started."""
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
        """Start the sweep, which searches for `objectives`, or resume it.

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
        """Whether a sweep of this name was started, and searches the same: `--resume` goes on with it."""
        return self._sweep_id() == sweep_id

    def _sweep_id(self) -> str | None:
        return self.folder.find_json("sweep.json", lambda plain: plain["sweep_id"])

    def refuse(self, *, sweep_id: str, resume: bool, differing: Differing = lambda tree: ()) -> None:
        """Raises StoreError where a sweep of this name exists, and `resume` was not asked for or it searches something
        else: `differing` names the keys in which the tree of its file is another.
        """
        started = self._sweep_id()
        if started is None:
            return
        if started != sweep_id:
            keys = list(differing(self.tree()))
            # Files that are equal but for what they stand for: another version resolves them otherwise.
            named = ", ".join(keys[:MOST_KEYS]) + (
                f" and {len(keys) - MOST_KEYS} more" * (len(keys) > MOST_KEYS)
            )
            differ = (
                f"{named} differ{'s' * (len(keys) == 1)}" if keys else "another version of raykd began it"
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
        """The sweep file as it was run: with its variants and overrides, and its searches."""
        return self.folder.read_json("sweep.json", lambda plain: json.loads(plain["file"]))

    @property
    def objectives(self) -> Directions:
        """What the sweep searches for."""
        return self.folder.read_json("sweep.json", lambda plain: plain["objectives"])

    @property
    def card(self) -> CardConfig:
        """What the sweep file states for model cards."""
        return validate_plain(CardConfig, self.tree().get("card", {}))

    def load(self) -> list[Record]:
        """All trials, in the order of their numbers."""
        kept = self._kept
        if kept is None:
            kept = {name: self.read(name) for name in self.folder.names("trials/") if name.endswith(".json")}
            if self.lease is not None:
                self._kept = kept
        return [kept[name] for name in sorted(kept)]

    def trials(self) -> list[Trial]:
        """The trials as they are shown: each says what sets it apart from others of its method and shape."""
        return with_distinguishing_settings([record.trial for record in self.load()])

    def read(self, name: str) -> Record:
        """The trial in the file `name`."""
        return self.folder.read_json(name, Record.from_plain)

    def save(self, record: Record) -> None:
        """Write one trial, replacing what it was before."""
        name, plain = f"trials/{record.trial.number:05d}.json", record.to_plain()
        self._write(name, plain)
        if self._kept is not None:
            # As it would be read: a driver that goes on with the sweep must see the same.
            self._kept[name] = Record.from_plain(json.loads(json.dumps(plain)))

    def save_teachers(
        self, teachers: list[Teacher], *, dev_labels: int | None, training: Sequence[TrainingLabels] = ()
    ) -> None:
        """Write the rows that students are compared with, how many labels of dev every score counts (None: it counts
        none), and those that each alternative of the corpus has to train on.
        """
        plain = [teacher.to_plain() for teacher in teachers]
        labels = [asdict(each) for each in training]
        self._write("teachers.json", {"teachers": plain, "dev_labels": dev_labels, "training": labels})
        self._teachers = None

    def save_file(self, name: str, data: bytes) -> None:
        """Write a file that is made from the records, such as the front's page."""
        self._check()
        self.folder.write(name, data)

    def runs(self, trial: Trial) -> list[tuple[Run, RunResult]]:
        """The runs of a trial with their results, in their order; those that the store does not have are left out."""
        folders = [self.storage.child("runs", run_id) for run_id in trial.run_ids]
        found = (
            (folder.find_json(MODEL, Run.from_plain), folder.find_json(RESULT, RunResult.from_plain))
            for folder in folders
        )
        return [(run, result) for run, result in found if run is not None and result is not None]

    def sentences(self, trial: Trial) -> Mapping[str, int]:
        """Part of the trial's corpus → sentences of all its languages; empty where the store does not have it."""
        corpora = [run.corpus_id for run, _ in self.runs(trial)]
        # A student of one language has a run for each, on a corpus of its own.
        total: dict[str, int] = {}
        for corpus_id in dict.fromkeys(corpora):
            folder = self.storage.child("corpora", corpus_id)
            # The manifest alone: a corpus of gigabytes need not come from its bucket to be counted.
            counts = folder.find_json(CORPUS, lambda manifest: manifest["report"]["sentences"])
            if counts is None:
                return {}
            for part, own in counts.items():
                total[part] = total.get(part, 0) + sum(own.values())
        return total

    def pos_origin(self, trial: Trial) -> str:
        """Where the parts of speech of the trial's treebank are from, in words; empty without one."""
        for run, _ in self.runs(trial):
            folder = self.storage.child("corpora", run.corpus_id)
            found = folder.find_json(CORPUS, lambda manifest: manifest["report"].get("pos", {}))
            return str((found or {}).get("origin", ""))
        return ""

    def save_grid(self, grid: Grid) -> None:
        """Write the grid on which costs are compared."""
        self._write(COSTS, {"grid": {name: list(own) for name, own in grid.items()}})

    def grid(self) -> Grid | None:
        """What `save_grid` wrote; None before that."""
        return self.folder.find_json(COSTS, lambda plain: dict(plain["grid"]))

    def save_run(self, place: str) -> None:
        """Write where the sweep's run is on its tracking server, as it follows the server's URI."""
        self._write(TRACKING, {"run": place})

    def run_place(self) -> str:
        """What `save_run` wrote; empty where nothing was tracked."""
        return self.folder.find_json(TRACKING, lambda plain: str(plain["run"])) or ""

    def save_status(self, status: Status) -> None:
        """Write how far the sweep is."""
        self._write(STATUS, status.to_plain())

    def status(self) -> Status | None:
        """What `save_status` wrote last; None before that."""
        return self.folder.read_json(STATUS, Status.from_plain) if self.folder.exists(STATUS) else None

    def _write(self, name: str, plain: PlainObject) -> None:
        self._check()
        self.folder.write_json(name, plain)

    def _check(self) -> None:
        if self.lease is not None:
            self.lease.check()

    def teachers(self) -> list[Teacher]:
        """The rows that students are compared with."""
        if self._teachers is not None:
            return self._teachers
        teachers = self.folder.find_json(
            "teachers.json", lambda plain: [Teacher.from_plain(each) for each in plain["teachers"]]
        )
        if self.lease is not None:
            self._teachers = teachers
        return teachers or []

    def training(self) -> list[TrainingLabels]:
        """How many labels each alternative of the corpus has to train on; empty before teachers are trained."""
        found = self.folder.find_json(
            "teachers.json", lambda plain: [TrainingLabels(**each) for each in plain["training"]]
        )
        return found or []

    def dev_labels(self) -> int | None:
        """How many labels of dev every score counts: spans, words or sentences; None before teachers are trained, and
        of a masked language model.
        """
        return self.folder.find_json(
            "teachers.json", lambda plain: None if plain["dev_labels"] is None else int(plain["dev_labels"])
        )


def sweeps_in(storage: Storage) -> list[SweepRecords]:
    """Every sweep that has records, by name."""
    own = re.compile(r"sweeps/([^/]+)/(sweep\.json|trials/.+)")
    names = {found[1] for name in storage.names("sweeps/") if (found := own.fullmatch(name))}
    return [SweepRecords(storage, name) for name in sorted(names)]
