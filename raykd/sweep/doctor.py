"""What is damaged in a store, and what has to be computed again for it.

A new kind of stored part is a function here and a line of `KINDS`. Nothing is checked twice: each function calls what
reads the part in a sweep.
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
    CHECKPOINT,
    CORPUS,
    EMBEDDINGS,
    EMBEDDINGS_MANIFEST,
    ENCODED,
    ENCODED_MANIFEST,
    ENCODERS,
    HASHES,
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
from raykd.training.embeddings import open_embeddings
from raykd.training.model_folder import check_weights, is_trained
from raykd.training.stored_text import open_encoded_text
from raykd.transfer import open_shard, open_text, read_hashes, read_index, read_manifest


@dataclass(frozen=True)
class Damage:
    """One damaged part: its error, the files that repairing removes, and what is computed again then."""

    name: str
    problem: str
    remove: tuple[str, ...]
    again: str
    other_version: bool = False
    """Whether it is whole, and another version of raykd wrote it: repairing leaves it then."""


@dataclass(frozen=True)
class Examined:
    """What a store holds, by kind, what of it is damaged, and what another version of raykd wrote."""

    files: Mapping[str, int]
    bytes: Mapping[str, int]
    damages: tuple[Damage, ...]
    others: tuple[Damage, ...] = ()
    """Parts of another version."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Temporary files that a kill left, and their bytes."""


Names = tuple[str, ...]
"""The files of one stored part, below its kind's folder."""


def examine(storage: Storage, *, each: Callable[[str], None] = lambda name: None) -> Examined:
    """Read all that is in `storage` as a sweep would read it. `each` is called with the name of every part."""
    files: dict[str, int] = defaultdict(int)
    size: dict[str, int] = defaultdict(int)
    found: list[Damage] = []
    # What a node has copied was compared before: the store itself is read.
    with nullcontext() if storage.is_local else fresh_copies():
        for kind, check in KINDS.items():
            parts: dict[str, list[str]] = defaultdict(list)
            for name, stamp in storage.files(f"{kind}/").items():
                below = name.removeprefix(f"{kind}/")
                parts[below.partition("/")[0]].append(below)
                files[kind] += 1
                size[kind] += stamp.bytes
            for part, names in parts.items():
                each(f"{kind}/{part}")
                found += check(storage, part, tuple(names))
    damages = tuple(each for each in found if not each.other_version)
    others = tuple(each for each in found if each.other_version)
    return Examined(files, size, damages, others, storage.abandoned_files())


def _damage(
    read: Callable[[], Any], name: str, again: str, remove: Iterable[str] | None = None
) -> Iterator[Damage]:
    """The damage that reading finds, if it finds one."""
    try:
        read()
    except RaykdError as error:
        files = tuple(remove or (name,))
        if not isinstance(error, StoreError):
            yield Damage(name, str(error), files, again)
            return
        # Of a folder that stands or falls as one, the file itself.
        file = next((each for each in files if error.name.endswith(f"/{each}")), name)
        other = isinstance(error, OtherVersionError)
        yield Damage(file, error.problem, () if other else files, again, other)


def _file(
    kind: str,
    parse: Callable[[str], Callable[[Any], Any]],
    again: str,
    storage: Storage,
    part: str,
    names: Names,
) -> Iterator[Damage]:
    """A part that is one JSON; `parse` is given its name."""
    name = f"{kind}/{part}"
    yield from _damage(lambda: storage.read_json(name, parse(part)), name, again)


def _folder(
    kind: str,
    manifest: str,
    read: Callable[[Storage, str], Any],
    again: str,
    storage: Storage,
    part: str,
    names: Names,
) -> Iterator[Damage]:
    """A part that is a folder, and stands or falls as one."""
    # Without its manifest it was never finished, and is written anew.
    if f"{part}/{manifest}" in names:
        files = [f"{kind}/{name}" for name in names]
        yield from _damage(lambda: read(storage, part), f"{kind}/{part}", again, files)


def _corpus(storage: Storage, part: str, names: Names) -> Iterator[Damage]:
    again = "the corpus is read again from where it came from"
    if part != SOURCES:
        yield from _folder("corpora", CORPUS, open_corpus, again, storage, part, names)
        return
    for name in (f"corpora/{name}" for name in names):
        read = partial(read_noted_corpus, storage, name.rpartition("/")[2].removesuffix(".json"))
        yield from _damage(read, name, again)


def _run(kind: str, storage: Storage, part: str, names: Names) -> Iterator[Damage]:
    folder = storage.child(kind, part)
    checkpoint = f"{kind}/{part}/{CHECKPOINT}"
    if f"{part}/{CHECKPOINT}" in names:
        again = "the run starts from its beginning"
        yield from _damage(lambda: read_checkpoint(folder, torch.device("cpu")), checkpoint, again)
    if f"{part}/{RESULT}" in names:
        # All of the folder: it stands or falls as one.
        files = [f"{kind}/{part}/{name}" for name in RUN_FILES if f"{part}/{name}" in names]
        again = "the teacher is trained again" if kind == "teachers" else "the student is trained again"
        yield from _damage(lambda: _read_run(folder, part), f"{kind}/{part}", again, files)


def _read_run(folder: Storage, run_id: str) -> None:
    folder.read_json(RESULT, RunResult.from_plain)
    run = folder.read_json(MODEL, Run.from_plain)
    if run.id != run_id:
        # It has its checksum: nothing of it was damaged.
        problem = f"is of another version of raykd, or was renamed: this one would call it {run.id}"
        raise OtherVersionError(f"{folder.address}/{MODEL}", problem, OTHER_VERSION)
    folder.read_json(VOCABULARY, partial(stored_vocabulary_from_json, run.vocabulary_id))
    folder.read_json(LABELS, labels_from)
    if is_trained(run) and not run.members:
        check_weights(folder, folder.read(WEIGHTS))


def _transfer(storage: Storage, part: str, names: Names) -> Iterator[Damage]:
    if f"{part}/{TEXT}" in names:
        again = "the text is written again"
        yield from _damage(lambda: open_text(storage, part), f"transfer/{part}/{TEXT}", again)
    if f"{part}/{HASHES}" in names:
        read = partial(read_hashes, storage.child("transfer", part))
        yield from _damage(read, f"transfer/{part}/{HASHES}", "its sentences are hashed again")
    for manifest in (name for name in names if name.endswith(f"/{MANIFEST}")):
        where = manifest.removesuffix(f"/{MANIFEST}")
        folder = storage.child("transfer", *where.split("/"))
        found = list(
            _damage(
                lambda folder=folder: read_manifest(folder),
                f"transfer/{manifest}",
                "its shards are listed again",
            )
        )
        yield from found
        if not found and f"{where}/{INDEX}" in names:
            index, again = f"transfer/{where}/{INDEX}", "the index is written again"
            yield from _damage(lambda folder=folder: read_index(folder, read_manifest(folder)), index, again)
        # A shard that is not there is computed by the next sweep.
        shards = () if found else read_manifest(folder).shards
        there = (shard for shard in shards if f"{where}/{shard.name}" in names)
        for entry in there:
            yield from _damage(
                lambda folder=folder, entry=entry: open_shard(folder, entry),
                f"transfer/{where}/{entry.name}",
                f"{len(entry.rows):,} sentences are given to the teacher again",
            )


def _encoder(storage: Storage, part: str, names: Names) -> Iterator[Damage]:
    for name in (f"{ENCODERS}/{name}" for name in names):
        again = "the next sweep looks for what it has read"
        yield from _damage(lambda name=name: storage.read_json(name), name, again)


def _sweep(storage: Storage, part: str, names: Names) -> Iterator[Damage]:
    records = SweepRecords(storage, part)
    files: Mapping[str, tuple[Callable[[], Any], str]] = {
        "sweep.json": (lambda: records.objectives, "the sweep file is noted again by --resume"),
        "teachers.json": (records.teachers, "the teachers' rows are written again by --resume"),
        TRACKING: (records.run_place, "the link to MLflow is noted again by --resume"),
        STATUS: (records.status, "the next driver writes how far it is"),
        LEASE: (partial(records.folder.read_json, LEASE), "the next driver takes the sweep"),
    }
    for name in names:
        file, below = f"sweeps/{name}", name.removeprefix(f"{part}/")
        if below in files:
            read, again = files[below]
            yield from _damage(read, file, again)
        elif below.startswith("trials/"):
            again = "the trial is forgotten; --resume tries another in its place"
            yield from _damage(partial(records.read, below), file, again)


KINDS: Mapping[str, Callable[[Storage, str, Names], Iterator[Damage]]] = {
    "corpora": _corpus,
    "vocabularies": partial(
        _file, "vocabularies", lambda part: partial(stored_vocabulary_from_json, part.removesuffix(".json")),
        "the vocabulary is built again",
    ),
    LABEL_SETS: partial(_file, LABEL_SETS, lambda part: labels_from, "the labels are made again"),
    ENCODED: partial(
        _folder, ENCODED, ENCODED_MANIFEST, lambda storage, part: open_encoded_text(storage.child(ENCODED, part)),
        "the text is encoded again",
    ),
    ENCODERS: _encoder,
    EMBEDDINGS: partial(
        _folder, EMBEDDINGS, EMBEDDINGS_MANIFEST,
        lambda storage, part: open_embeddings(storage.child(EMBEDDINGS, part)),
        "they are taken from the teacher again",
    ),
    "teachers": partial(_run, "teachers"),
    "transfer": _transfer,
    "costs": partial(_file, "costs", lambda part: Cost.from_plain, "the shape is measured again"),
    "runs": partial(_run, "runs"),
    "sweeps": _sweep,
}  # fmt: skip
"""The folders of a store, and what finds damage in a part of each."""


def repair(storage: Storage, found: Examined) -> None:
    """Remove what is damaged and what a kill left, and nothing that another version of raykd wrote. Trials whose runs
    are removed are begun again by --resume.
    """
    for name in [name for damage in found.damages for name in damage.remove] + list(found.left):
        storage.remove(name)
    removed = (name.split("/") for damage in found.damages for name in damage.remove)
    lost = {part for kind, part, *_ in removed if kind == "runs"}
    for records in sweeps_in(storage):
        for record in records.load():
            if lost & set(record.trial.run_ids) and record.trial.state == "COMPLETE":
                records.save(replace(record, trial=replace(record.trial, state="RUNNING")))
