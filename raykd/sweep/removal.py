"""Removing from a store: parts unused by all sweeps, or one sweep with the parts used by it alone.

A removal that is killed leaves the store consistent. The trials of a sweep go first and `sweep.json` last; then its
parts, beginning with the file that completes a part. The remains are unused, so the next removal finds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from raykd.errors import StoreError
from raykd.storage.layout import ANSWERS
from raykd.storage.store import Stamp, Storage
from raykd.sweep.lease import NAME as LEASE
from raykd.sweep.lease import hold_lease, refuse_if_leased
from raykd.sweep.records import NAME, sweeps_in
from raykd.sweep.uses import Part, parts_of, refuse_if_running, unused, used_alone

RECORDS = re.compile(
    r"sweep\.json|teachers\.json|tracking\.json|status\.json|trials/\d+\.json|trials\.parquet|front\.(html|csv)"
)
"""The files of a sweep's folder, without its lease."""


@dataclass(frozen=True)
class Removal:
    """The files to remove."""

    sweep: str | None
    """Name of the sweep to remove; None: parts unused by all sweeps."""
    parts: tuple[Part, ...]
    records: Mapping[str, Stamp] = field(default_factory=dict)
    """Files of raykd in the folder of the sweep."""
    foreign_files: tuple[str, ...] = ()
    """Other files in that folder, unknown to raykd: they stay."""

    @property
    def bytes(self) -> int:
        """Bytes of all files to remove."""
        return sum(stamp.bytes for stamp in self.records.values()) + sum(part.bytes for part in self.parts)


@contextmanager
def nothing_runs(storage: Storage, sweep: str | None, *, note: Callable[[str], None]) -> Iterator[None]:
    """Hold the lease of a sweep while the body runs, so that no driver works on it. Call it in the main thread.

    Args:
        storage: The store.
        sweep: Name of a sweep; None: refuse if any driver works in the store.
        note: Called with a sentence about each wait.

    Raises:
        StoreError: a driver works on a sweep of the store, or the store does not have `sweep`.
    """
    refuse_if_running(storage, note=note)
    if sweep is None:
        yield
        return
    names = [records.name for records in sweeps_in(storage)]
    if sweep not in names or not re.fullmatch(NAME, sweep):
        hint = f"there are {', '.join(names)}" if names else "it has no sweep"
        raise StoreError(f"sweep {sweep!r}", f"is not in the store {storage.address}", hint)
    with hold_lease(storage.child("sweeps", sweep), note=note):
        yield
    storage.remove_empty(f"sweeps/{sweep}")


def plan_removal(
    storage: Storage, sweep: str | None = None, *, changed_before_ns: int | None = None
) -> Removal:
    """List the removable files of one sweep, or the parts that no sweep uses.

    Args:
        storage: The store.
        sweep: Name of the sweep; None: all unused parts.
        changed_before_ns: Keep parts that changed at this time or later.

    Raises:
        StoreError: a part is damaged, or a sweep has not ended, so its needs are not known yet.
    """
    if sweep is not None:
        files = storage.files(f"sweeps/{sweep}/")
        below = {name: name.removeprefix(f"sweeps/{sweep}/") for name in files}
        records = {name: files[name] for name in files if RECORDS.fullmatch(below[name])}
        foreign = tuple(name for name in files if name not in records and below[name] != LEASE)
        return Removal(sweep, tuple(used_alone(storage, sweep)), records, foreign)
    # A store that does not say when a part changed keeps it.
    old = (
        part for part in unused(storage)
        if changed_before_ns is None or (part.modified_ns is not None and part.modified_ns < changed_before_ns)
    )  # fmt: skip
    return Removal(None, tuple(old))


def plan_answers_removal(storage: Storage, name: str, *, note: Callable[[str], None]) -> Removal:
    """List the files of an annotator's answers, which are removed only by name.

    Args:
        storage: The store.
        name: Identity of the annotator, `answers-…`.
        note: Called with a sentence about each wait.

    Raises:
        StoreError: There are no such answers, or the annotator is being asked.
    """
    stored = {part.name: part for part in parts_of(storage) if part.kind == ANSWERS}
    if name not in stored:
        hint = f"there are {', '.join(stored)}" if stored else "it has no answers"
        raise StoreError(f"answers {name!r}", f"are not in the store {storage.address}", hint)
    refuse_if_leased(storage.child(ANSWERS, name), note=note)
    return Removal(None, (stored[name],))


def remove(storage: Storage, planned: Removal, *, note: Callable[[str], None]) -> None:
    """Remove the planned files, unless they have come into use meanwhile.

    Args:
        storage: The store.
        planned: The files to remove.
        note: Called with a sentence about each wait.

    Raises:
        StoreError: a driver has begun to work on a sweep of the store; nothing is removed.
    """
    refuse_if_running(storage, note=note)
    if planned.sweep is None:
        free = {part.name for part in unused(storage)}
    else:
        free = {part.name for part in used_alone(storage, planned.sweep)}
    free |= {part.name for part in planned.parts if part.kind == ANSWERS}  # named, so that they are meant
    for name in sorted(planned.records, key=lambda name: (name.endswith("/sweep.json"), name)):
        storage.remove(name)
    for part in planned.parts:
        if part.name in free:
            for name in part.order:
                storage.remove(name)
            storage.remove_empty(f"{part.kind}/{part.name}")
