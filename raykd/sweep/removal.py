"""Removing from a store: the parts that no sweep uses, or one sweep with what only it used.

Whatever is left when a removal is killed is whole: a sweep's trials go first and `sweep.json` last, then its parts,
each beginning with the file that completes it. What is left of them no sweep uses, so the next removal finds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from raykd.errors import StoreError
from raykd.storage.store import Stamp, Storage
from raykd.sweep.lease import NAME as LEASE
from raykd.sweep.lease import hold_lease
from raykd.sweep.records import NAME, sweeps_in
from raykd.sweep.uses import Part, refuse_if_running, unused, used_alone

RECORDS = re.compile(
    r"sweep\.json|teachers\.json|tracking\.json|status\.json|trials/\d+\.json|trials\.parquet|front\.(html|csv)"
)
"""The files of a sweep's folder, without its lease."""


@dataclass(frozen=True)
class Removal:
    """What is to be removed."""

    sweep: str | None
    parts: tuple[Part, ...]
    records: Mapping[str, Stamp] = field(default_factory=dict)
    """The files of the sweep's own folder."""
    kept: tuple[str, ...] = ()
    """Files in that folder that raykd does not know: they stay."""

    @property
    def bytes(self) -> int:
        """Of all that goes."""
        return sum(stamp.bytes for stamp in self.records.values()) + sum(part.bytes for part in self.parts)


@contextmanager
def nothing_runs(storage: Storage, sweep: str | None, *, note: Callable[[str], None]) -> Iterator[None]:
    """While the body runs no driver works on `sweep`: its lease is held. In the main thread.

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
    """What can go: of one sweep, or all that no sweep uses; of that, the parts that last changed before a time.

    Raises:
        StoreError: a part is damaged, or a sweep has not ended: what it still needs is not known yet.
    """
    if sweep is not None:
        files = storage.files(f"sweeps/{sweep}/")
        below = {name: name.removeprefix(f"sweeps/{sweep}/") for name in files}
        records = {name: files[name] for name in files if RECORDS.fullmatch(below[name])}
        kept = tuple(name for name in files if name not in records and below[name] != LEASE)
        return Removal(sweep, tuple(used_alone(storage, sweep)), records, kept)
    # A store that does not say when a part changed keeps it.
    old = (
        part for part in unused(storage)
        if changed_before_ns is None or (part.modified_ns is not None and part.modified_ns < changed_before_ns)
    )  # fmt: skip
    return Removal(None, tuple(old))


def remove(storage: Storage, planned: Removal, *, note: Callable[[str], None]) -> None:
    """Remove what was planned, of which nothing has come into use meanwhile.

    Raises:
        StoreError: a driver has begun to work on a sweep of the store; nothing is removed then.
    """
    refuse_if_running(storage, note=note)
    if planned.sweep is None:
        free = {part.name for part in unused(storage)}
    else:
        free = {part.name for part in used_alone(storage, planned.sweep)}
    for name in sorted(planned.records, key=lambda name: (name.endswith("/sweep.json"), name)):
        storage.remove(name)
    for part in planned.parts:
        if part.name in free:
            for name in part.order:
                storage.remove(name)
            storage.remove_empty(f"{part.kind}/{part.name}")
