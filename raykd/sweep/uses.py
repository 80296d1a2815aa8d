"""The parts of a store in use by sweeps: parts that no sweep needs, and parts that only one needs.

A part is a folder or a file with an identity as its name. Only parts can be free, and only the files that raykd writes
(`WRITTEN`) belong to them: other files in a store stay.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from raykd.corpora.stored_sources import read_noted_corpus
from raykd.errors import OtherVersionError, StoreError
from raykd.figures.trial import can_resume
from raykd.recipes.run import Run
from raykd.storage.layout import (
    ANSWERS,
    COMPLETION_FILES,
    EMBEDDINGS,
    ENCODED,
    ENCODERS,
    FILE_PATTERNS,
    ID,
    IMPORTANCE,
    LABEL_SETS,
    MANIFEST,
    MODEL,
    PARTS,
    SOURCES,
)
from raykd.storage.store import Stamp, Storage
from raykd.sweep.lease import NAME as LEASE
from raykd.sweep.lease import refuse_if_leased, refuse_if_working
from raykd.sweep.records import SweepRecords, sweeps_in
from raykd.training.cut_weights import importance_id
from raykd.training.embeddings import embeddings_id
from raykd.training.model_folder import teacher_signals_id
from raykd.training.stored_features import FEATURES, encoder_ids, text_ids
from raykd.training.stored_text import encoded_text_id
from raykd.transfer import read_manifest, signal_id

RUN_ID = re.compile(rf"run-{ID}")
MISNAMED = "misnamed"
"""Key of `used_by` for misnamed runs: folders whose content gives another id."""
SIGNALS_OF = "signals_of"
"""Key of `used_by` for the ids under which signals of used teachers are stored."""
KEPT = ("costs", ANSWERS)
"""Kinds that are never free: costs are small and slow to measure again, and answers of annotators were paid for."""


@dataclass(frozen=True)
class Part:
    """One stored part: a run, a teacher, the signals of a teacher for a text, and so on."""

    kind: str
    name: str
    files: Mapping[str, Stamp]
    """Name in the store → bytes and time of the last change."""

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(stamp.bytes for stamp in self.files.values())

    @property
    def modified_ns(self) -> int | None:
        """Time of the last change of a file; None if the store does not tell."""
        return max((stamp.modified_ns for stamp in self.files.values() if stamp.modified_ns), default=None)

    @property
    def order(self) -> list[str]:
        """The files in the order of removal: a half removed part looks unfinished."""
        return sorted(self.files, key=lambda name: (name.rpartition("/")[2] not in COMPLETION_FILES, name))


def refuse_if_running(
    storage: Storage, *, note: Callable[[str], None], damaged: Collection[str] = ()
) -> None:
    """Refuse while a driver works on a sweep of the store, or a command computes there without a sweep.

    Args:
        storage: The store.
        note: Called with a sentence about each wait.
        damaged: Names of damaged files. A damaged lease does not count: its holder, if any, ends at its next check.

    Raises:
        StoreError: nothing may be removed now.
    """
    refuse_if_working(storage, note=note)
    for records in sweeps_in(storage):
        if f"sweeps/{records.name}/{LEASE}" not in damaged:
            refuse_if_leased(records.folder, note=note)


def parts_of(storage: Storage, files: Mapping[str, Stamp] | None = None) -> list[Part]:
    """Return the parts of a store, by kind. A note of a source belongs to its corpus.

    Args:
        storage: The store.
        files: Its files, if they were listed before.

    Raises:
        StoreError: a note of a source is damaged.
    """
    files_of_parts: dict[tuple[str, str], dict[str, Stamp]] = {}
    files = storage.files() if files is None else files
    for kind, written in FILE_PATTERNS.items():
        for name, stamp in files.items():
            if name.startswith(f"{kind}/") and written.fullmatch(name.removeprefix(f"{kind}/")):
                files_of_parts.setdefault((kind, _part(storage, name)), {})[name] = stamp
    kinds = list(FILE_PATTERNS)
    ordered = sorted(files_of_parts, key=lambda part: (kinds.index(part[0]), part[1]))
    return [Part(kind, name, files_of_parts[kind, name]) for kind, name in ordered]


def unused(storage: Storage) -> list[Part]:
    """Return the unused parts.

    These are runs and teachers of no trial, their corpora, vocabularies and signals, and runs made without a sweep.

    Raises:
        StoreError: a part is damaged, or a sweep has not ended, so its needs are not known yet.
    """
    return _free(storage, used_by(storage, sweeps_in(storage)))


def used_alone(storage: Storage, name: str) -> list[Part]:
    """Return the parts used by the sweep `name` and no other.

    While another sweep has not ended, its needs are not known, and the result contains only runs.

    Raises:
        StoreError: a part is damaged.
    """
    other_sweeps = [records for records in sweeps_in(storage) if records.name != name]
    used_by_sweep = used_by(storage, [SweepRecords(storage, name)], ended=False)
    kinds = ["runs"] if any(can_resume(records.trials()) for records in other_sweeps) else list(FILE_PATTERNS)
    free = _free(storage, used_by(storage, other_sweeps, ended=False))
    return [part for part in free if part.kind in kinds and part.name in used_by_sweep[part.kind]]


def _free(storage: Storage, used: Mapping[str, set[str]]) -> list[Part]:
    """Return the parts not in `used`; raise OtherVersionError if the present raykd would give a run another id."""
    if misnamed := sorted(used[MISNAMED]):
        problem = "is of another version of raykd, or was renamed: what it was made from is not known"
        hint = "use the raykd that wrote it"
        raise OtherVersionError(f"{storage.address}/{misnamed[0]}", problem, hint)
    return [part for part in parts_of(storage) if part.kind not in KEPT and part.name not in used[part.kind]]


def used_by(storage: Storage, sweeps: Iterable[SweepRecords], *, ended: bool = True) -> dict[str, set[str]]:
    """Return the names of the parts used by some sweeps, by kind; further keys are `MISNAMED` and `SIGNALS_OF`.

    Raises:
        StoreError: a part is damaged; or, with `ended`, a sweep has not ended, so its needs are not known yet.
    """
    used: dict[str, set[str]] = defaultdict(set)
    for records in sweeps:
        trials = [record.trial for record in records.load()]
        if ended and can_resume(trials):
            hint = f"end it with raykd sweep FILE --resume, or remove it: raykd clean STORE --sweep {records.name}"
            failed = all(trial.state != "RUNNING" for trial in trials) and bool(trials)
            problem = (
                "trials of the sweep failed, and may be tried again" if failed else "the sweep has not ended"
            )
            raise StoreError(records.folder.address, problem, hint)
        named_runs = RUN_ID.findall(json.dumps(records.tree())) if records.folder.exists("sweep.json") else []
        for run_id in (*named_runs, *(run_id for trial in trials for run_id in trial.run_ids)):
            _use_stored(storage, used, "runs", run_id)
    for signal in {name.split("/")[1] for name in storage.names("transfer/") if name.endswith(MANIFEST)}:
        for name in storage.names(f"transfer/{signal}/"):
            if name.endswith(MANIFEST):
                origin = read_manifest(storage.child(*name.split("/")[:-1])).origin
                # Signals of a used teacher for a used text stay: further signals are computed from them.
                if origin.teacher_id in used[SIGNALS_OF] and origin.text_id in {"", *used["transfer"]}:
                    used["transfer"].add(signal)
    return used


def _part(storage: Storage, name: str) -> str:
    """Return the name of the part with a file; a note of a source belongs to the corpus."""
    part = name.split("/")[1]
    if part == SOURCES:
        return read_noted_corpus(storage, name.rpartition("/")[2].removesuffix(".json"))
    return part.removesuffix(".json")


def _use_stored(storage: Storage, used: dict[str, set[str]], kind: str, name: str) -> None:
    """Add the run in a folder of the store to `used`, if there is one."""
    if storage.exists(f"{kind}/{name}/{MODEL}"):
        run = storage.read_json(f"{kind}/{name}/{MODEL}", Run.from_plain)
        if run.id != name:
            used[MISNAMED].add(f"{kind}/{name}")
        _use(storage, used, run)
        used[kind].add(name)


def _use(storage: Storage, used: dict[str, set[str]], run: Run) -> None:
    """Add a run and all parts from which it was made to `used`."""
    kind, run_id = run.folder
    if run_id in used[kind]:
        return
    used[kind].add(run_id)
    used[SIGNALS_OF] |= {teacher_signals_id(run)} if run.role == "teacher" else set()
    used["corpora"].add(run.corpus_id)
    used["vocabularies"].add(run.vocabulary_id)
    used[LABEL_SETS] |= {run.labels_id} - {""}
    used[ENCODED] |= {encoded_text_id(run.corpus_id, part, run.vocabulary_id) for part in PARTS}
    for encoder in encoder_ids(run):
        used[ENCODERS].add(encoder)
        for text in text_ids(storage, encoder):
            used["transfer"] |= {text, signal_id(FEATURES, teacher_id=encoder, text_id=text)}
    for member in run.members:
        _use(storage, used, member)
    teachers = [source.teacher_id for source in run.sources]
    if run.model.get("embeddings"):
        used[EMBEDDINGS].add(embeddings_id(run))
        teachers += (
            [embeddings_teacher]
            if (embeddings_teacher := (run.embeddings_from or {}).get("teacher_id"))
            else []
        )
    used[IMPORTANCE] |= {importance_id(run)} - {""}
    teachers += [run.cut_from] if run.cut_from else []
    for teacher in teachers:
        _use_stored(storage, used, "teachers", teacher)
    for source in run.sources:
        for signal in source.stored_ids.values():
            used["transfer"].add(signal)
            for name in storage.names(f"transfer/{signal}/"):
                if name.endswith(MANIFEST):
                    used["transfer"].add(read_manifest(storage.child(*name.split("/")[:-1])).origin.text_id)
    if run.start_from:  # by its name: the store may have moved
        _use_stored(storage, used, "runs", run.start_from["folder"].rstrip("/").rpartition("/")[2])
