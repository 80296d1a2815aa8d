"""Damage in a store, and the work that repairing it costs.

To check a new kind of stored part, add a function here and a line of `KINDS`. Each function calls the same reader as a
sweep, so there is no second check to keep in step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from raykd.corpora.corpus import open_corpus
from raykd.corpora.stored_sources import read_noted_corpus
from raykd.errors import OtherVersionError, RaykdError, StoreError
from raykd.figures.results import Cost, RunResult
from raykd.forms import labels_from
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import stored_vocabulary_from_json
from raykd.storage.cache import fresh_copies
from raykd.storage.layout import (
    ANNOTATOR,
    ANSWERS,
    CHECKPOINT,
    CORPUS,
    EMBEDDINGS,
    EMBEDDINGS_MANIFEST,
    ENCODED,
    ENCODED_MANIFEST,
    ENCODERS,
    HASHES,
    IMPORTANCE,
    INDEX,
    LABEL_SETS,
    LABELS,
    MANIFEST,
    MODEL,
    RESULT,
    RUN_FILES,
    SOURCES,
    TEXT,
    VOCABULARY,
    WEIGHTS,
)
from raykd.storage.sealed_json import OTHER_VERSION
from raykd.storage.store import Storage
from raykd.sweep.lease import NAME as LEASE
from raykd.sweep.records import STATUS, TRACKING, SweepRecords, sweeps_in
from raykd.training.checkpoint import read_checkpoint
from raykd.training.cut_weights import parts_from_plain
from raykd.training.embeddings import open_embeddings
from raykd.training.model_folder import check_weights, is_trained
from raykd.training.stored_text import open_encoded_text
from raykd.transfer import open_shard, open_text, read_hashes, read_index, read_manifest
from raykd.transfer.answer_store import read_batch


@dataclass(frozen=True)
class Damage:
    """One damaged part.

    Attributes:
        name: File, or folder of the part.
        problem: The error on reading it.
        remove: Files that repairing removes.
        consequence: What a sweep does again after repairing, as a clause.
        other_version: Whether the part is intact but written by another version of raykd; repairing leaves such parts.
    """

    name: str
    problem: str
    remove: tuple[str, ...]
    consequence: str
    other_version: bool = False


@dataclass(frozen=True)
class Examination:
    """The content of a store.

    Attributes:
        files: Kind of part → number of files.
        bytes: Kind of part → bytes.
        damages: Damaged parts.
        other_version: Intact parts written by another version of raykd.
        temporary_files: Temporary file of a killed process → bytes.
    """

    files: Mapping[str, int]
    bytes: Mapping[str, int]
    damages: tuple[Damage, ...]
    other_version: tuple[Damage, ...] = ()
    temporary_files: Mapping[str, int] = field(default_factory=dict)


Names = tuple[str, ...]
"""The files of one stored part, as paths below the folder of its kind."""


def examine_store(storage: Storage, *, on_part: Callable[[str], None] = lambda name: None) -> Examination:
    """Read all parts of a store with the readers of a sweep.

    Args:
        storage: The store.
        on_part: Called with the name of every part before it is read.
    """
    files: dict[str, int] = defaultdict(int)
    size: dict[str, int] = defaultdict(int)
    damages: list[Damage] = []
    # A node's copies were compared before: read the store itself.
    with nullcontext() if storage.is_local else fresh_copies():
        for kind, check in KINDS.items():
            parts: dict[str, list[str]] = defaultdict(list)
            for name, stamp in storage.files(f"{kind}/").items():
                below = name.removeprefix(f"{kind}/")
                parts[below.partition("/")[0]].append(below)
                files[kind] += 1
                size[kind] += stamp.bytes
            for part, names in parts.items():
                on_part(f"{kind}/{part}")
                damages += check(storage, part, tuple(names))
    damaged = tuple(damage for damage in damages if not damage.other_version)
    other_version = tuple(damage for damage in damages if damage.other_version)
    return Examination(files, size, damaged, other_version, storage.abandoned_files())


def _damage_of_read(
    read: Callable[[], Any], name: str, repair: str, remove: Iterable[str] | None = None
) -> Iterator[Damage]:
    """Yield the damage reported by `read`, if any."""
    try:
        read()
    except RaykdError as error:
        files = tuple(remove or (name,))
        if not isinstance(error, StoreError):
            yield Damage(name, str(error), files, repair)
            return
        # In a folder that is removed as a whole, name the damaged file.
        file = next((candidate for candidate in files if error.name.endswith(f"/{candidate}")), name)
        other_version = isinstance(error, OtherVersionError)
        yield Damage(file, error.problem, () if other_version else files, repair, other_version)


def _check_json(
    kind: str,
    parse: Callable[[str], Callable[[Any], Any]],
    repair: str,
    storage: Storage,
    part: str,
    names: Names,
) -> Iterator[Damage]:
    """Check a JSON file; `parse` receives the part's name."""
    name = f"{kind}/{part}"
    yield from _damage_of_read(lambda: storage.read_json(name, parse(part)), name, repair)


def _check_folder(
    kind: str,
    manifest: str,
    read: Callable[[Storage, str], Any],
    repair: str,
    storage: Storage,
    part: str,
    names: Names,
) -> Iterator[Damage]:
    """Check a folder, which is removed as a whole."""
    # A folder without a manifest was never finished: the next sweep writes it anew.
    if f"{part}/{manifest}" in names:
        files = [f"{kind}/{name}" for name in names]
        yield from _damage_of_read(lambda: read(storage, part), f"{kind}/{part}", repair, files)


def _check_corpus(storage: Storage, part: str, names: Names) -> Iterator[Damage]:
    repair = "the corpus is read again from where it came from"
    if part != SOURCES:
        yield from _check_folder("corpora", CORPUS, open_corpus, repair, storage, part, names)
        return
    for name in (f"corpora/{name}" for name in names):
        read = partial(read_noted_corpus, storage, name.rpartition("/")[2].removesuffix(".json"))
        yield from _damage_of_read(read, name, repair)


def _check_run(kind: str, storage: Storage, part: str, names: Names) -> Iterator[Damage]:
    folder = storage.child(kind, part)
    checkpoint = f"{kind}/{part}/{CHECKPOINT}"
    if f"{part}/{CHECKPOINT}" in names:
        repair = "the run starts from its beginning"
        yield from _damage_of_read(lambda: read_checkpoint(folder, torch.device("cpu")), checkpoint, repair)
    if f"{part}/{RESULT}" in names:
        # The folder is removed as a whole: weights without a result are of no use.
        files = [f"{kind}/{part}/{name}" for name in RUN_FILES if f"{part}/{name}" in names]
        repair = "the teacher is trained again" if kind == "teachers" else "the student is trained again"
        yield from _damage_of_read(lambda: _read_run(folder, part), f"{kind}/{part}", repair, files)


def _read_run(folder: Storage, run_id: str) -> None:
    folder.read_json(RESULT, RunResult.from_plain)
    run = folder.read_json(MODEL, Run.from_plain)
    if run.id != run_id:
        # Its checksum was right: the file is not damaged.
        problem = f"is of another version of raykd, or was renamed: this version would call it {run.id}"
        raise OtherVersionError(f"{folder.address}/{MODEL}", problem, OTHER_VERSION)
    folder.read_json(VOCABULARY, partial(stored_vocabulary_from_json, run.vocabulary_id))
    folder.read_json(LABELS, labels_from)
    if is_trained(run) and not run.members:
        check_weights(folder, folder.read(WEIGHTS))


def _check_transfer(storage: Storage, part: str, names: Names) -> Iterator[Damage]:
    if f"{part}/{TEXT}" in names:
        repair = "the text is written again"
        yield from _damage_of_read(lambda: open_text(storage, part), f"transfer/{part}/{TEXT}", repair)
    if f"{part}/{HASHES}" in names:
        read = partial(read_hashes, storage.child("transfer", part))
        yield from _damage_of_read(read, f"transfer/{part}/{HASHES}", "its sentences are hashed again")
    for manifest in (name for name in names if name.endswith(f"/{MANIFEST}")):
        signal_path = manifest.removesuffix(f"/{MANIFEST}")
        folder = storage.child("transfer", *signal_path.split("/"))
        damages = list(
            _damage_of_read(
                lambda folder=folder: read_manifest(folder),
                f"transfer/{manifest}",
                "its shards are listed again",
            )
        )
        yield from damages
        if not damages and f"{signal_path}/{INDEX}" in names:
            index, repair = f"transfer/{signal_path}/{INDEX}", "the index is written again"
            yield from _damage_of_read(
                lambda folder=folder: read_index(folder, read_manifest(folder)), index, repair
            )
        # A missing shard is no damage: the next sweep computes it.
        shards = () if damages else read_manifest(folder).shards
        stored_shards = (shard for shard in shards if f"{signal_path}/{shard.name}" in names)
        for entry in stored_shards:
            yield from _damage_of_read(
                lambda folder=folder, entry=entry: open_shard(folder, entry),
                f"transfer/{signal_path}/{entry.name}",
                f"the teacher labels {len(entry.rows):,} sentences again",
            )


def _check_encoder(storage: Storage, part: str, names: Names) -> Iterator[Damage]:
    for name in (f"{ENCODERS}/{name}" for name in names):
        repair = "the next sweep looks again for the text that the encoder has read"
        yield from _damage_of_read(lambda name=name: storage.read_json(name), name, repair)


def _check_answers(storage: Storage, part: str, names: Names) -> Iterator[Damage]:
    folder = storage.child(ANSWERS, part)
    for below in (name.removeprefix(f"{part}/") for name in names):
        is_json = below in (ANNOTATOR, LEASE)
        read = partial(folder.read_json, below) if is_json else partial(read_batch, folder, below)
        yield from _damage_of_read(
            read, f"{ANSWERS}/{part}/{below}", "its answers are read, or asked for, again"
        )


def _check_sweep(storage: Storage, part: str, names: Names) -> Iterator[Damage]:
    records = SweepRecords(storage, part)
    files: Mapping[str, tuple[Callable[[], Any], str]] = {
        "sweep.json": (lambda: records.objectives, "the sweep file is noted again by --resume"),
        "teachers.json": (records.teachers, "the teachers' rows are written again by --resume"),
        TRACKING: (records.run_place, "the link to MLflow is noted again by --resume"),
        STATUS: (records.status, "the next driver writes its progress anew"),
        LEASE: (partial(records.folder.read_json, LEASE), "the next driver takes the sweep over"),
    }
    for name in names:
        file, below = f"sweeps/{name}", name.removeprefix(f"{part}/")
        if below in files:
            read, repair = files[below]
            yield from _damage_of_read(read, file, repair)
        elif below.startswith("trials/"):
            repair = "the trial is forgotten; --resume tries another in its place"
            yield from _damage_of_read(partial(records.read, below), file, repair)


KINDS: Mapping[str, Callable[[Storage, str, Names], Iterator[Damage]]] = {
    "corpora": _check_corpus,
    "vocabularies": partial(
        _check_json, "vocabularies", lambda part: partial(stored_vocabulary_from_json, part.removesuffix(".json")),
        "the vocabulary is built again",
    ),
    LABEL_SETS: partial(_check_json, LABEL_SETS, lambda part: labels_from, "the labels are made again"),
    ENCODED: partial(
        _check_folder, ENCODED, ENCODED_MANIFEST, lambda storage, part: open_encoded_text(storage.child(ENCODED, part)),
        "the text is encoded again",
    ),
    ENCODERS: _check_encoder,
    ANSWERS: _check_answers,
    EMBEDDINGS: partial(
        _check_folder, EMBEDDINGS, EMBEDDINGS_MANIFEST,
        lambda storage, part: open_embeddings(storage.child(EMBEDDINGS, part)),
        "the embeddings are taken from the teacher again",
    ),
    IMPORTANCE: partial(_check_json, IMPORTANCE, lambda part: parts_from_plain, "the importance is measured again"),
    "teachers": partial(_check_run, "teachers"),
    "transfer": _check_transfer,
    "costs": partial(_check_json, "costs", lambda part: Cost.from_plain, "the shape is measured again"),
    "runs": partial(_check_run, "runs"),
    "sweeps": _check_sweep,
}  # fmt: skip
"""Folder of a store → function that finds damage in one part of it."""


def repair_store(storage: Storage, examination: Examination) -> None:
    """Remove damaged parts and temporary files of killed processes, but nothing of another version of raykd.

    Trials whose runs are removed are begun again by `--resume`.

    Args:
        storage: The store.
        examination: The result of `examine_store`.
    """
    for name in [name for damage in examination.damages for name in damage.remove] + list(
        examination.temporary_files
    ):
        storage.remove(name)
    removed = (name.split("/") for damage in examination.damages for name in damage.remove)
    lost_runs = {part for kind, part, *_ in removed if kind == "runs"}
    for records in sweeps_in(storage):
        for record in records.load():
            if lost_runs & set(record.trial.run_ids) and record.trial.state == "COMPLETE":
                records.save(replace(record, trial=replace(record.trial, state="RUNNING")))
