"""`raykd watch`: how far a sweep is, from another terminal or machine than its driver's."""

from __future__ import annotations

import time

from raykd.cli.console import draws, stdout
from raykd.cli.live import StatusView, drawing, in_lines
from raykd.cli.options import Overrides, Plain, Small, SweepName, SweepStore, Variants, again, at
from raykd.cli.records import records_of
from raykd.errors import StoreError
from raykd.sweep.lease import lease_holder
from raykd.sweep.records import SweepRecords
from raykd.sweep.status import Status

EVERY_S = 5.0
"""Seconds between two looks into the store."""


def watch(
    sweep: SweepName,
    store: SweepStore = None,
    set_: Overrides = None,
    variant: Variants = None,
    small: Small = False,
    plain: Plain = False,
) -> None:
    """Show how far SWEEP is, from its store, until it ends; without a terminal, or with --plain, once."""
    records = records_of(sweep, store, variant, small, set_, command="raykd watch ")
    status = _read(records)
    if draws(plain=plain):
        with drawing(StatusView(lambda: status)):
            while not status.end and _lives(records):
                time.sleep(EVERY_S)
                status = _read(records)
    else:
        for text in in_lines(status):
            stdout.print(text)
    stdout.print(
        f"watch: {_state(records, status)}. Next: raykd front {again(sweep, variant, small, set_)}{at(store)}"
    )


def _read(records: SweepRecords) -> Status:
    """Raises StoreError where no driver has written how far it is."""
    status = records.status()
    if status is None:
        hint = "it is there some seconds after raykd sweep has begun; raykd front shows the trials that have ended"
        raise StoreError(f"sweep {records.name!r}", "does not say how far it is", hint)
    return status


def _lives(records: SweepRecords) -> bool:
    found = lease_holder(records.folder)
    return found is not None and found[1]


def _state(records: SweepRecords, status: Status) -> str:
    """How it stands, in words."""
    if status.end:
        return f"{records.name}: {status.end} ({status.written})"
    found = lease_holder(records.folder)
    if found is None or not found[1]:
        who = f" ({found[0]})" if found else ""
        return (
            f"{records.name}: its driver{who} ended without a word, last seen {status.written}; "
            "go on with raykd sweep FILE --resume"
        )
    return f"{records.name}: {found[0]} works on it, last seen {status.written}"
